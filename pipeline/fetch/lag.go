package fetch

import (
	"slices"
	"time"

	"github.com/weir-stream/weir/state"
)

// Lag is how far a position in a partition is behind its log, as of the last response.
type Lag struct {
	// Records is the number of offsets from the position to the high watermark, including those of
	// open transactions and of transaction markers.
	Records int64
	// Open is the number of offsets from the last stable offset to the high watermark, which an open transaction
	// blocks. It is 0 under ReadUncommitted.
	Open int64
	// OpenFor is how long the last stable offset has not moved while there were records after it: the age of the oldest
	// open transaction, as far as this Poller has seen it. It is 0 if Open is.
	OpenFor time.Duration
}

// Lag returns how far a position is behind a partition's log. It is unknown before the first
// response.
func (p *Poller) Lag(topic string, partition int32, position int64) (lag Lag, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pos := p.positions[state.Partition{Topic: topic, ID: partition}]
	if pos == nil || pos.ends.highWatermark < 0 {
		return Lag{}, false
	}
	return pos.ends.lag(position, time.Now()), true
}

// Left returns how many offsets of each partition may be read and were not returned by Poll, as of the last response. It
// has no partition that only a Seek resumes, nor one before the first response.
func (p *Poller) Left() map[state.Partition]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := make(map[state.Partition]int64, len(p.positions))
	for id, pos := range p.positions {
		if !pos.stopped && pos.ends.highWatermark >= 0 {
			left[id] = max(0, pos.ends.stable-pos.offset)
		}
	}
	for _, part := range slices.Backward(p.queue) { // the first one of a partition counts: all others are after it
		if _, ok := left[part.key()]; ok && p.wanted(part) {
			left[part.key()] = max(0, part.pos.ends.stable-part.Offset)
		}
	}
	return left
}

// logEnds holds where a partition's log ends, as of the last response.
type logEnds struct {
	highWatermark int64     // -1 before the first response
	stable        int64     // the last stable offset, no greater than the high watermark
	openSince     time.Time // since when stable has been below the high watermark; zero while it is not
}

var unknownEnds = logEnds{highWatermark: -1, stable: -1}

// move sets the ends from a response.
func (e *logEnds) move(isolation Isolation, highWatermark, lastStable int64, now time.Time) {
	stable := min(endOffset(isolation, highWatermark, lastStable), highWatermark)
	switch {
	case stable == highWatermark:
		e.openSince = time.Time{}
	case stable != e.stable || e.openSince.IsZero():
		e.openSince = now
	}
	e.highWatermark, e.stable = highWatermark, stable
}

func (e *logEnds) lag(position int64, now time.Time) Lag {
	lag := Lag{Records: max(0, e.highWatermark-position), Open: e.highWatermark - e.stable}
	if lag.Open > 0 {
		lag.OpenFor = now.Sub(e.openSince)
	}
	return lag
}
