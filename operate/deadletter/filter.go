package deadletter

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features/record"
)

// Filter picks dead letters. What is empty picks all.
type Filter struct {
	Reasons []string
	Streams []string
	Topics  []string // of the source
	// Since and Until bound the time at which letters were set aside: from
	// Since, to before Until. The zero time is no bound.
	Since, Until time.Time
	// Places are those of letters or of their sources.
	Places []Place
}

// Check finds reasons that there are not.
func (f *Filter) Check() error {
	var known []string
	for _, r := range record.Reasons() {
		known = append(known, string(r))
	}
	for _, r := range f.Reasons {
		if !slices.Contains(known, r) {
			return fmt.Errorf("%q is no reason of a dead letter; there are %s", r, strings.Join(known, ", "))
		}
	}
	return nil
}

// Takes says whether the filter picks a letter.
func (f *Filter) Takes(l *Letter) bool {
	return among(f.Reasons, l.Reason) && among(f.Streams, l.Stream) && among(f.Topics, l.Source.Topic) &&
		(f.Since.IsZero() || l.SetAside >= f.Since.UnixMilli()) &&
		(f.Until.IsZero() || l.SetAside < f.Until.UnixMilli()) &&
		(among(f.Places, l.At) || among(f.Places, l.Source))
}

func among[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }
