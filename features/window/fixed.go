package window

import (
	"time"

	"github.com/weir-stream/weir/state"
)

// Fixed is the window that begins with the entity's first event and lasts for
// Size; the first event after it begins the next one. After the end of one and
// before the beginning of the next no window is open.
//
// Windows of an entity that never had a rest of Size without events depend on each other back to its first event, which
// may not be kept. So they are computed from the last rest. Time is divided into stretches of MaxLength from
// 1970-01-01T00:00Z on; if there was no rest since the beginning of the stretch before that of the moment, a window
// begins with the first event since then, and the answer is marked as capped.
type Fixed struct{ Size, MaxLength time.Duration }

func (f Fixed) String() string {
	return "fixed " + FormatDuration(f.Size) + maxLength(f.Size, f.MaxLength)
}

// Reach returns the length of two stretches.
func (f Fixed) Reach() time.Duration { return 2 * f.MaxLength }

// Open implements Opened.
func (f Fixed) Open(at, since int64, times []int64) (from, coveredSince int64, sure bool) {
	size, stretch := f.Size.Milliseconds(), f.MaxLength.Milliseconds()
	since = max(since, (state.FloorDiv(at, stretch)-1)*stretch)
	end, previous := since, since-1 // of the window; the event before
	from, coveredSince = since, since
	for _, t := range times {
		if t < since {
			continue
		}
		if t-previous >= size {
			coveredSince, sure = previous+1, true
		}
		if t >= end {
			from, end = t, t+size
		}
		previous = t
	}
	switch {
	case at < end:
		return from, coveredSince, sure
	case !sure && at-previous >= size:
		return previous + size, coveredSince, true // the last one has ended by then, wherever it began
	default:
		return end, coveredSince, sure
	}
}
