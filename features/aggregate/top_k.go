package aggregate

import "github.com/weir-stream/weir/state"

// mode is the most frequent value of a field, topK the most frequent ones.
type (
	mode struct{}
	topK struct{}
)

func (mode) Spec() Spec {
	return Spec{
		Name: "mode", Title: "most frequent value of a field", Note: tieNote + valuesNote,
		Types: distinctTypes, Exact: true, DefaultMax: defaultValues,
		Example: "MODE(30d, transaction, merchant, user)",
	}
}

func (topK) Spec() Spec {
	return Spec{
		Name: "top_k", Title: "the `k` most frequent values of a field, each with its number of events", Note: tieNote + valuesNote,
		Types: distinctTypes, Exact: true, DefaultMax: defaultValues, Parameters: []Parameter{kParameter}, Shape: Counts,
		Example: "TOP_K(30d, transaction, merchant, user, k=3)",
	}
}

const (
	tieNote = "Of equally frequent values the least comes first. "
	// valuesNote applies to the log too, which has no more values than events.
	valuesNote = "If there are more than `max` distinct values, 1000 by default, only those whose texts sort first, byte by byte, are counted, and the answer is `capped`."
	// defaultValues is how many distinct values are counted.
	defaultValues = 1000
)

func (mode) Measures(Call) []state.Measure { return []state.Measure{state.CountEvents} }
func (topK) Measures(Call) []state.Measure { return []state.Measure{state.CountEvents} }

func (mode) Keys(Call) Keys { return Keys{} }
func (topK) Keys(Call) Keys { return Keys{} }

func (mode) Merge(c Call, _ int64, s []state.WindowState) Result {
	return mostFrequent(valueCounts(c, s[0]))
}
func (topK) Merge(c Call, _ int64, s []state.WindowState) Result {
	return topOf(c, valueCounts(c, s[0]))
}

func (mode) Fold(c Call, _ int64, events []Sample) Result {
	return mostFrequent(frequencies(c, events))
}
func (topK) Fold(c Call, _ int64, events []Sample) Result { return topOf(c, frequencies(c, events)) }

func mostFrequent(f frequency) Result {
	if f.items == nil {
		return Result{}
	}
	f.rank()
	return Result{Value: f.items[0].Value, Found: true, Capped: f.capped}
}

func topOf(c Call, f frequency) Result {
	f.rank()
	return Result{Items: f.items[:min(c.N, len(f.items))], Found: f.items != nil, Capped: f.capped}
}
