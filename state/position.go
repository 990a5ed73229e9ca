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

// Position states how far a shard has applied a partition.
type Position struct {
	Offset int64 // of the next record to apply; negative if there is no position
	// A batch that takes several calls is applied slice by slice, see SliceOf. While it is, Slices of them are ahead:
	// in the slices below Slices the next record to apply is the one at Ahead, which is greater than Offset. Otherwise
	// both are 0.
	Ahead  int64
	Slices int
	// Epoch is the leader epoch of the record before the offset, or a later one of the same log;
	// negative if unknown. A later one does no harm: a log that has the record ends that epoch
	// after the offset, and a log that was truncated before it has no record of either.
	Epoch int32
	// Log is the tag of the log that the offset belongs to, see LogID; empty if brokers do not
	// report it.
	Log string
}

// NoPosition is the position of a shard that has no progress.
var NoPosition = Position{Offset: -1, Epoch: -1}

// Exists reports whether there is a position.
func (p Position) Exists() bool { return p.Offset >= 0 }

// In returns the offset of the next record to apply in a slice.
func (p *Position) In(slice int) int64 {
	if slice < p.Slices {
		return p.Ahead
	}
	return p.Offset
}

// Furthest returns the greatest offset that a slice has reached; negative if there is no position.
func (p Position) Furthest() int64 { return p.In(0) }

// Has reports whether an update, of a record of the partition, is applied.
func (p *Position) Has(u *EntityUpdate) bool { return u.Offset < p.In(SliceOf(u.Hash)) }

// To returns the position moved to an offset, with the slices that are further left where they are.
func (p Position) To(offset int64) Position {
	p.Offset = offset
	if p.Ahead <= offset {
		p.Ahead, p.Slices = 0, 0
	}
	return p
}

// Until returns the position with all that is beyond an offset taken back to it.
func (p Position) Until(offset int64) Position {
	p.Ahead = min(p.Ahead, offset)
	return p.To(min(p.Offset, offset))
}

// WithAhead returns the position with the slices below a number at an offset, instead of those that are ahead.
func (p Position) WithAhead(offset int64, slices int) Position {
	p.Ahead, p.Slices = offset, slices
	return p
}

// Append appends the position in the store's format: offset:epoch:log, or offset+ahead/slices:epoch:log.
func (p Position) Append(dst []byte) []byte {
	dst = strconv.AppendInt(append(p.AppendOffsets(dst), ':'), int64(p.Epoch), 10)
	dst = append(dst, ':')
	return append(dst, p.Log...)
}

// AppendOffsets appends the first part of a position: offset, or offset+ahead/slices.
func (p Position) AppendOffsets(dst []byte) []byte {
	dst = strconv.AppendInt(dst, p.Offset, 10)
	if p.Slices > 0 {
		dst = strconv.AppendInt(append(dst, '+'), p.Ahead, 10)
		dst = strconv.AppendInt(append(dst, '/'), int64(p.Slices), 10)
	}
	return dst
}

// Offsets returns the position without epoch and log.
func (p Position) Offsets() Position {
	return Position{Offset: p.Offset, Ahead: p.Ahead, Slices: p.Slices}
}

func (p Position) String() string { return string(p.Append(nil)) }

// ParsePosition parses what Append writes; "" is NoPosition.
func ParsePosition(text string) (Position, error) {
	if text == "" {
		return NoPosition, nil
	}
	offset, rest, _ := strings.Cut(text, ":")
	epoch, log, whole := strings.Cut(rest, ":")
	p, ok := ParseOffsets(offset)
	e, err := strconv.ParseInt(epoch, 10, 32)
	if !ok || err != nil || !whole || strings.Contains(log, ":") {
		return NoPosition, fmt.Errorf("%q is not a position", text)
	}
	p.Epoch, p.Log = int32(e), log
	return p, nil
}

// ParseOffsets parses what AppendOffsets appends; ok is false if it does not.
func ParseOffsets(text string) (p Position, ok bool) {
	offset, further, partly := strings.Cut(text, "+")
	var err error
	if p.Offset, err = strconv.ParseInt(offset, 10, 64); err != nil || p.Offset < 0 {
		return p, false
	}
	if !partly {
		return p, true
	}
	ahead, slices, _ := strings.Cut(further, "/")
	var err2 error
	p.Ahead, err = strconv.ParseInt(ahead, 10, 64)
	p.Slices, err2 = strconv.Atoi(slices)
	return p, err == nil && err2 == nil && p.Ahead > p.Offset && p.Slices > 0 && p.Slices < ShardSlices
}

// Continues reports whether a position that was found in place of a known one was reached by applying records that are
// also known, up to an epoch: it is later, in the same log, and of the leader of these, as others may have had other records.
func (p Position) Continues(known Position, epoch int32) bool {
	later := false
	for _, slice := range [...]int{0, p.Slices, known.Slices} { // offsets change at these only
		if p.In(slice) < known.In(slice) {
			return false
		}
		later = later || p.In(slice) > known.In(slice)
	}
	return later && p.Log == known.Log && p.Epoch == max(known.Epoch, epoch)
}

