package model

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/embedded"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	redisstore "github.com/weir-stream/weir/store/redis"
	"github.com/weir-stream/weir/value"
)

// derivedDefinitions are derived features over streams, entities, windows and each other.
const derivedDefinitions = definitions + `
  ok_1h: COUNT(1h, pay, user, where='status == "ok"', tile=exact)
  device_1h: COUNT(1h, pay, device)
  ok_rate: {expr: ok_1h / count_1h, default: 0}
  above: {expr: max_1h > avg_1h * 1.5}
  left: {expr: 10.00 - paid_1h, default: 10}
  level: {expr: 'ok_rate > 0.5 ? "good" : recent_1h > 1 ? "bad" : nil', default: none}
  of_device: {expr: pair_1h / device_1h}
  mixed: {expr: '(of_device ?? 0) + ok_rate * count_ever'}
  times: {expr: 'event.amount / avg_1h', stream: pay, default: -1}
  like: {expr: 'event.status == "ok" or event.device != "" and times > 1', stream: pay}
  nothing: {expr: 'event.amount ?? (count_1h > 0 ? nil : max_1h)', stream: pay}
  of_like: {expr: 'like ? ok_rate : mixed'}
`

func TestDerivedAnswer(t *testing.T) {
	r := defined.Registry(t, derivedDefinitions)
	f := &fixture{t, r, New(r)}
	f.apply(0, `"user":"a","device":"d|1","amount":1.10,"status":"ok"`)
	f.apply(60, `"user":"a","device":"d2","amount":2.20,"status":"no"`)
	f.apply(61, `"user":"a","device":"d2"`)
	f.apply(62, `"user":"b","device":"d2","amount":9.99,"status":"ok"`)
	f.want("a", 62, map[string]string{"ok_rate": "0.3333333333333333", "above": "false", "left": "8.9", "level": "bad capped"})
	f.want("b", 62, map[string]string{"ok_rate": "1", "above": "false", "left": "0.01", "level": "good"})
	f.want("c", 62, map[string]string{"ok_rate": "0 nothing", "above": " nothing", "left": "10 nothing", "level": "none nothing"})
	f.want("a|d2", 62, map[string]string{"of_device": "0.6666666666666666", "mixed": "1.6666666666666665"})
	f.want(`a|d\|1`, 62, map[string]string{"of_device": "1", "mixed": "2"})
	f.want("a|d3", 62, map[string]string{"of_device": " nothing", "mixed": "1"})
}

// The store's answers equal what the model computes from its own answers for their parts.
func TestDerivedFeaturesEqualModel(t *testing.T) {
	server, err := embedded.Redis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	registry := defined.Registry(t, derivedDefinitions)
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		server.FlushAll()
		s := redisstore.New(client, "derived", 2)
		m := New(registry)
		now := applyRandom(t, s, m, registry)
		for _, f := range registry.Features {
			if _, derived := f.Basis.(*features.Derived); !derived {
				continue
			}
			entity := rapid.SampledFrom(m.entitiesAsked(f)).Draw(t, f.Name)
			at := now - rapid.Int64Range(0, 3600_000).Draw(t, "ago")
			m.InHand = eventInHand(t, registry)
			got := answerInHand(t, s, f, query.CompletenessOf(f, nil), entity, at, now, m.InHand)
			want := m.Answer(f, entity, at)
			compared++
			if f.InHand != nil && m.InHand == nil {
				if got.Status != query.NoEvent || !got.Value.IsNull() || got.Exact || got.Items != nil {
					t.Errorf("%s without an event: %+v", f.Definition, got)
				}
				continue
			}
			if a, b := string(got.Value.AppendText(nil)), string(want.Value.AppendText(nil)); a != b ||
				(got.Status != query.NotFound) != want.Found || (got.Status == query.NullValue) != (want.Found && want.IsNull() && !got.LaterEvents) || got.Capped != want.Capped || got.Uncertain != want.Uncertain {
				t.Errorf("%s of %s at %d: %s %+v, want %s %+v", f.Definition, entity, at, a, got, b, want)
			}
		}
	})
	if compared == 0 {
		t.Fatal("nothing was compared")
	}
}

