package lag

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/state"
)

// Fill is the progress of filling new features with records that were applied before they were
// defined.
type Fill struct {
	Features []string `json:"features"`
	Topic    string   `json:"topic"`
	// Status is "filling", "done", or "given up" if some partition can never be complete: another
	// fill replaces it.
	Status string `json:"status"`
	// Filled and All count offsets, and rows of files, over all shards; All is 0 before it has begun.
	Filled int64 `json:"filled"`
	All    int64 `json:"all"`
	// FilledRows and AllRows are those of them that are rows of files; absent if there are no files.
	FilledRows int64 `json:"filled_rows,omitempty"`
	AllRows    int64 `json:"all_rows,omitempty"`
	// Since is the event time since which the features are complete once it is done; null for all
	// events.
	Since *time.Time `json:"complete_since"`
	// SecondsLeft is about how long the rest takes, at the speed between two readings; absent if
	// that is unknown.
	SecondsLeft int64 `json:"seconds_left,omitempty"`

	id string // of the fill
}

// Filling reports whether any fill has begun and is not done.
func Filling(fills []Fill) bool {
	return slices.ContainsFunc(fills, func(f Fill) bool { return f.Status == "filling" && f.All > 0 })
}

// longestLeft bounds estimates, in seconds: a fill that hardly moves tells nothing, and a duration has no more than 292
// years.
const longestLeft = 366 * 24 * 3600

// SetTimeLeft sets how long the fills take, given an earlier reading of them.
func SetTimeLeft(fills, before []Fill, took time.Duration) {
	for i := range fills {
		f := &fills[i]
		at := slices.IndexFunc(before, func(b Fill) bool { return b.id == f.id && b.Topic == f.Topic && b.All > 0 })
		if at < 0 || f.Status != "filling" || f.Filled <= before[at].Filled {
			continue
		}
		left := float64(f.All-f.Filled) / float64(f.Filled-before[at].Filled) * took.Seconds()
		if left <= longestLeft {
			f.SecondsLeft = int64(math.Ceil(left))
		}
	}
}

// Fills lists the fills of a history that features need.
func Fills(h *state.History, features func(*state.Fill) []string) (list []Fill) {
	for i := range h.Fills {
		e := &h.Fills[i]
		if e.Broken && slices.ContainsFunc(h.Fills, func(part state.FillEpoch) bool { return part.Fill.PartOf(e.Fill) }) {
			continue // its part has its own line
		}
		f := Fill{Features: features(e.Fill), Topic: e.Topic, Status: "filling", Filled: e.Filled, All: e.All,
			FilledRows: e.FilledRows, AllRows: e.AllRows, id: e.Fill.ID}
		if len(f.Features) == 0 {
			continue
		}
		switch {
		case e.Done():
			f.Status = "done"
		case e.Broken:
			f.Status = "given up"
		}
		if since := e.CompleteSince(); since != state.MinTime {
			at := time.UnixMilli(since).UTC()
			f.Since = &at
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b Fill) int {
		return cmp.Or(strings.Compare(a.Features[0], b.Features[0]), strings.Compare(a.Topic, b.Topic))
	})
	return list
}

// Percent writes how much of everything is done; 100% is all of it.
func Percent(done, all int64) string {
	share := math.Round(100 * float64(done) / float64(all))
	if done < all {
		share = min(share, 99)
	}
	return fmt.Sprintf("%.0f%%", share)
}

// writeFills writes a line for each fill that is not done.
func writeFills(out *strings.Builder, fills []Fill) {
	for _, f := range fills {
		var what string
		switch {
		case f.Status == "done":
			continue
		case f.Status == "given up":
			what = "the backfill of some partitions is given up; what is still needed of it is filled again"
		case f.All == 0:
			what = "backfill not begun"
		default:
			what = "backfilled " + Percent(f.Filled, f.All)
			if f.AllRows > 0 {
				what += fmt.Sprintf(", %s of the rows of files", Percent(f.FilledRows, f.AllRows))
			}
			if f.SecondsLeft > 0 {
				what += fmt.Sprintf(", about %s left", time.Duration(f.SecondsLeft)*time.Second)
			}
		}
		fmt.Fprintf(out, "%s, of %s: %s\n", strings.Join(f.Features, ", "), f.Topic, what)
	}
}
