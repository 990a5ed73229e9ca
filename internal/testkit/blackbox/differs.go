package blackbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/value"
)

// Differs describes how an answer differs from the model's, "" if it does not.
func Differs(got Answer, f *features.Feature, r aggregate.Result) string {
	if got.LaterEvents {
		got = bearLater(got, f, r)
	}
	want, status := r.Value, statusOf(r)
	_, derived := f.Basis.(*features.Derived)
	if !r.Found && !derived && f.Per == "" {
		want = f.Spec.Neutral
	}
	precise, off := precision(f)
	if estimated(got, f, want) {
		_, most := testkit.SampleBounds(got.StandardError)
		precise, off = false, most-1
	}
	bounds := tolerance{share: off}
	if !derived && f.Spec.StandardError > 0 {
		bounds = tolerance{max(off, 5*got.StandardError), collisions}
	}
	shape := f.Shape()
	scalar := r.Items == nil && (r.Found || shape != aggregate.Categories)
	if got.CompleteSince != nil {
		return fmt.Sprintf("complete since %d only", *got.CompleteSince)
	}
	exact := precise && isExact(r)
	if got.Members != nil {
		return differsInMembers(got, r, status, exact && got.FalsePositiveRate == 0)
	}
	if r.Capped && chosen(f) {
		if !got.Capped || got.Exact {
			return fmt.Sprintf("%s %s exact=%v capped=%v; want that some values were left out", got.Value, got.Status, got.Exact, got.Capped)
		}
		return ""
	}
	if got.Status != status || got.Exact != exact || got.Uncertain != r.Uncertain || got.Capped != r.Capped ||
		scalar && !sameValue(string(got.Value), want, bounds) ||
		!scalar && !sameList(string(got.Value), r.Items, shape, bounds) {
		return fmt.Sprintf("%s %s exact=%v uncertain=%d capped=%v; want %s %s %s exact=%v uncertain=%d capped=%v",
			got.Value, got.Status, got.Exact, got.Uncertain, got.Capped,
			inJSON(want), listInJSON(r.Items, shape), status, exact, r.Uncertain, r.Capped)
	}
	return ""
}

// isExact reports whether a function states its result without an error. Only a variance of floats that hardly differ has one
// although it is computed from all events.
func isExact(r aggregate.Result) bool { return r.Uncertain == 0 && r.RelativeError == 0 && !r.Capped }

// chosen reports whether the hashes of values, whose secret the model does not know, choose those that a capped answer
// is about.
func chosen(f *features.Feature) bool {
	if _, derived := f.Basis.(*features.Derived); derived {
		return slices.ContainsFunc(f.Parts(), chosen)
	}
	_, multiHop := f.Basis.(*features.MultiHop)
	return multiHop || f.Spec != nil && f.Spec.Name == "set"
}

// collisions bounds how many of a few values may collide in a HyperLogLog, where each is a large
// share: of 17 values, two share a register once in 120 times.
const collisions = 3

// tolerance is the error allowed in a number: relative and absolute.
type tolerance struct{ share, number float64 }

// estimated reports whether an answer is an estimate: it states the error of a set that has more
// values than are kept.
func estimated(got Answer, f *features.Feature, want value.Value) bool {
	_, derived := f.Basis.(*features.Derived)
	return !derived && !f.Window.Exact && f.Call.Max > 0 && want.Type == value.Int && want.Num > int64(f.Call.Max) &&
		got.StandardError > 0
}

// precision reports whether a feature's values are exact, and otherwise the relative error allowed:
// the stated error, or five standard errors.
func precision(f *features.Feature) (exact bool, off float64) {
	switch {
	case f.Spec == nil: // it is as its parts are, and rows are exact
	case f.Call.Error > 0 && !f.Window.Exact:
		return false, f.Call.Error * (1 + 1e-9)
	default:
		return f.Spec.Exact, 5 * f.Spec.StandardError
	}
	exact = true
	for _, part := range f.Parts() {
		e, o := precision(part)
		exact, off = exact && e, max(off, o)
	}
	return exact, off
}

func inJSON(v value.Value) string {
	switch v.Type {
	case value.Null:
		return "null"
	case value.String:
		return quoted(v.Str)
	case value.Location:
		return fmt.Sprintf(`{"lat":%g,"lon":%g}`, v.Flt, v.Lon)
	default:
		return string(v.AppendText(nil))
	}
}

// quoted returns a text in JSON.
func quoted(text []byte) string {
	out, err := json.Marshal(string(text))
	if err != nil {
		panic(err) // every text can be written
	}
	return string(out)
}

func listInJSON(items []aggregate.Item, shape aggregate.Shape) string {
	var texts []string
	for _, i := range items {
		switch shape {
		case aggregate.Categories:
			texts = append(texts, quoted(i.Category.AppendText(nil))+":"+inJSON(i.Value))
		case aggregate.Counts:
			texts = append(texts, fmt.Sprintf(`{"value":%s,"count":%d}`, inJSON(i.Value), i.Count))
		case aggregate.Bins:
			texts = append(texts, fmt.Sprintf(`{"from":%s,"to":%s,"count":%d}`, inJSON(i.From), inJSON(i.To), i.Count))
		default:
			texts = append(texts, inJSON(i.Value))
		}
	}
	if shape == aggregate.Categories {
		return "{" + strings.Join(texts, ",") + "}"
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// sameValue compares exactly, except floats, whose sums depend on the order, and estimates, which
// may differ by the tolerance.
func sameValue(got string, want value.Value, t tolerance) bool {
	if want.IsNull() {
		return got == "null"
	}
	if t == (tolerance{}) && want.Type != value.Float {
		return got == inJSON(want)
	}
	n, err := strconv.ParseFloat(got, 64)
	return err == nil && t.near(n, want.Float64())
}

// near reports whether two floats are nearly equal.
func (t tolerance) near(got, want float64) bool {
	return math.Abs(got-want) <= max(max(t.share, 1e-9)*math.Abs(want), t.number)
}

// sameList is sameValue of lists and of values by category.
func sameList(got string, items []aggregate.Item, shape aggregate.Shape, t tolerance) bool {
	want := listInJSON(items, shape)
	isFloat := func(i aggregate.Item) bool { return i.Value.Type == value.Float }
	if got == want || t == (tolerance{}) && !slices.ContainsFunc(items, isFloat) {
		return got == want
	}
	var a, b any
	return json.Unmarshal([]byte(got), &a) == nil && json.Unmarshal([]byte(want), &b) == nil && alike(a, b, t)
}

// alike compares JSON values, numbers as floats.
func alike(got, want any, t tolerance) bool {
	switch want := want.(type) {
	case float64:
		n, ok := got.(float64)
		return ok && t.near(n, want)
	case []any:
		list, ok := got.([]any)
		return ok && slices.EqualFunc(list, want, func(a, b any) bool { return alike(a, b, t) })
	case map[string]any:
		object, ok := got.(map[string]any)
		return ok && maps.EqualFunc(object, want, func(a, b any) bool { return alike(a, b, t) })
	default:
		return got == want
	}
}
