package deadletter

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features/record"
)

// Filter selects dead letters. Empty fields select all.
type Filter struct {
	Reasons []string
	Streams []string
	Topics  []string // of the source
	// Since and Until bound the time at which letters were set aside: from Since, before Until. The
	// zero time is not a bound.
	Since, Until time.Time
	// IDs are those of letters or of their sources.
	IDs []RecordID
}

// Check returns an error for unknown reasons.
func (f *Filter) Check() error {
	var known []string
	for _, r := range record.Reasons() {
		known = append(known, string(r))
	}
	for _, r := range f.Reasons {
		if !slices.Contains(known, r) {
			return fmt.Errorf("%q is not a reason of a dead letter; there are %s", r, strings.Join(known, ", "))
		}
	}
	return nil
}

// matches reports whether the filter selects a letter.
func (f *Filter) matches(l *Letter) bool {
	return among(f.Reasons, l.Reason) && among(f.Streams, l.Stream) && among(f.Topics, l.Source.Topic) &&
		(f.Since.IsZero() || l.SetAside >= f.Since.UnixMilli()) &&
		(f.Until.IsZero() || l.SetAside < f.Until.UnixMilli()) &&
		(among(f.IDs, l.At) || among(f.IDs, l.Source))
}

func among[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }
