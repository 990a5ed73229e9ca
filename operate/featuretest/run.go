package featuretest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/tables"
	"github.com/weir-stream/weir/value"
)

// Run runs the tests of a file. It returns an error if the file or the definitions are invalid, not
// if a test fails.
func Run(ctx context.Context, name string) (*Result, error) {
	f, err := read(name)
	if err != nil {
		return nil, err
	}
	registry, err := definition.Load(f.definitions...)
	if err != nil {
		return nil, err
	}
	for stream, n := range f.defaults {
		if _, err := registry.StreamNamed(stream); err != nil {
			f.find(n, "defaults: %v", err)
		}
	}
	f.checkTables(registry, f.tables)
	r, asked := &Result{File: name, Definitions: strings.Join(f.definitions, ", ")}, map[string]bool{}
	for i := range f.tests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		began := time.Now()
		run := &run{file: f, test: &f.tests[i], registry: registry, mapper: registry.NewJSONMapper(), records: registry.NewTextMapper(), state: memory.New(), asked: asked, earlier: map[string]*record.Earlier{}}
		for _, topic := range registry.Topics() {
			run.earlier[topic] = record.NewEarlier(registry.Streams, topic, state.NewSecret())
		}
		f.checkTables(registry, run.test.tables)
		run.tables = f.tablesOf(registry, slices.Concat(f.tables, run.test.tables))
		run.result = TestResult{Name: f.tests[i].name, Line: f.tests[i].line}
		run.do(ctx)
		run.result.Took = time.Since(began)
		r.Tests = append(r.Tests, run.result)
	}
	if len(f.findings) > 0 {
		return nil, f.findings
	}
	for _, feature := range registry.Features {
		if !asked[feature.Name] {
			r.Untested = append(r.Untested, feature.Name)
		}
	}
	return r, nil
}

// run is one run of a test.
type run struct {
	*file
	*test
	registry *features.Registry
	mapper   *features.Mapper // of events
	records  *features.Mapper // as they are in their topics
	state    *memory.Store
	tables   *tables.Set
	asked    map[string]bool            // features of all tests
	earlier  map[string]*record.Earlier // by topic, as if each had one partition
	result   TestResult
	offset   int64
	now      int64         // time of the newest event, in milliseconds
	inHand   *record.Event // of the question; nil for none
}

func (r *run) fail(n *yaml.Node, format string, args ...any) {
	r.result.Failures = append(r.result.Failures, Failure{Line: n.Line, Message: fmt.Sprintf(format, args...)})
}

// do applies events and asks questions in the order of their moments. A question is answered from
// all events up to and including its millisecond.
func (r *run) do(ctx context.Context) {
	events, questions := slices.Clone(r.events), slices.Clone(r.questions)
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.came, b.came) })
	slices.SortStableFunc(questions, func(a, b ask) int { return cmp.Compare(a.at, b.at) })
	for _, q := range questions {
		for len(events) > 0 && events[0].came <= q.at {
			r.apply(ctx, &events[0])
			events = events[1:]
		}
		r.ask(ctx, &q)
	}
	for i := range events {
		r.find(events[i].node, "the event comes after all questions, so nothing is asked about it")
	}
}

