package blackbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/value"
)

// Answer is the value of one feature as HTTP gives it.
type Answer struct {
	Value     json.RawMessage
	Status    features.Status
	Exact     bool
	Uncertain int64
	Capped    bool
	// StandardError is relative; 0 where none is stated.
	StandardError float64 `json:"standard_error"`

	From          *int64
	To            int64
	CompleteSince *int64 `json:"complete_since"`
}

// Question is the body of POST /v1/query.
type Question struct {
	Features []string          `json:"features"`
	Entities []json.RawMessage `json:"entities"`
	At       int64             `json:"at"`
	Pending  json.RawMessage   `json:"pending,omitempty"`
}

// Ask asks the API at a URL and returns the answers by entity, each by feature.
func Ask(url string, q Question) ([]map[string]Answer, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	response, err := http.Post(url+"/v1/query", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, text)
	}
	var reply struct {
		Results []struct{ Features map[string]Answer }
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		return nil, err
	}
	answers := make([]map[string]Answer, len(reply.Results))
	for i, r := range reply.Results {
		answers[i] = r.Features
	}
	return answers, nil
}

// maxValues is the most that one question may ask for, as set by default.
const maxValues = 10_000

// Comparison holds answers of an API against the model's.
type Comparison struct {
	T     testing.TB
	URL   string // of the API
	Model *model.Model
	// Partly bears answers that say that their state is complete only since some
	// moment that they cover.
	Partly bool
	// Gaps bears such answers too, and compares them all the same: a log has lost
	// records that the state still has.
	Gaps bool

	Compared, Wrong int
	Incomplete      map[string]int   // answers passed over, by feature
	Complete        map[string]int   // of a feature with a birth, those compared
	Since           map[string]int64 // by such a feature
}

// All asks for every feature of every entity at the moments and compares the
// answers. A feature is not asked for moments before those that it is kept for,
// seen from clock.
func (c *Comparison) All(r *features.Registry, clock int64, moments ...int64) {
	c.T.Helper()
	c.Incomplete, c.Complete, c.Since = map[string]int{}, map[string]int{}, map[string]int64{}
	for _, group := range byEntity(r) {
		var entities []string
		for _, f := range group {
			entities = append(entities, c.Model.Entities(f)...)
		}
		slices.Sort(entities)
		entities = slices.Compact(entities)
		for _, at := range moments {
			asked := slices.DeleteFunc(slices.Clone(group), func(f *features.Feature) bool {
				return f.Forgets() && at < clock-f.Keep.Milliseconds()
			})
			if len(asked) == 0 {
				continue
			}
			cost := len(asked)
			for _, f := range asked {
				cost += f.FanOut()
			}
			for chunk := range slices.Chunk(entities, maxValues/cost) {
				c.chunk(asked, chunk, at)
			}
		}
	}
	if c.Wrong > 0 {
		c.T.Errorf("%d of %d answers differ from the model", c.Wrong, c.Compared)
	}
}

// byEntity groups features whose entities are of the same fields.
func byEntity(r *features.Registry) map[string][]*features.Feature {
	groups := map[string][]*features.Feature{}
	for _, f := range r.Features {
		by := strings.Join(slices.Sorted(slices.Values(f.By)), ",")
		groups[by] = append(groups[by], f)
	}
	return groups
}

// Shown is the number of differences that are told in full.
const Shown = 10

func (c *Comparison) chunk(asked []*features.Feature, entities []string, at int64) {
	c.T.Helper()
	q := Question{At: at}
	for _, f := range asked {
		q.Features = append(q.Features, f.Name)
	}
	for _, entity := range entities {
		q.Entities = append(q.Entities, entityJSON(asked[0], entity))
	}
	var answers []map[string]Answer
	testkit.Eventually(c.T, time.Minute, "an answer", func() (bool, string) { // a busy machine is late
		var err error
		answers, err = Ask(c.URL, q)
		return err == nil, fmt.Sprint(err)
	})
	for i, entity := range entities {
		for _, f := range asked {
			got := answers[i][f.Name]
			want := c.Model.Answer(f, entity, at)
			if got.CompleteSince != nil && c.Gaps {
				got = bearGap(got, f, want)
			}
			if got.CompleteSince != nil && c.Partly {
				c.Since[f.Name] = *got.CompleteSince
				if got.From == nil || *got.From < *got.CompleteSince {
					c.Incomplete[f.Name]++
					if got.Status != features.Incomplete || got.Exact {
						c.T.Errorf("%s of %s at %d is not whole, and says %s, exact %v", f.Name, entity, at, got.Status, got.Exact)
					}
					continue
				}
				c.Complete[f.Name]++
				got.CompleteSince = nil
			}
			c.Compared++
			if difference := Differs(got, f, want); difference != "" {
				if c.Wrong++; c.Wrong <= Shown {
					c.T.Errorf("%s of %s at %d: %s (%s)", f.Name, entity, at, difference, f.Definition)
				}
			}
		}
	}
}

// bearGap is an answer as it would be if it did not say that it may lack something.
func bearGap(got Answer, f *features.Feature, want aggregate.Result) Answer {
	if got.Status == features.Incomplete {
		got.Status = statusOf(want)
		precise, _ := precision(f)
		got.Exact = precise && got.StandardError == 0 && want.Uncertain == 0 && !want.Capped
	}
	got.CompleteSince = nil
	return got
}

