package integration_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
	"github.com/weir-stream/weir/internal/model"
)

// answer is the value of one feature as HTTP gives it.
type answer struct {
	Value     json.RawMessage
	Status    features.Status
	Exact     bool
	Uncertain int64
	Capped    bool
}

// question is the body of POST /v1/query.
type question struct {
	Features []string          `json:"features"`
	Entities []json.RawMessage `json:"entities"`
	At       int64             `json:"at"`
}

// ask returns the answers by entity, each by feature.
func (w *weir) ask(q question) ([]map[string]answer, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	response, err := http.Post(w.url+"/v1/query", "application/json", bytes.NewReader(body))
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
		Results []struct{ Features map[string]answer }
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		return nil, err
	}
	answers := make([]map[string]answer, len(reply.Results))
	for i, r := range reply.Results {
		answers[i] = r.Features
	}
	return answers, nil
}

// maxValues is the most that one question may ask for, as set by default.
const maxValues = 10_000

// compare asks for every feature of every entity at the moments and compares
// the answers with the model's. A feature is not asked for moments before
// those that it is kept for, seen from clock. It returns the number of answers.
func compare(t testing.TB, w *weir, r *features.Registry, m *model.Model, clock int64, moments ...int64) (compared int) {
	t.Helper()
	wrong := 0
	for _, group := range byEntity(r) {
		var entities []string
		for _, f := range group {
			entities = append(entities, m.Entities(f)...)
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
			for chunk := range slices.Chunk(entities, maxValues/len(asked)) {
				n, bad := compareChunk(t, w, m, asked, chunk, at)
				compared += n
				wrong += bad
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d answers differ from the model", wrong, compared)
	}
	return compared
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

// shown is the number of differences that are told in full.
const shown = 10

func compareChunk(t testing.TB, w *weir, m *model.Model, asked []*features.Feature, entities []string, at int64) (n, wrong int) {
	t.Helper()
	q := question{At: at}
	for _, f := range asked {
		q.Features = append(q.Features, f.Name)
	}
	for _, entity := range entities {
		q.Entities = append(q.Entities, entityJSON(asked[0], entity))
	}
	answers, err := w.ask(q)
	if err != nil {
		t.Fatal(err)
	}
	for i, entity := range entities {
		for _, f := range asked {
			n++
			got := answers[i][f.Name]
			if difference := differs(got, f, m.Answer(f, entity, at)); difference != "" {
				if wrong++; wrong <= shown {
					t.Errorf("%s of %s at %d: %s", f.Name, entity, at, difference)
				}
			}
		}
	}
	return n, wrong
}

// entityJSON is an entity as a question names it: the text's values under the
// names of the fields, which are in their order.
func entityJSON(f *features.Feature, text string) json.RawMessage {
	types := map[string]kinds.Type{}
	for i, by := range f.By {
		types[by] = f.ByTypes[i]
	}
	values := splitEntity(text)
	entity := map[string]any{}
	for i, by := range slices.Sorted(slices.Values(f.By)) {
		entity[by] = values[i]
		if types[by] != kinds.String {
			entity[by] = json.RawMessage(values[i])
		}
	}
	out, err := json.Marshal(entity)
	if err != nil {
		panic(err) // strings, and the texts of numbers and bools
	}
	return out
}

// splitEntity undoes kinds.AppendEntity.
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

// differs says how an answer differs from the model's, "" if it does not.
func differs(got answer, f *features.Feature, r kinds.Result) string {
	want, status := r.Value, features.Present
	switch {
	case !r.Found:
		status = features.NotFound
		if f.Parts == nil {
			want = f.Kind.Spec().Neutral
		}
	case r.IsNull():
		status = features.NullValue
	}
	precise, standardError := precision(f)
	shape := kinds.Scalar
	if f.Kind != nil {
		shape = f.Kind.Spec().Shape
	}
	exact := precise && r.Uncertain == 0 && !r.Capped
	if got.Status != status || got.Exact != exact || got.Uncertain != r.Uncertain || got.Capped != r.Capped ||
		r.Items == nil && !sameValue(string(got.Value), want, standardError) ||
		r.Items != nil && string(got.Value) != listInJSON(r.Items, shape) {
		return fmt.Sprintf("%s %s exact=%v uncertain=%d capped=%v; want %s %s %s exact=%v uncertain=%d capped=%v",
			got.Value, got.Status, got.Exact, got.Uncertain, got.Capped,
			inJSON(want), listInJSON(r.Items, shape), status, exact, r.Uncertain, r.Capped)
	}
	return ""
}

// precision says whether a feature's values have no error of their own, and the
// greatest error of its kind or its parts'.
func precision(f *features.Feature) (exact bool, standardError float64) {
	if f.Parts == nil {
		return f.Kind.Spec().Exact, f.Kind.Spec().StandardError
	}
	exact = true
	for _, part := range f.Parts {
		e, s := precision(part)
		exact, standardError = exact && e, max(standardError, s)
	}
	return exact, standardError
}

func inJSON(v kinds.Value) string {
	switch v.Type {
	case kinds.Null:
		return "null"
	case kinds.String:
		return strconv.Quote(string(v.Str)) // of plain letters
	default:
		return string(v.AppendText(nil))
	}
}

func listInJSON(items []kinds.Item, shape kinds.Shape) string {
	var texts []string
	for _, i := range items {
		switch shape {
		case kinds.Counts:
			texts = append(texts, fmt.Sprintf(`{"value":%s,"count":%d}`, inJSON(i.Value), i.Count))
		case kinds.Bins:
			texts = append(texts, fmt.Sprintf(`{"from":%s,"to":%s,"count":%d}`, inJSON(i.From), inJSON(i.To), i.Count))
		default:
			texts = append(texts, inJSON(i.Value))
		}
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// sameValue compares exactly, but for floats, whose sums depend on the order,
// and estimates, which may lie five standard errors off.
func sameValue(got string, want kinds.Value, standardError float64) bool {
	if want.IsNull() {
		return got == "null"
	}
	if standardError == 0 && want.Type != kinds.Float {
		return got == inJSON(want)
	}
	n, err := strconv.ParseFloat(got, 64)
	tolerance := max(5*standardError, 1e-9) * math.Abs(want.Float64())
	return err == nil && math.Abs(n-want.Float64()) <= tolerance
}