// apply applies an event.
func (r *run) apply(ctx context.Context, e *event) {
	text, err := r.recordOf(r.registry, e)
	if err != nil {
		r.find(e.node, "%v", err)
		return
	}
	topic, mapper := e.topic, r.records
	if s, ok := r.registry.Stream(e.stream); ok {
		topic, mapper = s.Topic, r.mapper
	} else if topics := r.registry.Topics(); !slices.Contains(topics, topic) {
		r.find(e.node, "%s", spelling.Unknown("topic", topic, topics))
		return
	}
	r.now = max(r.now, e.came)
	batch := &state.Batch{Now: e.came}
	outcome, err := mapper.Map(&record.Record{Partition: state.Partition{Topic: topic}, Offset: r.offset, Timestamp: e.came, Value: text, Earlier: r.earlier[topic]}, 0, batch)
	r.offset++
	poison, isPoison := errors.AsType[*record.Poison](err)
	switch {
	case isPoison && e.poison == string(poison.Reason):
		return
	case err != nil:
		r.fail(e.node, "the event cannot be used: %v%s", err, reason(poison))
		return
	case e.poison != "":
		r.fail(e.node, "the event can be used, and was to be set aside as %s", e.poison)
	case e.stream != "" && !slices.Contains(outcome.Streams, e.stream) && !slices.Contains(outcome.Repeats, e.stream):
		s, _ := r.registry.Stream(e.stream)
		r.fail(e.node, "stream %s does not take the event %s: %s", e.stream, text, taking(s))
		return
	}
	if err := r.state.Apply(ctx, batch); err != nil {
		r.fail(e.node, "%v", err)
	}
}

// taking says which events a stream takes.
func taking(s *record.Stream) string {
	if s.Match == nil {
		return "it makes one of each element of " + strings.Join(s.Each, ".")
	}
	return "its match is " + s.Match.Text
}

// reason returns how a test expects a poison event.
func reason(p *record.Poison) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("\nif that is as it should be, say beside the event: poison: %s", p.Reason)
}

// ask asks a question, feature by feature in the order of names.
func (r *run) ask(ctx context.Context, q *ask) {
	keys := map[string]*yaml.Node{}
	each(q.entity, func(key, v *yaml.Node) { keys[key.Value] = v })
	if r.inHand = nil; q.event != nil {
		if r.inHand = r.look(q); r.inHand == nil {
			return
		}
	}
	each(q.expect, func(key, want *yaml.Node) {
		f, err := r.registry.FeatureNamed(key.Value)
		if err != nil {
			r.find(key, "%v", err)
			return
		}
		r.asked[f.Name] = true
		entity, known, err := entityOf(f, keys)
		if err != nil {
			r.find(q.entity, "%v", err)
			return
		}
		if f.Membership() == aggregate.MembersRequired {
			r.askMembers(ctx, q, f, entity, known, key, want)
			return
		}
		var a query.Answer
		if err := r.answer(ctx, q, f, entity, known, &a); err != nil {
			r.fail(key, "%v", err)
			return
		}
		r.result.Values++
		if difference := differs(r.file, f, &a, want); difference != "" {
			r.fail(key, "%s of %s at %s: %s", f.Name, state.NameEntity(f.By, entity, ", "), r.momentText(q.at), difference)
		}
	})
}

// answer answers about an entity as the query API does: there are no events of one of which a key is not known.
func (r *run) answer(ctx context.Context, q *ask, f *features.Feature, entity string, known bool, a *query.Answer) error {
	if !known {
		*a = query.Answer{Status: query.NotFound, Exact: true}
		a.From, a.To = query.Covers(f, q.at, max(r.now, q.at))
		return nil
	}
	if f.Forgets() && q.at < r.now-f.Keep.Milliseconds() {
		*a = query.Answer{Status: query.OutsideMaxAge}
		return nil
	}
	var reading query.Reading
	reading.Reset(max(r.now, q.at))
	if r.inHand != nil && f.InHand != nil && f.MayBeOf(r.inHand, entity) {
		reading.SetInHand(r.inHand)
	}
	reading.SetTables(r.tables)
	reading.Want(f, entity, q.at)
	if err := reading.Read(ctx, r.state); err != nil {
		return err
	}
	reading.Next(a)
	return a.Err
}

