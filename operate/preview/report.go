package preview

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Report is what a preview found.
type Report struct {
	// Since is the moment since which all records of all logs were read, and At the moment of the questions, in ms. Cut
	// means that there were more records since the wanted moment than could be read, and Gone that older ones may be
	// missing, because retention has removed some or a batch is damaged.
	Since int64 `json:"since"`
	At    int64 `json:"at"`
	Cut   bool  `json:"cut,omitempty"`
	Gone  bool  `json:"gone,omitempty"`
	// Records is the number of records read: a stream accepted Events of them, and none accepted Unmatched. Late counts
	// the events that were too late for some feature.
	Records   int        `json:"records"`
	Events    int        `json:"events"`
	Unmatched int        `json:"unmatched"`
	Repeated  int        `json:"repeated,omitempty"` // records whose events earlier ones had, of streams with dedup
	Late      int        `json:"late"`
	SetAside  []SetAside `json:"set_aside,omitempty"`
	// Streams is what an event costs all definitions.
	Streams  []cost.Stream `json:"streams"`
	Features []Feature     `json:"features"`
}

// SetAside counts the records that cannot be used for one reason.
type SetAside struct {
	Reason  string   `json:"reason"`
	Records int      `json:"records"`
	First   []string `json:"first"` // the first ones, each with its location
}

// Feature is the report on one feature.
type Feature struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
	// Window is since when the feature counts events, in ms; null for a lifetime. Part means that the window begins
	// before the records read: values are of a part of the window.
	Window *int64   `json:"window"`
	Part   bool     `json:"part,omitempty"`
	By     []string `json:"by"`
	Used   *Used    `json:"used,omitempty"` // nil for a feature that is made of others
	// Entities is the number of entities in the events, Asked the number of those that were asked about.
	Entities int `json:"entities"`
	Asked    int `json:"asked"`
	// Statuses counts the answers by status, and Nulls those without a value.
	Statuses map[query.Status]int `json:"statuses,omitempty"`
	Nulls    int                  `json:"nulls"`
	// Numbers is the distribution of numeric values, Lengths the distribution of the lengths of lists, and Values are
	// the most frequent other values.
	Numbers  *Distribution `json:"numbers,omitempty"`
	Lengths  *Distribution `json:"lengths,omitempty"`
	Values   []Frequency   `json:"values,omitempty"`
	Examples []Example     `json:"examples,omitempty"`
	Note     string        `json:"note,omitempty"`
	// What a question reads at most, and what an entity takes in Redis with one event and when full;
	// see cost.Entity.
	Keys       int   `json:"keys"`
	RoundTrips int   `json:"round_trips"`
	BytesOnce  int64 `json:"bytes_once,omitempty"`
	BytesFull  int64 `json:"bytes_full,omitempty"`

	shape  aggregate.Shape
	values []value.Value
}

// Distribution is the least value, percentiles by the nearest rank, and the greatest value.
type Distribution struct {
	Min json.RawMessage `json:"min"`
	P50 json.RawMessage `json:"p50"`
	P90 json.RawMessage `json:"p90"`
	P99 json.RawMessage `json:"p99"`
	Max json.RawMessage `json:"max"`
}

// Frequency is how often a value was answered.
type Frequency struct {
	Value json.RawMessage `json:"value"`
	Count int             `json:"count"`
}

// Example is the answer about one entity.
type Example struct {
	Entity string          `json:"entity"` // its keys: key=value, as weir query takes them
	Events int             `json:"events"`
	Answer json.RawMessage `json:"answer"` // as /v1/query gives it
}

// newFeature makes the report on a feature whose window begins at from. Its answers are added later.
func newFeature(costs *cost.Explanation, f *features.Feature, entities int, from, since int64) *Feature {
	shown := &Feature{
		Name: f.Name, Definition: f.Definition, By: f.By, Part: from < since, Entities: entities,
		Statuses: map[query.Status]int{}, shape: f.Shape(),
	}
	if from != state.MinTime {
		shown.Window = &from
	}
	for _, c := range costs.Features {
		if c.Name == f.Name {
			shown.Keys, shown.RoundTrips = c.Keys, c.RoundTrips
		}
	}
	for _, e := range costs.Entities {
		if slices.Equal(e.By, f.By) {
			shown.BytesOnce, shown.BytesFull = e.BytesOnce, e.BytesFull
		}
	}
	return shown
}

// add counts an answer.
func (f *Feature) add(a *query.Answer) {
	f.Asked++
	f.Statuses[a.Status]++
	switch {
	case a.Value.IsNull() && a.Items == nil:
		f.Nulls++
	case f.shape != aggregate.Scalar:
		f.values = append(f.values, value.Value{Type: value.Int, Num: int64(len(a.Items))})
	default:
		v := a.Value
		v.Str = slices.Clone(v.Str)
		f.values = append(f.values, v)
	}
}

// mostFrequent is how many of the most frequent values are reported.
const mostFrequent = 5

// summarize computes the distribution of the values.
func (f *Feature) summarize() {
	if len(f.values) == 0 {
		return
	}
	slices.SortFunc(f.values, compare)
	switch typ := f.values[0].Type; {
	case f.shape != aggregate.Scalar:
		f.Lengths = distributionOf(f.values)
	case typ.Numeric() || typ == value.Timestamp:
		f.Numbers = distributionOf(f.values)
	default:
		f.Values = frequenciesOf(f.values)
	}
}

