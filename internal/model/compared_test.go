package model

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// comparedWindows compare fields of all types with the event in hand, in all kinds of windows, over a log of few events.
var comparedWindows = []string{
	"(10s, %s, tile=exact, max=8, where='int != event.int')",
	"(1m, %s, tile=exact, max=8, bounds='[]', where='bool and string == event.string')",
	"(20s, %s, tile=exact, max=8, delay=5s, where='abs(decimal - event.decimal) < 0.2 or float > event.float')",
	"(30s, %s, tile=exact, max=8, exclude=current, where='coalesce(int, 7) >= event.int and not (string == nil)')",
	"(lifetime, %s, tile=exact, max=8, where='int > -3 and haversine(location, event.location) < 4000 and timestamp <= event.timestamp')",
	"(rolling 40s last 5, %s, tile=exact, max=8, where='int * event.int > 1 or event.bool and string contains event.string')",
	"(session 4s, %s, tile=exact, max=8, where='float / event.float < 1')",
}

// Every function over windows that are compared with the event in hand equals the model: its Fold over the events that a
// plain evaluation of the whole filter takes.
func TestComparedWithTheEventInHandEqualsModel(t *testing.T) {
	r := defined.Registry(t, everyFunction(comparedWindows, func(function, window int, types []value.Type) []value.Type {
		i := (function + window) % len(types)
		return types[i : i+1]
	}))
	compared, capped := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		model, mapper, stored := New(r), r.NewMapper(), memory.New()
		var texts [][]byte
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			rec := hostileEvent(t)
			if len(texts) > 0 && rapid.IntRange(0, 5).Draw(t, "again") == 0 {
				rec.Value = texts[len(texts)-1]
			}
			texts = append(texts, rec.Value)
			applyToBoth(t, model, mapper, stored, &rec)
		}
		inHand := []*record.Event{nil, eventOf(t, r, recorded*1000+60_000, hostileEvent(t).Value)}
		if len(texts) > 0 {
			inHand = append(inHand, eventOf(t, r, recorded*1000+60_000, rapid.SampledFrom(texts).Draw(t, "in hand")))
		}
		at := recorded*1000 + rapid.Int64Range(-40, 80).Draw(t, "at")*500
		members := []value.Value{{Type: value.String, Str: []byte("s1")}, {Type: value.Int, Num: 1}}
		var reading query.Reading
		reading.Reset(at)
		for _, f := range r.Features {
			for _, user := range []string{"a", "b"} {
				for range inHand {
					reading.Want(about(f, members), user, at)
				}
			}
		}
		if err := reading.Read(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Features {
			for _, user := range []string{"a", "b"} {
				for _, event := range inHand {
					var got query.Answer
					reading.SetInHand(event)
					reading.Next(&got)
					if event == nil {
						if got.Status != query.NoEvent || !got.Value.IsNull() || got.Items != nil || got.Exact || got.Capped {
							t.Fatalf("%s without an event in hand: %+v", f.Definition, got)
						}
						continue
					}
					model.InHand = event
					want := model.Answer(f, user, at)
					if asked := about(f, members); asked != f {
						if want = model.AnswerMembers(f, user, at, asked.Call.Members); want.Capped {
							aggregate.DoubtMembers(want.Items)
						}
					}
					switch {
					case !want.Found && f.Per != "":
						want.Items = []aggregate.Item{}
					case !want.Found:
						want.Value = f.Spec.Neutral
					}
					if compared++; want.Capped {
						capped++
					}
					if diff := cmp.Diff(want.Value, got.Value) + cmp.Diff(want.Items, got.Items); diff != "" ||
						(want.Found || want.Capped) != (got.Status != query.NotFound) || want.Capped != got.Capped {
						t.Fatalf("%s of %s is %s, capped %t, want %t (-model +log):\n%s", f.Definition, user, got.Status, got.Capped, want.Capped, diff)
					}
				}
			}
		}
	})
	if capped == 0 || capped == compared {
		t.Errorf("%d of %d answers were capped", capped, compared)
	}
}

// about is a feature that is asked about members, if it has to be.
func about(f *features.Feature, members []value.Value) *features.Feature {
	if f.Membership() != aggregate.MembersRequired {
		return f
	}
	var of []value.Value
	for _, m := range members {
		m.Type, m.Scale = f.Call.Type, f.Call.Scale
		of = append(of, m)
	}
	return f.AskedAbout(of)
}

// hostileEvent is exactEvent with now and then a value at its limits, or a time of long ago.
func hostileEvent(t *rapid.T) record.Record {
	rec := exactEvent(t)
	old, worse := "", ""
	switch rapid.IntRange(0, 9).Draw(t, "hostile") {
	case 0:
		old, worse = `"int":`, `"int":`+rapid.SampledFrom([]string{"9223372036854775807", "-9223372036854775808"}).Draw(t, "extreme int")+`,"_":`
	case 1:
		old, worse = `"decimal":`, `"decimal":`+rapid.SampledFrom([]string{"9223372036854775.807", "-9223372036854775.808", "0"}).Draw(t, "extreme decimal")+`,"_":`
	case 2:
		old, worse = `"float":`, `"float":`+rapid.SampledFrom([]string{"1.7976931348623157e308", "-1.7976931348623157e308", "5e-324", "-0.0"}).Draw(t, "extreme float")+`,"_":`
	case 3:
		long := strings.Repeat("é", 200)
		old, worse = `"string":`, `"string":`+rapid.SampledFrom([]string{`"` + long + `"`, `"` + long + `e"`, `"event.string"`, `"\u0000|\""`}).Draw(t, "hostile string")+`,"_":`
	case 4:
		old, worse = fmt.Sprintf(`"at":%d`, recorded), fmt.Sprintf(`"at":%d`, recorded-100_000) // late
	case 5:
		old, worse = `"location":`, `"location":{"lat":90,"lon":-180},"_":`
	}
	if old != "" {
		rec.Value = bytes.Replace(rec.Value, []byte(old), []byte(worse), 1)
	}
	return rec
}

// eventOf decodes an event that is only looked at.
func eventOf(t *rapid.T, r *features.Registry, now int64, text []byte) *record.Event {
	rec := record.Record{Partition: state.Partition{Topic: "pay"}, Timestamp: now, Value: text}
	out, err := r.NewMapper().Map(&rec, 0, &state.Batch{Ranges: make([]state.PartitionRange, 1)})
	if err != nil || len(out.Events) != 1 {
		t.Fatal(err, out)
	}
	return out.Events[0].Clone()
}
