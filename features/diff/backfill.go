package diff

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/state"
)

// Backfill is the effort of filling the new state.
type Backfill struct {
	// Rate is the share of a core that the backfill uses.
	Rate   float64 `json:"rate"`
	Topics []Topic `json:"topics"` // sorted by name
	// Seconds is about how long one process takes for all topics.
	Seconds int64 `json:"seconds"`
}

// Topic is what the backfill reads of a topic.
type Topic struct {
	Name     string   `json:"name"`
	Features []string `json:"features"`          // that need it
	Missing  bool     `json:"missing,omitempty"` // there is no such topic yet
	// Records is how many records are read at most, Seconds about how long that takes.
	Records int64 `json:"records"`
	Seconds int64 `json:"seconds"`
	// CompleteSince is the event time, in ms, since which the state will be complete if retention
	// has taken records that it needs; else 0.
	CompleteSince int64 `json:"complete_since,omitempty"`
}

// Fill returns the columns that new definitions keep and the previous ones did not keep, or not as long.
func Fill(before, after *features.Registry) *state.Fill {
	f := &state.Fill{Columns: map[string][]string{}}
	for key, kept := range after.Plan().Retained {
		if !before.Plan().Covers(&state.Plan{Retained: map[string]state.Retention{key: kept}}) {
			for _, topic := range after.Plan().Topics[key] {
				f.Columns[topic] = append(f.Columns[topic], key)
			}
		}
	}
	for _, keys := range f.Columns {
		slices.Sort(keys)
	}
	return f
}

// Add adds a topic of a fill whose records are read. The name, the features and the time are
// computed.
func (b *Backfill) Add(after *features.Registry, fill *state.Fill, name string, t Topic) {
	part := &state.Fill{Columns: map[string][]string{name: fill.Columns[name]}}
	t.Name, t.Features = name, after.FilledBy(part)
	t.Seconds = int64(math.Ceil(cost.FillSeconds(after, part, name, t.Records) / b.Rate))
	b.Topics = append(b.Topics, t)
	b.Seconds += t.Seconds
}

// writeText writes the backfill as text.
func (b *Backfill) writeText(out *strings.Builder) {
	if len(b.Topics) == 0 {
		out.WriteString("backfill: nothing is to be read\n")
		return
	}
	fmt.Fprintf(out, "backfill, about %s with %g of a core; processes share the partitions\n", seconds(b.Seconds), b.Rate)
	for _, t := range b.Topics {
		said := fmt.Sprintf("up to %d records, about %s", t.Records, seconds(t.Seconds))
		if t.Missing {
			said = "there is no such topic yet"
		}
		fmt.Fprintf(out, "  %s: %s, for %s\n", t.Name, said, strings.Join(t.Features, ", "))
		if t.CompleteSince != 0 {
			fmt.Fprintf(out, "      retention has removed records that are needed: complete since %s\n", spelling.Moment(t.CompleteSince))
		}
	}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