// compare orders values of one feature; a default may be a number of another scale.
func compare(a, b value.Value) int {
	switch {
	case a.Type == value.Float || b.Type == value.Float:
		return cmp.Compare(a.Float64(), b.Float64())
	case a.Type.Numeric() || a.Type == value.Timestamp:
		return value.CompareExact(&a, &b)
	default:
		return bytes.Compare(query.AppendTyped(nil, a), query.AppendTyped(nil, b))
	}
}

// distributionOf describes sorted values.
func distributionOf(sorted []value.Value) *Distribution {
	at := func(percent int) json.RawMessage {
		rank := (len(sorted)*percent + 99) / 100 // from 1
		return query.AppendTyped(nil, sorted[max(rank, 1)-1])
	}
	return &Distribution{Min: at(0), P50: at(50), P90: at(90), P99: at(99), Max: at(100)}
}

// frequenciesOf counts values; equal ones are neighbors.
func frequenciesOf(sorted []value.Value) (list []Frequency) {
	for _, v := range sorted {
		text := query.AppendTyped(nil, v)
		if n := len(list); n > 0 && string(list[n-1].Value) == string(text) {
			list[n-1].Count++
			continue
		}
		list = append(list, Frequency{text, 1})
	}
	slices.SortStableFunc(list, func(a, b Frequency) int { return cmp.Compare(b.Count, a.Count) })
	return list[:min(len(list), mostFrequent)]
}

// WriteText writes the report as text.
func (r *Report) WriteText(b *strings.Builder) {
	fmt.Fprintf(b, "%s since %s: %d used", spelling.Counted(r.Records, "record"), spelling.Moment(r.Since), r.Events)
	for _, n := range []struct {
		n    int
		said string
	}{{r.Unmatched, "of no stream"}, {r.Repeated, "repeated"}, {r.Late, "too late for some feature"}} {
		if n.n > 0 {
			fmt.Fprintf(b, ", %d %s", n.n, n.said)
		}
	}
	b.WriteByte('\n')
	if r.Cut {
		b.WriteString("these are the newest; there are more, see --records\n")
	}
	if r.Gone {
		b.WriteString("older ones may be missing: retention has removed some, or a batch is damaged\n")
	}
	for _, s := range r.SetAside {
		fmt.Fprintf(b, "%d set aside as %s:\n", s.Records, s.Reason)
		for _, first := range s.First {
			fmt.Fprintf(b, "  %s\n", first)
		}
		if more := s.Records - len(s.First); more > 0 {
			fmt.Fprintf(b, "  and %d more\n", more)
		}
	}
	for _, s := range r.Streams {
		fmt.Fprintf(b, "cost of an event of %s, for all definitions: entities %d, mutations %d, filters %d\n", s.Name, s.Entities, s.Mutations, s.Filters)
	}
	for i := range r.Features {
		r.Features[i].writeText(b)
	}
}

func (f *Feature) writeText(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s: %s\n", f.Name, f.Definition)
	switch {
	case f.Part && f.Window == nil:
		b.WriteString("  counts only these records, of all there ever were\n")
	case f.Part:
		fmt.Fprintf(b, "  counts only these records, of a window since %s\n", spelling.Moment(*f.Window))
	}
	fmt.Fprintf(b, "  cost: keys of a question %d, round trips %d, bytes of an entity %d to %d for all features of it\n",
		f.Keys, f.RoundTrips, f.BytesOnce, f.BytesFull)
	f.Used.writeText(b, f.By)
	if f.Note != "" {
		fmt.Fprintf(b, "  %s\n", f.Note)
		return
	}
	entities := "entities"
	if f.Entities == 1 {
		entities = "entity"
	}
	fmt.Fprintf(b, "  %d %s", f.Entities, entities)
	if f.Asked < f.Entities {
		fmt.Fprintf(b, ", %d asked", f.Asked)
	}
	if f.Asked > 0 {
		fmt.Fprintf(b, ", %.1f%% null", 100*float64(f.Nulls)/float64(f.Asked))
	}
	for _, status := range query.Statuses {
		if n := f.Statuses[status]; n > 0 {
			fmt.Fprintf(b, ", %d %s", n, status)
		}
	}
	b.WriteByte('\n')
	for _, d := range []struct {
		*Distribution
		of string
	}{{f.Numbers, ""}, {f.Lengths, "length: "}} {
		if d.Distribution != nil {
			fmt.Fprintf(b, "  %smin %s, p50 %s, p90 %s, p99 %s, max %s\n", d.of, d.Min, d.P50, d.P90, d.P99, d.Max)
		}
	}
	for _, v := range f.Values {
		fmt.Fprintf(b, "  %s: %d\n", v.Value, v.Count)
	}
	for _, e := range f.Examples {
		var answer struct{ Value json.RawMessage }
		if err := json.Unmarshal(e.Answer, &answer); err != nil {
			panic(err) // it was encoded here
		}
		fmt.Fprintf(b, "  %s: %s (of events: %d)\n", spelling.Visible(e.Entity), answer.Value, e.Events)
	}
}
