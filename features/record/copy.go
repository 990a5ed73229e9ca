package record

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/state"
)

// CopyHeader is the header of a copy: a record that a replay of dead letters has written again. See Copy.
const CopyHeader = HeaderPrefix + "counts-in"

// Copy says where a copy counts: in the series of one namespace that have passed the original without counting it. All
// others count the original itself, when a backfill or a new namespace reads it, so the copy would be the second. The
// original may itself be a copy that could not be used.
type Copy struct {
	Namespace string
	Partition state.Partition // of the original
	Offset    int64
	// Timestamps are those of the first record and of its copies so far, in ms. A record that has another timestamp may be
	// usable where these are not.
	Timestamps []int64
	Series     []string // their IDs, sorted
}

// String is the value of the header: the namespace, topic/partition/offset of the original, the timestamps, and the series.
func (c *Copy) String() string {
	var timestamps []string
	for _, t := range c.Timestamps {
		timestamps = append(timestamps, strconv.FormatInt(t, 10))
	}
	return fmt.Sprintf("%s %s/%d/%d %s %s", c.Namespace, c.Partition.Topic, c.Partition.ID, c.Offset,
		strings.Join(timestamps, ","), strings.Join(c.Series, ","))
}

// ParseCopy parses the value of the header; nil if it is none.
func ParseCopy(text []byte) *Copy {
	parts := strings.Split(string(text), " ")
	if len(parts) != 4 || parts[0] == "" {
		return nil
	}
	original := strings.Split(parts[1], "/")
	if len(original) != 3 {
		return nil
	}
	id, err := strconv.ParseInt(original[1], 10, 32)
	offset, err2 := strconv.ParseInt(original[2], 10, 64)
	if err != nil || err2 != nil || id < 0 || offset < 0 {
		return nil
	}
	c := &Copy{Namespace: parts[0], Partition: state.Partition{Topic: original[0], ID: int32(id)}, Offset: offset}
	for text := range strings.SplitSeq(parts[2], ",") {
		timestamp, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil
		}
		c.Timestamps = append(c.Timestamps, timestamp)
	}
	if parts[3] != "" {
		c.Series = slices.Sorted(strings.SplitSeq(parts[3], ","))
	}
	return c
}

// CopyOf returns what a copy says, if the seal proves that Weir has written it; nil for any other record. forged is true
// for one with the header of a copy that is none: it is an event of its own. A copy is in its original's partition: what
// another program writes elsewhere with the same headers is an event of its own, too.
func CopyOf(rec *Record, seal state.Seal) (c *Copy, forged bool) {
	if rec.Headers == nil {
		return nil, false
	}
	if _, claims := rec.Headers.Last(CopyHeader); !claims {
		return nil, false
	}
	ours, _ := Unseal(seal, rec.Partition.Topic, rec.Key, rec.Value, rec.Headers)
	if text, ok := ours.Last(CopyHeader); ok {
		c = ParseCopy(text)
	}
	if c == nil || c.Partition != rec.Partition || c.Offset >= rec.Offset {
		return nil, true
	}
	return c, false
}

// Has reports whether the copy counts in a series.
func (c *Copy) Has(series string) bool {
	_, has := slices.BinarySearch(c.Series, series)
	return has
}

// Once tells which records of a partition repeat an event, for one that reads them in order with the definitions of today,
// and so may use an original that was set aside: of the records of an event, the first that it can use counts. There may
// be several copies of one record: each namespace replays it from its own dead letters.
type Once struct {
	from     int64
	seal     state.Seal
	unusable map[int64]bool  // by offset
	first    map[int64]int64 // the first record of the event, by the offset of a copy
	used     map[int64]bool  // by the offset of that record: a copy was used
}

// NewOnce is for one that reads from an offset on, and knows copies by a seal.
func NewOnce(from int64, seal state.Seal) *Once {
	return &Once{from, seal, map[int64]bool{}, map[int64]int64{}, map[int64]bool{}}
}

// Use uses the next record, unless it repeats one that was read and could be used. The error is that of use: the record
// cannot be used if it is a *Poison, and may come again if it is another.
func (o *Once) Use(rec *Record, use func() error) (repeats bool, err error) {
	c, _ := CopyOf(rec, o.seal)
	first, ofCopy := rec.Offset, false
	if c != nil {
		if first, ofCopy = o.first[c.Offset]; !ofCopy {
			first = c.Offset
		}
		o.first[rec.Offset] = first
		if o.used[first] || c.Offset >= o.from && !o.unusable[c.Offset] {
			return true, nil
		}
	}
	err = use()
	if _, poison := errors.AsType[*Poison](err); poison {
		o.unusable[rec.Offset] = true
	} else if err == nil && c != nil {
		o.used[first] = true
	}
	return false, err
}
