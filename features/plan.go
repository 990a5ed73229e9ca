package features

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Plan returns the plan of a processor with these definitions.
func (r *Registry) Plan() *state.Plan { return r.plan }

// makePlan collects the state that is kept, in which tiles, and what each feature needs of it.
func (r *Registry) makePlan(tiling map[string]state.Tiling) {
	r.plan = &state.Plan{Retained: map[string]state.Retention{}, Topics: map[string][]string{}, Tiling: tiling}
	for _, s := range r.Streams {
		topics := s.Topics()
		keep := func(key string, kept state.Retention) { r.plan.Retained[key], r.plan.Topics[key] = kept, topics }
		for _, w := range r.writes[s] {
			for _, sw := range w.series {
				keep(seriesKey(s, sw.series), state.Retention{Keep: sw.series.Keep, Max: capOf(sw.series)})
			}
			for _, ids := range w.ids {
				keep(seriesKey(s, ids), state.Retention{Keep: ids.Keep})
			}
			for _, log := range w.logs {
				kept := state.Retention{Keep: log.series.Keep, Max: capOf(log.series)}
				log.retained(s, func(key string) { keep(key, kept) })
			}
		}
	}
	text, err := json.Marshal(r.plan)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	r.plan.Version = hashID("plan 1\n"+string(text), versionLength)
	for _, f := range r.Features {
		f.retain()
	}
}

const versionLength = 12

// capOf returns the cap of a series that definitions may raise without making another series of it; 0 for series
// without one. State that a lower cap has dropped is missing under a higher one.
func capOf(s *state.Series) int {
	if !s.Layout().Raisable() {
		return 0
	}
	return cmp.Or(s.Max, s.Values)
}

// retained names what a log keeps: each column, each filter whose events are all kept, and, if so, all events.
func (l *logWrite) retained(s *record.Stream, name func(key string)) {
	for _, c := range l.columns {
		text := ""
		if c.where != nil {
			text = c.where.Text
		} else {
			text = s.Fields[c.field].Name
		}
		name(columnKey(s, l.series, c.Column, text))
		if c.where != nil && (l.every || c.filters) {
			name(columnKey(s, l.series, c.Column, text) + filtered)
		}
	}
	if l.every {
		name(seriesKey(s, l.series))
	}
}

// filtered is the suffix of the key of a filter whose events are kept.
const filtered = "!"

// seriesKey returns the key in Plan.Retained of a series fed by a stream's events, with the current definition of the
// stream.
func seriesKey(stream *record.Stream, s *state.Series) string {
	return s.ID + "." + origin(stream, strings.Join(slices.Concat(s.By, []string{s.Field, s.Where, s.Condition, s.Quotient, s.Per}), " "), s.Field, s.Per)
}

// columnKey returns the key in Plan.Retained of a log column; text is the name of a field or an expression.
func columnKey(stream *record.Stream, s *state.Series, c state.Column, text string) string {
	return fmt.Sprintf("%s.%s:%06x", s.ID, origin(stream, strings.Join(s.By, " ")+" "+text, text), c.Tag())
}

// origin returns a hash of where a stream's events come from, and of the paths of the fields that a text of names and
// expressions depends on. It is not part of a series' identity: when a stream is read in another way, its state stays,
// complete since the change. So it does when the values of a kept field are shortened in another way, because a long one
// would then count as two. What only makes fewer or more records dead letters is not hashed. Plans outlive a release, so the
// hashed text must change only with its version.
func origin(stream *record.Stream, rests string, kept ...string) string {
	var texts []string
	for _, in := range stream.Sources() {
		texts = append(texts, originIn(in, rests, kept))
	}
	slices.Sort(texts) // the order of the topics has no meaning either
	return hashID(strings.Join(texts, ""), originLength)
}

// originIn returns the text of which origin is the hash, for a stream as one topic has it.
func originIn(stream *record.Stream, rests string, kept []string) string {
	var b strings.Builder
	var fields []string
	form := stream.Timestamp.Form
	form.Lenient = false
	fmt.Fprintf(&b, "origin 1\ntopic %s\nformat %s\ntime %q %s\n",
		stream.Topic, stream.Format, stream.Timestamp.Path, form)
	if stream.Dedup > 0 { // other events count
		fmt.Fprintf(&b, "dedup %d %q\n", stream.Dedup.Milliseconds(), stream.ID)
	}
	if stream.Each != nil {
		fmt.Fprintf(&b, "each %q\n", stream.Each)
	}
	if stream.Match != nil {
		fmt.Fprintf(&b, "match %q\n", stream.Match.Text)
		rests += " " + stream.Match.Text
	}
	for _, f := range slices.Backward(stream.Fields) {
		if !slices.Contains(identifier.FindAllString(rests, -1), f.Name) {
			continue
		}
		f.Lenient, f.Form.Lenient, f.Round = false, false, false
		text := fmt.Sprintf("field %s %q %s %d %s", f.Name, f.Path, f.Type, f.Scale, f.Form) + f.Reading()
		if f.Type == value.String && f.MaxBytes != value.MaxText && slices.Contains(kept, f.Name) {
			text += fmt.Sprintf(" of %d bytes", f.MaxBytes)
		}
		fields = append(fields, text+"\n")
		if f.Expr != nil {
			rests += " " + f.Expr.Text
		}
	}
	slices.Sort(fields) // their order in the stream has no meaning
	return b.String() + strings.Join(fields, "")
}

const originLength = 6
