package features_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// A record counts in the streams of its topic that had no event of its ID, each within its own dedup. One that is poison
// for some stream is no event for any. Copies of dead letters are compared with each other only.
func TestMapRepeatedEvents(t *testing.T) {
	registry := defined.Registry(t, `
streams:
  a: {topic: events, timestamp: at, match: n > 0, id: id, dedup: 1m, fields: {u: string, n: int}}
  b: {topic: events, timestamp: at, id: other, dedup: 10m, fields: {u: string, n: int}}
  c: {topic: events, timestamp: at, id: id, fields: {u: string, n: int}}
features:
  of_a: COUNT(lifetime, a, u)
  of_b: COUNT(lifetime, b, u)
  of_c: COUNT(lifetime, c, u, where='n * n * n > -1')
`)
	m, b := registry.NewMapper(), &state.Batch{}
	m.Namespace, m.Seal = "shop", defined.Seal()
	earlier := record.NewEarlier(registry.Streams, "events", state.NewSecret())
	const poison = `"n":9223372036854775807`
	for i, step := range []struct {
		minute    int64
		value     string
		series    string // of a copy
		streams   string
		repeats   string
		mutations int
	}{
		{0, `"id":"1","other":"x",` + poison, "", "poison", "", 0},
		{0, `"id":"1","other":"x","n":1`, "", "a b c", "", 3},
		{0, `"id":"1","other":"x","n":1`, "", "c", "a b", 1},
		{0, `"id":"1","other":"y","n":1`, "", "b c", "a", 2},
		{0, `"id":"2","other":"x","n":0`, "", "c", "b", 1},
		{0, `"id":"2","other":"z","n":1`, "", "a b c", "", 3}, // stream a did not take the one before
		{0, `"id":null,"other":"","n":1`, "", "a b c", "", 3},
		{0, `"id":null,"other":"","n":1`, "", "a b c", "", 3},
		{0, `"id":"1","other":"x","n":1`, "of_a", "a b c", "", 1}, // a copy of the first
		{0, `"id":"1","other":"x","n":1`, "of_a", "c", "a b", 0},
		{2, `"id":"1","other":"x","n":1`, "", "a c", "b", 2},
		{2, `"id":1,"other":"x","n":1`, "", "c", "a b", 1},
		{2, `"id":1.0,"other":"w","n":1`, "", "a b c", "", 3},
	} {
		rec := event(fmt.Sprintf(`{"at":NOW,"u":"u",%s}`, step.value))
		rec.Offset, rec.Timestamp, rec.Earlier = int64(i), recorded+step.minute*60_000+1, earlier
		if step.series != "" {
			f, _ := registry.Feature(step.series)
			defined.Copy(rec, (&record.Copy{Namespace: "shop", Partition: rec.Partition, Offset: 0, Timestamps: []int64{rec.Timestamp}, Series: []string{f.Series[0].ID}}).String())
		}
		b.Reset()
		out, err := m.Map(rec, 0, b)
		streams := strings.Join(out.Streams, " ")
		if err != nil {
			streams = "poison"
		}
		if streams != step.streams || strings.Join(out.Repeats, " ") != step.repeats || len(b.Mutations) != step.mutations || len(out.Events) != len(out.Streams) {
			t.Errorf("record %d: got %+v, error %v, %d mutations; want %+v", i, out, err, len(b.Mutations), step)
		}
	}
}

// A record that is only noted is known, and changes nothing.
func TestNoteEvents(t *testing.T) {
	registry := defined.Registry(t, `
streams: {s: {topic: events, timestamp: at, id: id, dedup: 1m, fields: {u: string}}}
features: {c: "COUNT(lifetime, s, u)"}
`)
	m, earlier := registry.NewMapper(), record.NewEarlier(registry.Streams, "events", state.NewSecret())
	for i, text := range []string{`{"at":NOW,"id":"1","u":"u"}`, `{`, `{"at":NOW,"id":"1","u":"u"}`} {
		rec := event(text)
		rec.Offset, rec.Earlier = int64(i), earlier
		if err := m.Note(rec); (err != nil) != (text == "{") {
			t.Errorf("noting %s: error %v", text, err)
		}
	}
	rec := event(`{"at":NOW,"id":"1","u":"u"}`)
	rec.Offset, rec.Earlier = 3, earlier
	if out, err := m.Map(rec, 0, &state.Batch{}); err != nil || len(out.Repeats) != 1 {
		t.Errorf("got %+v, error %v; want a repetition", out, err)
	}
}
