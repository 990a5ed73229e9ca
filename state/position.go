package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Position is how far a shard of the state has applied a partition.
type Position struct {
	Offset int64 // of the next record to apply; negative where there is no position
	// Epoch is the epoch of the leader that wrote the record before the offset, or
	// a later one of the same log; negative where it is not known. A later one does
	// no harm: a log that has the record ends that epoch behind the offset, and a log
	// that was truncated before it has no record of either.
	Epoch int32
	// Log is the tag of the log that the offset belongs to, see LogID; empty where
	// brokers do not tell.
	Log string
}

// NoPosition is the progress of a shard that has none.
var NoPosition = Position{Offset: -1, Epoch: -1}

// Exists says whether there is a position.
func (p Position) Exists() bool { return p.Offset >= 0 }

// Append appends the position as the store keeps it: offset:epoch:log.
func (p Position) Append(dst []byte) []byte {
	dst = append(strconv.AppendInt(dst, p.Offset, 10), ':')
	dst = append(strconv.AppendInt(dst, int64(p.Epoch), 10), ':')
	return append(dst, p.Log...)
}

func (p Position) String() string { return string(p.Append(nil)) }

// ParsePosition reads what Append has written; "" is NoPosition.
func ParsePosition(text string) (Position, error) {
	if text == "" {
		return NoPosition, nil
	}
	offset, rest, _ := strings.Cut(text, ":")
	epoch, log, whole := strings.Cut(rest, ":")
	o, err := strconv.ParseInt(offset, 10, 64)
	e, err2 := strconv.ParseInt(epoch, 10, 32)
	if err != nil || err2 != nil || !whole || o < 0 || strings.Contains(log, ":") {
		return NoPosition, fmt.Errorf("%q is no position", text)
	}
	return Position{Offset: o, Epoch: int32(e), Log: log}, nil
}

// Continues says whether a position that was found instead of a known one was
// reached by applying records that are known, too, up to an epoch: it is further, in
// the same log, and of no later leader, who may have had other records.
func (p Position) Continues(known Position, epoch int32) bool {
	return p.Offset > known.Offset && p.Log == known.Log && p.Epoch <= max(known.Epoch, epoch)
}

// Lowest is the least offset of some positions, negative where one does not exist.
func Lowest(progress []Position) int64 {
	lowest := int64(math.MaxInt64)
	for _, p := range progress {
		lowest = min(lowest, p.Offset)
	}
	return lowest
}

// Highest is the greatest offset of some positions, negative where none exists.
func Highest(progress []Position) int64 {
	highest := int64(-1)
	for _, p := range progress {
		highest = max(highest, p.Offset)
	}
	return highest
}

// LogID says which log a topic is: one that was deleted and made anew has the
// name of the one before, and another cluster may have a topic of that name too.
// Parts that brokers do not tell are empty.
type LogID struct {
	Cluster string
	Topic   string // the topic's ID
}

// Tag is a short name of the log, empty where nothing is known of it.
func (l LogID) Tag() string {
	if l == (LogID{}) {
		return ""
	}
	sum := sha256.Sum256([]byte(l.Text()))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// Text is the log as the store keeps it; no part of it has the '/'.
func (l LogID) Text() string { return l.Cluster + "/" + l.Topic }

// ParseLogID reads what Text has made.
func ParseLogID(text string) LogID {
	cluster, topic, _ := strings.Cut(text, "/")
	return LogID{Cluster: cluster, Topic: topic}
}

// Contradicts says whether two logs are known to be different ones.
func (l LogID) Contradicts(other LogID) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return differ(l.Cluster, other.Cluster) || differ(l.Topic, other.Topic)
}

// With is what is known of the log by either, where they do not contradict.
func (l LogID) With(other LogID) LogID {
	return LogID{Cluster: cmp.Or(l.Cluster, other.Cluster), Topic: cmp.Or(l.Topic, other.Topic)}
}

func (l LogID) String() string {
	const unknown = "unknown"
	return fmt.Sprintf("topic ID %s in cluster %s", cmp.Or(l.Topic, unknown), cmp.Or(l.Cluster, unknown))
}

// FirstSeen is what a namespace knows of a topic since it first met it.
type FirstSeen struct {
	Log        string // the tag of the topic's log, of that it was placed in last
	Partitions int    // how many there were at the time
}

// Text is what the store keeps.
func (f FirstSeen) Text() string { return f.Log + ":" + strconv.Itoa(f.Partitions) }

// ParseFirstSeen reads what Text has made.
func ParseFirstSeen(text string) (FirstSeen, error) {
	log, partitions, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(partitions)
	if err != nil {
		return FirstSeen{}, fmt.Errorf("%q does not say how many partitions there were", text)
	}
	return FirstSeen{Log: log, Partitions: n}, nil
}

// Claim is what a plan gets that takes a partition.
type Claim struct {
	Progress []Position // by shard
	// Missing is by shard why it could not be claimed while others could: its master
	// does not answer. Its progress is not known then. Nil where all were claimed.
	Missing []error
	// Held is for how many milliseconds the plan has had the partition, in the shard
	// that it took last, and the partition has stood behind the last gap; MaxInt64 if
	// that is not known.
	Held int64
	// Topic is nil where the namespace has never met the topic. It is told only
	// where a shard has no progress.
	Topic *FirstSeen
	// KeptBy is the version of the plan that keeps it in some shard, as it goes before this
	// one; "" where the plan has it.
	KeptBy string
}

// Miss notes that a shard could not be claimed.
func (c *Claim) Miss(shard int, err error) {
	if c.Missing == nil {
		c.Missing = make([]error, len(c.Progress))
	}
	c.Missing[shard], c.Progress[shard] = err, NoPosition
}

// Misses is why a shard could not be claimed, nil where it was.
func (c *Claim) Misses(shard int) error {
	if c.Missing == nil {
		return nil
	}
	return c.Missing[shard]
}

// Known are the positions of the shards that were claimed.
func (c *Claim) Known() []Position {
	if c.Missing == nil {
		return c.Progress
	}
	var known []Position
	for shard, at := range c.Progress {
		if c.Missing[shard] == nil {
			known = append(known, at)
		}
	}
	return known
}

// Placement puts a partition's progress where it was not led by applying.
type Placement struct {
	Partition Partition // under the version of the plan that has it
	// From is by shard what was found, and To where to go on. A shard whose progress
	// is no longer what was found is left alone, and so is one where they are equal.
	From, To []Position
	// Log is the log of To, and Partitions how many its topic has.
	Log        LogID
	Partitions int
	// Gap, if not 0, says that records are passed over or have vanished whose
	// timestamps go up to this moment, in milliseconds, or to that of the newest
	// record applied. The shards that are placed tell of it in their history.
	Gap int64
}

// Begin is the first placement of a partition that no shard has progress in.
func Begin(p Partition, shards int, offset int64) Placement {
	first := Placement{Partition: p, From: make([]Position, shards), To: make([]Position, shards), Partitions: 1}
	for shard := range first.To {
		first.From[shard], first.To[shard] = NoPosition, Position{Offset: offset, Epoch: -1}
	}
	return first
}
