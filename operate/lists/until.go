package lists

import (
	"fmt"
	"time"

	"github.com/weir-stream/weir/features/window"
)

// ParseUntil reads when an entry ends: a moment in RFC 3339, a day, whose end in UTC it is, or for how long. It is nil for an empty
// text, which means never, and fails for a moment that is not after now.
func ParseUntil(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		if at, err = time.Parse(time.DateOnly, text); err == nil {
			at = at.AddDate(0, 0, 1)
		}
	}
	if err != nil {
		var d time.Duration
		if d, err = window.ParseDuration(text); err == nil {
			at = now.Add(d)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("until: %q is neither a moment such as 2026-12-31T23:59:59Z, nor a day such as 2026-12-31, nor a time such as 30d", text)
	case !at.After(now):
		return nil, fmt.Errorf("until: %s has passed", text)
	}
	at = at.UTC().Truncate(time.Millisecond)
	return &at, nil
}