// statusOf is the status of a complete answer.
func statusOf(r aggregate.Result) features.Status {
	switch {
	case !r.Found:
		return features.NotFound
	case r.IsNull():
		return features.NullValue
	}
	return features.Present
}

// entityJSON is an entity as a question names it: the text's values under the
// names of the fields, which are in their order.
func entityJSON(f *features.Feature, text string) json.RawMessage {
	types := map[string]value.Type{}
	for i, by := range f.By {
		types[by] = f.ByTypes[i]
	}
	values := splitEntity(text)
	entity := map[string]any{}
	for i, by := range slices.Sorted(slices.Values(f.By)) {
		entity[by] = values[i]
		if types[by] != value.String {
			entity[by] = json.RawMessage(values[i])
		}
	}
	out, err := json.Marshal(entity)
	if err != nil {
		panic(err) // strings, and the texts of numbers and bools
	}
	return out
}

// splitEntity undoes state.AppendEntity.
func splitEntity(text string) []string {
	values := []string{""}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '|':
			values = append(values, "")
			continue
		case '\\':
			i++
		}
		values[len(values)-1] += text[i : i+1]
	}
	return values
}

// Differs says how an answer differs from the model's, "" if it does not.
func Differs(got Answer, f *features.Feature, r aggregate.Result) string {
	want, status := r.Value, statusOf(r)
	if !r.Found && f.Parts == nil && f.Per == "" {
		want = f.Kind.Spec().Neutral
	}
	precise, off := precision(f)
	if estimated(got, f, want) {
		precise, off = false, 6*got.StandardError
	}
	shape := f.Shape()
	scalar := r.Items == nil && shape != aggregate.Categories
	if got.CompleteSince != nil {
		return fmt.Sprintf("complete since %d only", *got.CompleteSince)
	}
	exact := precise && r.Uncertain == 0 && !r.Capped
	if got.Status != status || got.Exact != exact || got.Uncertain != r.Uncertain || got.Capped != r.Capped ||
		scalar && !sameValue(string(got.Value), want, off) ||
		!scalar && !sameList(string(got.Value), r.Items, shape, off) {
		return fmt.Sprintf("%s %s exact=%v uncertain=%d capped=%v; want %s %s %s exact=%v uncertain=%d capped=%v",
			got.Value, got.Status, got.Exact, got.Uncertain, got.Capped,
			inJSON(want), listInJSON(r.Items, shape), status, exact, r.Uncertain, r.Capped)
	}
	return ""
}

// estimated says whether an answer states the error of a set that has more values
// than are kept, of which it then is an estimate.
func estimated(got Answer, f *features.Feature, want value.Value) bool {
	return f.Parts == nil && !f.Window.Exact && f.Call.Max > 0 && want.Type == value.Int && want.Num > int64(f.Call.Max) &&
		got.StandardError > 0
}

// precision says whether a feature's values have no error of their own, and by
// which share they may be off: the stated error, or five standard errors.
func precision(f *features.Feature) (exact bool, off float64) {
	switch {
	case f.Parts == nil && f.Call.Error > 0 && !f.Window.Exact:
		return false, f.Call.Error * (1 + 1e-9)
	case f.Parts == nil:
		return f.Kind.Spec().Exact, 5 * f.Kind.Spec().StandardError
	}
	exact = true
	for _, part := range f.Parts {
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
		return strconv.Quote(string(v.Str)) // of plain letters
	case value.Location:
		return fmt.Sprintf(`{"lat":%g,"lon":%g}`, v.Flt, v.Lon)
	default:
		return string(v.AppendText(nil))
	}
}

func listInJSON(items []aggregate.Item, shape aggregate.Shape) string {
	var texts []string
	for _, i := range items {
		switch shape {
		case aggregate.Categories:
			texts = append(texts, fmt.Sprintf("%q:%s", i.Category.AppendText(nil), inJSON(i.Value)))
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

// sameValue compares exactly, but for floats, whose sums depend on the order,
// and estimates, which may be off by a share.
func sameValue(got string, want value.Value, off float64) bool {
	if want.IsNull() {
		return got == "null"
	}
	if off == 0 && want.Type != value.Float {
		return got == inJSON(want)
	}
	n, err := strconv.ParseFloat(got, 64)
	return err == nil && near(n, want.Float64(), off)
}

// near says whether a float may stand for another.
func near(got, want, off float64) bool { return math.Abs(got-want) <= max(off, 1e-9)*math.Abs(want) }

// sameList is sameValue of lists and of values by category.
func sameList(got string, items []aggregate.Item, shape aggregate.Shape, off float64) bool {
	want := listInJSON(items, shape)
	isFloat := func(i aggregate.Item) bool { return i.Value.Type == value.Float }
	if got == want || off == 0 && !slices.ContainsFunc(items, isFloat) {
		return got == want
	}
	var a, b any
	return json.Unmarshal([]byte(got), &a) == nil && json.Unmarshal([]byte(want), &b) == nil && alike(a, b, off)
}

// alike compares what JSON holds, numbers as floats.
func alike(got, want any, off float64) bool {
	switch want := want.(type) {
	case float64:
		n, ok := got.(float64)
		return ok && near(n, want, off)
	case []any:
		list, ok := got.([]any)
		return ok && slices.EqualFunc(list, want, func(a, b any) bool { return alike(a, b, off) })
	case map[string]any:
		object, ok := got.(map[string]any)
		return ok && maps.EqualFunc(object, want, func(a, b any) bool { return alike(a, b, off) })
	default:
		return got == want
	}
}
