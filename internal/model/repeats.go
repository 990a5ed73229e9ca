package model

import (
	"slices"

	"github.com/weir-stream/weir/features/record"
)

// arrivals hold the events of a partition that others may repeat.
type arrivals struct {
	records []came // of all records
	events  map[named][]came
}

// named is an ID in a stream.
type named struct {
	stream *record.Stream
	id     string
}

// came is when a record came. newest is the greatest timestamp up to it.
type came struct{ offset, timestamp, newest int64 }

// pass notes a record. If the log was truncated, or made again, what was at its offset or later is no longer there.
func (m *Model) pass(rec *record.Record) *arrivals {
	p := m.partitions[rec.Partition]
	if p == nil {
		p = &arrivals{events: map[named][]came{}}
		m.partitions[rec.Partition] = p
	}
	gone := func(c came) bool { return c.offset >= rec.Offset }
	newest := rec.Timestamp
	if n := len(p.records); n > 0 && gone(p.records[n-1]) {
		p.records = slices.DeleteFunc(p.records, gone)
		for name, list := range p.events {
			p.events[name] = slices.DeleteFunc(list, gone)
		}
	}
	if n := len(p.records); n > 0 {
		newest = max(newest, p.records[n-1].newest)
	}
	p.records = append(p.records, came{rec.Offset, rec.Timestamp, newest})
	return p
}

// repeats reports whether an event of the last record repeats one of an earlier record, and adds it.
func (p *arrivals) repeats(e *record.Event) (repeats bool) {
	within := e.Stream.Dedup.Milliseconds()
	if within == 0 || len(e.ID) == 0 {
		return false
	}
	name, now := named{e.Stream, string(e.ID)}, p.records[len(p.records)-1]
	for _, c := range p.events[name] {
		repeats = repeats || c.timestamp >= now.timestamp-within && c.newest >= now.newest-within && c.offset >= now.offset-record.MaxEarlier
	}
	p.events[name] = append(p.events[name], now)
	return repeats
}
