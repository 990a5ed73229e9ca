package model

import (
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// arrivals hold the events of a partition that others may repeat.
type arrivals struct {
	newest int64 // the greatest timestamp so far
	events map[named][]came
}

// named is an ID in a stream.
type named struct {
	stream *record.Stream
	id     string
}

// came is when an event came.
type came struct{ offset, timestamp, newest int64 }

// pass notes the timestamp of a record.
func (m *Model) pass(rec *record.Record) *arrivals {
	p := m.partitions[rec.Partition]
	if p == nil {
		p = &arrivals{newest: state.MinTime, events: map[named][]came{}}
		m.partitions[rec.Partition] = p
	}
	p.newest = max(p.newest, rec.Timestamp)
	return p
}

// repeats reports whether an event repeats one of an earlier record of the partition, and adds it.
func (p *arrivals) repeats(e *record.Event, rec *record.Record) (repeats bool) {
	within := e.Stream.Dedup.Milliseconds()
	if within == 0 || len(e.ID) == 0 {
		return false
	}
	name := named{e.Stream, string(e.ID)}
	for _, c := range p.events[name] {
		repeats = repeats || c.timestamp >= rec.Timestamp-within && c.newest >= p.newest-within && c.offset >= rec.Offset-record.MaxEarlier
	}
	p.events[name] = append(p.events[name], came{rec.Offset, rec.Timestamp, p.newest})
	return repeats
}