// look reads the event in hand of a question, which is not applied; nil if it cannot be used.
func (r *run) look(q *ask) *record.Event {
	text, err := r.recordOf(r.registry, q.event)
	if err != nil {
		r.find(q.event.node, "%v", err)
		return nil
	}
	s, _ := r.registry.Stream(q.event.stream)
	batch := &state.Batch{Ranges: []state.PartitionRange{{}}, Now: q.at}
	outcome, err := r.mapper.Map(&record.Record{Partition: state.Partition{Topic: s.Topic}, Timestamp: q.at, Value: text}, 0, batch)
	if err != nil {
		r.fail(q.event.node, "the event cannot be used: %v", err)
		return nil
	}
	i := slices.IndexFunc(outcome.Events, func(e record.Event) bool { return e.Stream.Name == s.Name })
	if i < 0 {
		r.fail(q.event.node, "stream %s does not take the event %s: %s", s.Name, text, taking(s))
		return nil
	}
	return outcome.Events[i].Clone()
}

// askMembers asks for each value in an expectation whether the window holds it.
func (r *run) askMembers(ctx context.Context, q *ask, f *features.Feature, entity string, known bool, key, want *yaml.Node) {
	field := f.Stream.Fields[f.Stream.FieldIndex(f.Field)]
	if want.Kind != yaml.MappingNode || len(want.Content) == 0 {
		r.find(key, "feature %q is asked about values of %s: write {VALUE: true, VALUE: false}", f.Name, field.Name)
		return
	}
	each(want, func(member, yes *yaml.Node) {
		v, why := parsed(field.Type, field.Scale, member.Value)
		if why != "" {
			r.find(member, "%q is not of type %s, which %s is: %s", member.Value, field.Type, field.Name, why)
			return
		}
		var a query.Answer
		if err := r.answer(ctx, q, f.AskedAbout([]value.Value{v}), entity, known, &a); err != nil {
			r.fail(member, "%v", err)
			return
		}
		r.result.Values++
		var got value.Value // of no items, as where a key is null, nothing is known
		if len(a.Items) > 0 {
			got = a.Items[0].Value
		}
		if got := string(query.AppendTyped(nil, got)); got != toJSON(yes) {
			r.fail(member, "%s of %s at %s: expected %s of %q, got %s%s",
				f.Name, state.NameEntity(f.By, entity, ", "), r.momentText(q.at), toJSON(yes), member.Value, got, r.file.details(&a))
		}
	})
}

// parsed returns the value of a type that a text stands for, or why it stands for none.
func parsed(t value.Type, scale uint8, text string) (v value.Value, why string) {
	if t != value.Int && t != value.Decimal {
		if v = value.ParseText(t, scale, text); v.IsNull() {
			why = map[value.Type]string{value.Float: "it is no number", value.Bool: "write true or false", value.Timestamp: "write milliseconds since 1970"}[t]
		}
		return v, why
	}
	n, ok := value.ParseNumber([]byte(text))
	if !ok {
		return v, "it is no number"
	}
	num, how := n.Scaled(int(scale))
	switch {
	case how == value.Overflow:
		return v, "it does not fit 64 bits"
	case how == value.Fraction && scale == 0:
		return v, "it is no whole number"
	case how == value.Fraction:
		return v, fmt.Sprintf("it has more than %s after the decimal point", spelling.Counted(int(scale), "digit"))
	}
	return value.Value{Type: t, Num: num, Scale: scale}, ""
}

// entityOf returns the text of a feature's entity, made from the question's keys; known is false if one of them is null.
func entityOf(f *features.Feature, keys map[string]*yaml.Node) (entity string, known bool, err error) {
	var text []byte
	known = true
	for i, name := range f.By {
		n := keys[name]
		if n == nil {
			return "", false, fmt.Errorf("feature %q needs %s; the entity has %s", f.Name, strings.Join(f.By, ", "), strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
		}
		var v value.Value
		if isNothing(n) {
			known = false
		} else {
			key, why := f.Key(name), ""
			v, why = parsed(key.Type, key.Scale, n.Value)
			if n.Kind != yaml.ScalarNode {
				why = "it is no single value"
			}
			if why != "" {
				return "", false, fmt.Errorf("%s: %q is not of type %s, which feature %q needs: %s", name, n.Value, key.Type, f.Name, why)
			}
		}
		text = state.AppendEntity(text, i == 0, v)
	}
	return string(text), known, nil
}