// answer returns the store's answer.
func answer(t rapid.TB, s query.Reader, f *features.Feature, entity string, at, now int64) query.Answer {
	t.Helper()
	return answerSince(t, s, f, query.CompletenessOf(f, nil), entity, at, now)
}

// answerSince returns the answer of a feature whose state has this completeness.
func answerSince(t rapid.TB, s query.Reader, f *features.Feature, c *query.Completeness, entity string, at, now int64) query.Answer {
	t.Helper()
	return answerInHand(t, s, f, c, entity, at, now, nil)
}

// answerInHand is answerSince with an event in hand; nil for none.
func answerInHand(t rapid.TB, s query.Reader, f *features.Feature, c *query.Completeness, entity string, at, now int64, inHand *record.Event) query.Answer {
	t.Helper()
	var r query.Reading
	r.Reset(now)
	r.SetInHand(inHand)
	r.Want(f, entity, at)
	if err := r.Read(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	var a query.Answer
	r.NextSince(&a, c)
	return a
}

// eventInHand draws an event of the stream, or nil.
func eventInHand(t *rapid.T, registry *features.Registry) *record.Event {
	texts := map[string]string{
		"user":   rapid.SampledFrom([]string{"a", "b|"}).Draw(t, "user in hand"),
		"device": rapid.SampledFrom([]string{"-", "", `d\\`, "|"}).Draw(t, "device in hand"),
		"amount": rapid.SampledFrom([]string{"-", "0", "-0.01", "9.99", "92233720368547758.07", "-92233720368547758.08"}).Draw(t, "amount in hand"),
		"status": rapid.SampledFrom([]string{"-", "", "ok", "no"}).Draw(t, "status in hand"),
	}
	stream, _ := registry.Stream("pay")
	e := &record.Event{Stream: stream}
	for _, f := range stream.Fields {
		v := value.Value{}
		if texts[f.Name] != "-" {
			v = value.ParseText(f.Type, f.Scale, texts[f.Name])
		}
		e.Values = append(e.Values, v)
	}
	if rapid.IntRange(0, 4).Draw(t, "no event") == 0 {
		return nil
	}
	return e
}

// applyRandom applies one batch of random events to a fresh store and to the model, and returns the
// time of the last one.
func applyRandom(t *rapid.T, s *redisstore.Store, m *Model, registry *features.Registry) int64 {
	t.Helper()
	ctx, partition := context.Background(), state.Partition{Topic: "pay"}
	if err := s.Create(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Place(ctx, testkit.FirstPlacement(partition, s.Shards(), 0)); err != nil {
		t.Fatal(err)
	}
	progress, err := s.Progress(ctx, []state.Partition{partition})
	if err != nil {
		t.Fatal(err)
	}
	n := rapid.IntRange(0, 30).Draw(t, "events")
	b := &state.Batch{Ranges: []state.PartitionRange{{Partition: partition, Progress: progress[0], To: int64(n)}}}
	mapper, now := registry.NewMapper(), recorded
	for offset := range n {
		now += rapid.Int64Range(0, 600).Draw(t, "seconds")
		record := record.Record{
			Partition: partition, Offset: int64(offset), Timestamp: now * 1000,
			Value: fmt.Appendf(nil, `{"t":%d,"user":%q,"device":%q,"amount":%d.%02d,"status":%q}`,
				now-rapid.Int64Range(0, 200).Draw(t, "behind"), rapid.SampledFrom([]string{"a", "b|"}).Draw(t, "user"),
				rapid.SampledFrom([]string{"", `d\`, "|"}).Draw(t, "device"), rapid.IntRange(0, 9).Draw(t, "amount"),
				rapid.IntRange(0, 99).Draw(t, "cents"), rapid.SampledFrom([]string{"ok", "no"}).Draw(t, "status")),
		}
		if _, err := mapper.Map(&record, 0, b); err != nil {
			t.Fatal(err)
		}
		if err := m.Apply(record); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.NewWriter().Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	return now * 1000
}

// entitiesAsked returns a feature's entities that have events, and one that has none.
func (m *Model) entitiesAsked(f *features.Feature) []string {
	if len(f.By) == 2 {
		return append(m.Entities(f), "nothing|nobody")
	}
	return append(m.Entities(f), "nobody")
}
