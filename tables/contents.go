// Package tables holds the rows of tables in memory, by their keys, and reads them from files.
package tables

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// ErrTooLarge is wrapped by the error for a table with more rows than it may have, or larger ones.
var ErrTooLarge = errors.New("the table is too large")

// Contents are the rows of a table. They depend only on the records taken, and, except for a history, only on the last
// record of each record key, so that compaction of a topic changes nothing. Find may be called while records are taken;
// records are taken one after another.
//
// Records with a key in Kafka replace what the last record with that key in the same partition said: a row, also one with
// another key of the table; or, if the record has no value or is none of the table's, none. Records without a key replace
// the last one with their row's key. Of several rows with a key, as of several partitions, the newest counts.
type Contents struct {
	table   *features.Table
	decoder *record.Decoder
	keep    Keep
	ofFile  bool  // removals may come before the rows that they remove
	deletes int   // the field that says that its row is deleted, see deleted; -1 for none
	order   int64 // of the last record taken

	mu      sync.RWMutex
	written map[recordKey]*version
	rows    map[string]*version // by key, the version taken last first
	within  networks            // the keys of rows, if they are networks
	count   int                 // of what is written, that which is a row
	bytes   int64
}

// recordKey identifies the records that replace each other.
type recordKey struct {
	partition int32
	keyed     bool // key is that of the record, else that of the row
	key       string
}

// version is what a record says about the row of a key from a time on.
type version struct {
	by    recordKey
	key   string
	time  int64         // of the record, or the row's own, in milliseconds
	from  int64         // since when it holds: no earlier than what the record key said before
	order int64         // grows with each record taken
	row   *features.Row // nil if there is none from then on
	next  *version      // of the same key, taken before
}

// New makes the contents of a table, without rows. They keep the newest row of a key.
func New(t *features.Table) *Contents {
	return NewDecoded(t, record.NewDecoder([]*record.Stream{t.Rows}))
}

// NewDecoded is New with a decoder of the table's rows, which are not records of its topic.
func NewDecoded(t *features.Table, d *record.Decoder) *Contents {
	return &Contents{table: t, decoder: d, deletes: t.Deletes, written: map[recordKey]*version{}, rows: map[string]*version{}}
}

// Keep is which versions of a row contents keep.
type Keep uint8

// Of a history, Find returns the row as of a moment.
const (
	Newest     Keep = iota
	History         // all versions; each holds since its timestamp, or else since its record
	AsReceived      // all versions; none holds before its record, if that is known, as where the topic is followed
)

// Keeping makes contents without rows keep other versions than the newest.
func (c *Contents) Keeping(k Keep) *Contents {
	c.keep = k
	return c
}

// Rows returns the number of rows, and about how many bytes they take, in a history with all earlier versions.
func (c *Contents) Rows() (n int, bytes int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.count, c.bytes
}

