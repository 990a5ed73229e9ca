package window

import "time"

// Session is the window since the last gap of Gap or more without an event of the entity, up to the moment of the
// question; if that is a Gap after the entity's last event, no session is open. If a session is longer than MaxLength,
// only its last MaxLength counts, and the answer is marked as capped.
type Session struct{ Gap, MaxLength time.Duration }

func (s Session) String() string {
	return "session " + FormatDuration(s.Gap) + maxLength(s.Gap, s.MaxLength)
}

// Reach returns the greatest length and the gap before it.
func (s Session) Reach() time.Duration { return s.MaxLength + s.Gap }

// Open implements Opened.
func (s Session) Open(at, _ int64, times []int64) (from, coveredSince int64, sure bool) {
	from, sure = s.begin(at, times)
	return from, from - s.Gap.Milliseconds() + 1, sure
}

// begin returns the first millisecond of the session at a moment, or the end of the last session.
func (s Session) begin(at int64, times []int64) (from int64, sure bool) {
	gap, earliest := s.Gap.Milliseconds(), at-s.MaxLength.Milliseconds()+1
	i := len(times) - 1
	if i < 0 {
		return earliest, true
	}
	if at-times[i] >= gap {
		return times[i] + gap, true
	}
	for i > 0 && times[i]-times[i-1] < gap {
		i--
	}
	if times[i] < earliest {
		return earliest, false
	}
	return times[i], true
}

// DefaultMaxLength returns how far back the beginning of a window that begins with an event is searched, given its
// length or gap.
func DefaultMaxLength(length time.Duration) time.Duration {
	return max(Day, 10*min(length, Longest/10))
}

// maxLength formats the option for one line, empty for the default.
func maxLength(length, given time.Duration) string {
	if given == DefaultMaxLength(length) {
		return ""
	}
	return " max_length " + FormatDuration(given)
}
