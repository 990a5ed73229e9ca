package aggregate

import (
	"maps"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// A feature with one value for each category folds or merges the events of each category
// separately. If there are more than Call.Max categories, it answers for those whose texts sort
// first, byte by byte, each with all its events.

// FoldPer folds the events of each category. Events without one are skipped.
func FoldPer(f Function, c Call, at int64, events []Sample) Result {
	of := map[string][]Sample{}
	for _, e := range events {
		if !e.Category.IsNull() {
			text := string(e.Category.AppendText(nil))
			of[text] = append(of[text], e)
		}
	}
	return perCategory(c, slices.Sorted(maps.Keys(of)), func(text string) (value.Value, Result) {
		return of[text][0].Category, f.Fold(c, at, of[text])
	})
}

// MergePer merges what the groups of the function's series hold; their keys are the texts of
// categories of the given type and scale. It leaves out the categories that any of the series may lack.
func MergePer(f Mergeable, c Call, t value.Type, scale uint8, at int64, s []state.WindowState) Result {
	of := map[string][]state.WindowState{}
	before, capped := "", false
	for i := range s {
		if s[i].Capped && (!capped || s[i].Before < before) {
			before, capped = s[i].Before, true
		}
	}
	for i := range s {
		for _, g := range s[i].Groups {
			if capped && g.Key >= before {
				break
			}
			if of[g.Key] == nil {
				of[g.Key] = make([]state.WindowState, len(s))
			}
			of[g.Key][i] = g.WindowState
		}
	}
	return perCategory(c, slices.Sorted(maps.Keys(of)), func(text string) (value.Value, Result) {
		return value.ParseText(t, scale, text), f.Merge(c, at, of[text])
	})
}

func perCategory(c Call, texts []string, result func(text string) (value.Value, Result)) Result {
	var all Result
	for _, text := range texts {
		category, r := result(text)
		if !r.Found {
			continue
		}
		if c.Max > 0 && len(all.Items) == c.Max {
			all.Capped = true
			break
		}
		all.Items = append(all.Items, Item{Category: category, Value: r.Value})
		all.Capped = all.Capped || r.Capped
		all.StandardError = max(all.StandardError, r.StandardError)
		all.RelativeError = max(all.RelativeError, r.RelativeError)
	}
	all.Found = all.Items != nil
	return all
}