// All returns the rows of all keys at a moment, see Find, sorted by these.
func (c *Contents) All(at int64) (rows []*features.Row) {
	c.mu.RLock()
	keys := slices.Sorted(maps.Keys(c.rows))
	c.mu.RUnlock()
	for _, key := range keys {
		c.mu.RLock()
		row := c.of(key, at)
		c.mu.RUnlock()
		if row != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// Find returns the row of a key; nil if there is none. Of contents that keep all versions it is that of a moment, in
// milliseconds, else the newest one. If keys are networks, it is that of the narrowest network of an address whose row holds at
// that moment; the key may be a shortened text, as of an address with more white space than is kept.
func (c *Contents) Find(key string, at int64) *features.Row {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if !c.table.Networks {
		return c.of(key, at)
	}
	ip, ok := expr.ParseAddress(value.Head([]byte(key)))
	if !ok {
		return nil
	}
	var few [8]string
	for _, network := range slices.Backward(c.within.of(ip, few[:0])) {
		if row := c.of(network, at); row != nil && c.table.Holds(row, at) {
			return row
		}
	}
	return nil
}

// of is Find for the key that a row has.
func (c *Contents) of(key string, at int64) *features.Row {
	v := c.rows[key]
	switch {
	case v == nil:
		return nil
	case v.next == nil && c.keep == Newest: // the common case
		return v.row
	}
	var said []*version // the last of each record key
	for ; v != nil; v = v.next {
		if c.keep != Newest && v.from > at {
			continue
		}
		i := slices.IndexFunc(said, func(s *version) bool { return s.by == v.by })
		switch {
		case i < 0:
			said = append(said, v)
		case !v.by.keyed && v.after(said[i]):
			said[i] = v
		}
	}
	var newest *version
	for _, v := range said {
		if v.row != nil && (newest == nil || v.after(newest)) {
			newest = v
		}
	}
	if newest == nil {
		return nil
	}
	return newest.row
}

// after reports which of two rows with the same key counts. It does not depend on the order in which partitions are read.
func (v *version) after(other *version) bool {
	switch {
	case v.time != other.time:
		return v.time > other.time
	case v.by.partition != other.by.partition:
		return v.by.partition > other.by.partition
	}
	return v.order > other.order
}

// decode decodes a record, which ends no process.
func (c *Contents) decode(r *record.Record) (events []record.Event, err error) {
	defer record.Recover(&err)
	return c.decoder.Decode(r)
}

// Take takes a record. A record that cannot be read says that there is no row, and bad says why. The error is a
// *record.MissingSchema, after which the record must be taken again, or ErrTooLarge, after which the contents are useless.
func (c *Contents) Take(r *record.Record) (bad *record.Poison, err error) {
	events, err := c.decode(r)
	if poison, ok := errors.AsType[*record.Poison](err); ok {
		bad, err, events = poison, nil, nil
		bad.Stream = "" // it is a table
	}
	if err != nil {
		return nil, err
	}
	if c.table.Networks && len(events) > 0 {
		network, wrong := features.ParseNetwork(string(events[0].Values[c.table.Key].Str))
		if wrong != nil {
			bad, events = &record.Poison{Reason: record.WrongType, Path: c.table.Rows.Fields[c.table.Key].Name, Message: wrong.Error()}, nil
		} else {
			events[0].Values[c.table.Key].Str = []byte(network.String())
		}
	}
	next := &version{by: recordKey{partition: r.Partition.ID, keyed: r.Key != nil, key: string(r.Key)}, time: r.Timestamp, order: c.order}
	c.order++
	if len(events) > 0 {
		e := events[0].Clone()
		next.key, next.time = string(state.AppendEntity(nil, true, e.Values[c.table.Key])), e.Time
		if !c.deleted(e) {
			next.row = &features.Row{Time: e.Time, Values: e.Values}
		}
	} else if r.Key == nil {
		return bad, nil // nothing says which row
	}
	if !next.by.keyed {
		next.by.key = next.key
	}
	if next.from = next.time; c.keep == AsReceived {
		next.from = max(next.from, r.Timestamp)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(next)
	if c.count > c.table.MaxRows {
		return bad, fmt.Errorf("table %s has more than %d rows, its max_rows: %w", c.table.Name, c.table.MaxRows, ErrTooLarge)
	}
	if c.bytes > c.table.MaxBytes {
		versions := ""
		if c.keep != Newest {
			versions = ", with their earlier versions,"
		}
		return bad, fmt.Errorf("the rows of table %s%s take more than %d MiB, its max_mib: %w", c.table.Name, versions, c.table.MaxBytes>>20, ErrTooLarge)
	}
	return bad, nil
}

// deleted reports whether an event says that its row is deleted: a change of Debezium, or the entry of a list in a file.
func (c *Contents) deleted(e *record.Event) bool {
	if c.deletes < 0 {
		return false
	}
	v := e.Values[c.deletes]
	return v.Type == value.String && string(v.Str) == "d" || v.Type == value.Bool && v.Num == 1
}

// put makes a version replace the last one of its records.
func (c *Contents) put(next *version) {
	last := c.written[next.by]
	if last != nil {
		if next.by.keyed {
			// Their order counts, even where timestamps go back: a compacted topic has only the last record.
			next.from = max(next.from, last.from)
		}
		switch {
		case !next.by.keyed && c.keep == Newest && next.time < last.time:
			return
		case c.keep == Newest:
			c.remove(last)
		case next.by.keyed && last.row != nil && (next.row == nil || next.key != last.key):
			c.add(&version{by: last.by, key: last.key, time: next.time, from: next.from, order: next.order})
		}
		if last.row != nil {
			c.count--
		}
	}
	switch {
	case next.row != nil:
		c.add(next)
		c.written[next.by] = next
		c.count++
	case !next.by.keyed && (c.keep != Newest || c.ofFile):
		// Rows that it removes may come after it: the newest counts.
		c.add(next)
		c.written[next.by] = next
	case c.keep != Newest && last != nil:
		c.written[next.by] = &version{by: next.by, key: last.key, time: next.time, from: next.from}
	default:
		delete(c.written, next.by)
	}
}

func (c *Contents) add(v *version) {
	if v.next = c.rows[v.key]; v.next == nil && c.table.Networks {
		c.within.add(netip.MustParsePrefix(v.key), v.key)
	}
	c.rows[v.key] = v
	c.bytes += v.size()
}

func (c *Contents) remove(v *version) {
	before := c.rows[v.key]
	if before == v {
		if c.rows[v.key] = v.next; v.next == nil {
			if delete(c.rows, v.key); c.table.Networks {
				c.within.remove(netip.MustParsePrefix(v.key))
			}
		}
	} else {
		for before.next != v {
			before = before.next
		}
		before.next = v.next
	}
	c.bytes -= v.size()
}

// size returns about how many bytes a version takes, with its entries in maps.
func (v *version) size() int64 {
	const entries, each = 300, 64
	n := entries + len(v.key) + len(v.by.key)
	if v.row != nil {
		n += each * len(v.row.Values)
		for i := range v.row.Values {
			n += len(v.row.Values[i].Str)
		}
	}
	return int64(n)
}