// Lowest returns the least offset of some positions, in any slice, negative if one does not exist.
func Lowest(progress []Position) int64 {
	lowest := int64(math.MaxInt64)
	for _, p := range progress {
		lowest = min(lowest, p.Offset)
	}
	return lowest
}

// Highest returns the greatest offset of some positions, in any slice, negative if none exists.
func Highest(progress []Position) int64 {
	highest := int64(-1)
	for _, p := range progress {
		highest = max(highest, p.Furthest())
	}
	return highest
}

// LogID identifies the log of a topic: a topic that was deleted and created again has the same name, and another
// cluster may have a topic of that name. Parts that brokers do not report are empty.
type LogID struct {
	Cluster string
	Topic   string // the topic's ID
}

// Tag returns a short name of the log, "" if nothing is known of the log.
func (l LogID) Tag() string {
	if l == (LogID{}) {
		return ""
	}
	sum := sha256.Sum256([]byte(l.Text()))
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// Text returns the log in the store's format; no part contains a '/'.
func (l LogID) Text() string { return l.Cluster + "/" + l.Topic }

// ParseLogID parses what Text writes.
func ParseLogID(text string) LogID {
	cluster, topic, _ := strings.Cut(text, "/")
	return LogID{Cluster: cluster, Topic: topic}
}

// Contradicts reports whether two logs are known to differ.
func (l LogID) Contradicts(other LogID) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return differ(l.Cluster, other.Cluster) || differ(l.Topic, other.Topic)
}

// With returns what both know of the log, if they do not contradict each other.
func (l LogID) With(other LogID) LogID {
	return LogID{Cluster: cmp.Or(l.Cluster, other.Cluster), Topic: cmp.Or(l.Topic, other.Topic)}
}

func (l LogID) String() string {
	const unknown = "unknown"
	return fmt.Sprintf("topic ID %s in cluster %s", cmp.Or(l.Topic, unknown), cmp.Or(l.Cluster, unknown))
}

// FirstSeen is what a namespace recorded of a topic when it first read it.
type FirstSeen struct {
	Log        string // the tag of the topic's log, or of the log of its last placement
	Partitions int    // their number at the time
}

// ParseFirstSeen parses the tag of a log and a number of partitions, with a colon between them, as records have them.
func ParseFirstSeen(text string) (FirstSeen, error) {
	log, partitions, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(partitions)
	if err != nil {
		return FirstSeen{}, fmt.Errorf("%q does not say how many partitions there were", text)
	}
	return FirstSeen{Log: log, Partitions: n}, nil
}

// Claimant is a plan that claims partitions.
type Claimant struct {
	Version    string
	GivesWayTo []string // versions of the plans that keep their partitions
	// Seen is the history on which the plan was bound; nil if it was bound on none. In shards whose server has been restarted or
	// replaced since then, nothing is claimed: they may have gone back to when definitions bound to another plan.
	Seen *History
}

// Claim is the result of a plan's claim of a partition.
type Claim struct {
	Progress []Position // by shard
	// Missing has, for each shard that could not be claimed because its master does not answer or is not the one that the claimant
	// has seen, the error. The progress of these shards is unknown. It is nil if all were claimed.
	Missing []error
	// OwnedMs is for how many milliseconds the plan has had the partition in the shard that it took last, and the
	// partition has been past its last gap; MaxInt64 if unknown.
	OwnedMs int64
	// Topic is nil if the namespace has never read the topic. It is set only if a shard has no progress.
	Topic *FirstSeen
	// KeptBy is the version of a plan that still holds the partition in some shard and takes
	// precedence over this one; "" if this plan has it.
	KeptBy string
}

// Miss records that a shard could not be claimed.
func (c *Claim) Miss(shard int, err error) {
	if c.Missing == nil {
		c.Missing = make([]error, len(c.Progress))
	}
	c.Missing[shard], c.Progress[shard] = err, NoPosition
}

// Misses returns why a shard could not be claimed, or nil if it was.
func (c *Claim) Misses(shard int) error {
	if c.Missing == nil {
		return nil
	}
	return c.Missing[shard]
}

// Known returns the positions of the claimed shards.
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

// Placement sets a partition's progress to an offset that was not reached by applying.
type Placement struct {
	Partition Partition // with the version of the plan that has it
	// From is the position found in each shard, To the new one. A shard is left alone if its progress is no longer
	// From, or if both are equal.
	From, To []Position
	// Log is the log of To, and Partitions the number of partitions of its topic.
	Log        LogID
	Partitions int
	// Gap, if not 0, notes that records were skipped or have vanished, with timestamps up to this moment, in
	// milliseconds, or up to the newest applied record's. The placed shards record it in their history.
	Gap int64
}
