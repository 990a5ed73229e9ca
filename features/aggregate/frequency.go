package aggregate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// frequency lists the distinct values of a field, each with its number of events.
type frequency struct {
	items  []Item // by the values' texts; nil for none
	capped bool   // there are more than Call.Max: these are the first
}

// frequencies counts the values of events.
func frequencies(c Call, events []Sample) frequency {
	of := map[string]*Item{}
	for _, v := range fieldOf(events) {
		text := string(v.AppendText(nil))
		if of[text] == nil {
			of[text] = &Item{Value: v}
		}
		of[text].Count++
	}
	var f frequency
	for _, text := range slices.Sorted(maps.Keys(of)) {
		f.items = append(f.items, *of[text])
	}
	return f.upTo(c.Max)
}

// valueCounts returns the counts in the groups of a window state whose keys are texts.
func valueCounts(c Call, s state.WindowState) frequency {
	var f frequency
	for _, g := range s.Groups {
		f.items = append(f.items, Item{Value: value.ParseText(c.Type, c.Scale, g.Key), Count: total(g.Buckets)})
	}
	return f.upTo(c.Max)
}

func (f frequency) upTo(most int) frequency {
	if len(f.items) > most {
		f.items, f.capped = f.items[:most], true
	}
	return f
}

// rank sorts by frequency, the most frequent value first.
func (f frequency) rank() {
	slices.SortFunc(f.items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), value.Compare(a.Value, b.Value))
	})
}
