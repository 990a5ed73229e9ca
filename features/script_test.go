package features_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// A script in testdata/scripts states the answers of features after events, in lines that are readable without the
// code. streams.yaml there defines its streams.
//
//	feature NAME: DEFINITION
//	event TIME FIELD=VALUE…
//	eval TIME FEATURE FIELD=VALUE… [members=VALUE,…]
//	expect VALUE [STATUS] [capped] [within ERROR] [from TIME] [to TIME]
//
// A time is on a base day (10:00 or 10:00:00.5), a day after it (10:00+1d), or any day
// (2026-03-29T01:00), all in UTC. A value is JSON, in which a timestamp is written as such a time.
// A float matches if it rounds to the digits written. The default status is PRESENT.
type script struct {
	*testing.T
	line      int
	registry  *features.Registry
	mapper    *features.Mapper
	state     *memory.Store
	answer    query.Answer
	functions map[string]bool // that were asked for
}

var scriptDay = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)

func TestScripts(t *testing.T) {
	streams, err := os.ReadFile("testdata/scripts/streams.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("testdata/scripts/*.txt")
	asked := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := &script{T: t, state: memory.New(), functions: asked}
			s.run(string(streams), strings.Split(string(text), "\n"))
		})
	}
	for _, k := range aggregate.All {
		if !asked[k.Spec().Name] {
			t.Errorf("no script asks for %s", k.Spec().Name)
		}
	}
}

func (s *script) run(definitions string, lines []string) {
	definitions += "features:\n"
	for _, line := range lines {
		if definition, ok := strings.CutPrefix(line, "feature "); ok {
			definitions += "  " + definition + "\n"
		}
	}
	s.registry = defined.Registry(s, definitions)
	s.mapper = s.registry.NewMapper()
	for i, line := range lines {
		s.line = i + 1
		verb, rest, _ := strings.Cut(line, " ")
		switch words := strings.Fields(rest); {
		case verb == "" || verb == "#" || verb == "feature":
		case verb == "event":
			s.event(words)
		case verb == "eval":
			s.eval(words)
		case verb == "expect":
			s.expect(rest)
		default:
			s.failf("unknown verb %q", verb)
		}
	}
}

func (s *script) failf(format string, args ...any) {
	s.Helper()
	s.Fatalf("line %d: %s", s.line, fmt.Sprintf(format, args...))
}

// moment reads a time.
func (s *script) moment(text string) int64 {
	clock, later, _ := strings.Cut(text, "+")
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.Parse(layout, clock); err == nil {
			days, _ := strconv.Atoi(strings.TrimSuffix(later, "d"))
			return scriptDay.AddDate(0, 0, days).Add(t.Sub(t.Truncate(24 * time.Hour))).UnixMilli()
		}
		if t, err := time.Parse("2006-01-02T"+layout, text); err == nil {
			return t.UnixMilli()
		}
	}
	s.failf("bad time %q", text)
	return 0
}

// value reads a field's value into JSON.
func (s *script) value(field record.Field, text string) any {
	switch field.Type {
	case value.String:
		return text
	case value.Timestamp:
		return s.moment(text)
	case value.Location:
		lat, lon, _ := strings.Cut(text, ",")
		return map[string]json.Number{"lat": json.Number(lat), "lon": json.Number(lon)}
	default:
		return json.RawMessage(text)
	}
}

func (s *script) event(words []string) {
	at, stream := s.moment(words[0]), s.registry.Streams[0]
	event := map[string]any{"ts": at}
	for _, w := range words[1:] {
		name, text, _ := strings.Cut(w, "=")
		field := stream.FieldIndex(name)
		if field < 0 {
			s.failf("unknown field %q", name)
		}
		event[name] = s.value(stream.Fields[field], text)
	}
	rec, err := json.Marshal(event)
	if err != nil {
		s.failf("%v", err)
	}
	b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	if _, err := s.mapper.Map(&record.Record{Partition: state.Partition{Topic: stream.Topic}, Timestamp: at, Value: rec}, 0, b); err != nil {
		s.failf("%v", err)
	}
	if err := s.state.Apply(context.Background(), b); err != nil {
		s.failf("%v", err)
	}
}

func (s *script) eval(words []string) {
	f, ok := s.registry.Feature(words[1])
	if !ok {
		s.failf("no feature %q", words[1])
	}
	given := map[string]string{}
	for _, w := range words[2:] {
		name, text, _ := strings.Cut(w, "=")
		given[name] = text
	}
	var entity []byte
	for i, by := range f.By {
		entity = state.AppendEntity(entity, i == 0, value.Value{Type: value.String, Str: []byte(given[by])})
	}
	if list, ok := given["members"]; ok {
		var members []value.Value
		for text := range strings.SplitSeq(list, ",") {
			members = append(members, value.Value{Type: value.String, Str: []byte(text)})
		}
		f = f.AskedAbout(members)
	}
	at := s.moment(words[0])
	var r query.Reading
	r.Reset(at)
	r.Want(f, string(entity), at)
	if err := r.Read(context.Background(), s.state); err != nil {
		s.failf("%v", err)
	}
	r.Next(&s.answer)
	if _, derived := f.Basis.(*features.Derived); !derived {
		s.functions[f.Function.Spec().Name] = true
	}
}

func (s *script) expect(text string) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var want any
	if err := decoder.Decode(&want); err != nil {
		s.failf("bad value: %v", err)
	}
	rest, _ := io.ReadAll(decoder.Buffered())
	status, capped, within := query.Present, false, 0.0
	words := strings.Fields(string(rest))
	for i := 0; i < len(words); i++ {
		switch word := words[i]; word {
		case "capped":
			capped = true
		case "within":
			i++
			within, _ = strconv.ParseFloat(words[i], 64)
		case "from", "to":
			i++
			s.covers(word, words[i])
		default:
			status = query.Status(word)
		}
	}
	a := s.answer
	if got := answered(a); !agrees(want, got) || a.Status != status || a.Capped != capped || a.RelativeError+a.StandardError != within {
		shown, _ := json.Marshal(got)
		s.Errorf("line %d: %s %s capped=%v within=%v, want %s", s.line, shown, a.Status, a.Capped, a.RelativeError+a.StandardError, text)
	}
}

// covers checks one edge of the covered window.
func (s *script) covers(edge, text string) {
	s.Helper()
	want, got := s.moment(text), s.answer.To
	if edge == "from" {
		got = s.answer.From
	}
	if want != got {
		s.Errorf("line %d: %s %s, want %s", s.line, edge, time.UnixMilli(got).UTC().Format(time.RFC3339Nano), text)
	}
}

// answered is an answer's value as scripts write it.
func answered(a query.Answer) any {
	if a.Items == nil {
		return scalar(a.Value)
	}
	if a.Shape == aggregate.Categories {
		values := map[string]any{}
		for _, i := range a.Items {
			values[string(i.Category.AppendText(nil))] = scalar(i.Value)
		}
		return values
	}
	var list []any
	for _, i := range a.Items {
		switch n := json.Number(strconv.FormatInt(i.Count, 10)); a.Shape {
		case aggregate.Counts:
			list = append(list, map[string]any{"value": scalar(i.Value), "count": n})
		case aggregate.Bins:
			list = append(list, map[string]any{"from": scalar(i.From), "to": scalar(i.To), "count": n})
		default:
			list = append(list, scalar(i.Value))
		}
	}
	return list
}

func scalar(v value.Value) any {
	switch v.Type {
	case value.Null:
		return nil
	case value.Float:
		return v.Flt
	case value.Bool:
		return v.Num != 0
	case value.String:
		return string(v.Str)
	case value.Location:
		return []any{v.Flt, v.Lon}
	case value.Timestamp:
		t := time.UnixMilli(v.Num).UTC()
		text := t.Format("15:04:05.999")
		if days := int(t.Sub(scriptDay) / (24 * time.Hour)); days > 0 {
			text += fmt.Sprintf("+%dd", days)
		}
		return text
	default:
		return json.Number(v.AppendText(nil))
	}
}

// agrees compares the value that a script expects with an answer's.
func agrees(want, got any) bool {
	switch want := want.(type) {
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return false
		}
		for i := range want {
			if !agrees(want[i], list[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		members, ok := got.(map[string]any)
		if !ok || len(members) != len(want) {
			return false
		}
		for name := range want {
			if !agrees(want[name], members[name]) {
				return false
			}
		}
		return true
	case json.Number:
		if number, ok := got.(float64); ok {
			_, digits, _ := strings.Cut(want.String(), ".")
			f, _ := want.Float64()
			return math.Abs(number-f) <= 0.5000001*math.Pow10(-len(digits))
		}
	}
	return want == got
}
