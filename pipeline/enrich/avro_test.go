package enrich

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// enrichedInAvro has values of all types and shapes.
const enrichedInAvro = `
streams:
  payment:
    topic: payments
    timestamp: t
    fields: {user: string, shop: string, cents: int, rate: float, amount: {type: decimal, scale: 3}, seen_at: timestamp, ok: bool, place: location, none: int}
    enrich: {service: risk, topic: payments.enriched, format: avro}
features:
  payments: COUNT(1d, payment, user)
  cents: SUM(1d, payment, cents, user)
  amounts: SUM(1d, payment, amount, user)
  rates: AVG(1d, payment, rate, user)
  least: MIN(1d, payment, seen_at, user)
  last_ok: LAST(1d, payment, ok, user)
  last_place: LAST(1d, payment, place, user)
  last_amounts: LAST_K(1d, payment, amount, user, k=3)
  shops: SET(1d, payment, user, shop)
  about: APPROX_COUNT_DISTINCT(1d, payment, user, shop)
  top_shops: TOP_K(1d, payment, shop, user, k=2)
  bins: HISTOGRAM(1d, payment, amount, user, bins=[0.5, 10])
  by_shop: SUM(1d, payment, amount, user, per=shop)
  share: {expr: amounts / payments}
  nothing: MAX(1d, payment, none, user)
  met: SEEN(1d, payment, user, shop)
  met_now: SEEN(1d, payment, user, shop, current=counted)
  met_before: SEEN(1d, payment, user, shop, tile=exact, exclude=current)
services:
  risk: [payments, cents, amounts, rates, least, last_ok, last_place, last_amounts, shops, about, top_shops, bins, by_shop, share, nothing, met, met_now, met_before]
`

// enrichmentOf is the enrichment of the only stream that is enriched.
func enrichmentOf(t *testing.T, definitions string) (*features.Registry, *features.Enrichment) {
	t.Helper()
	registry := defined.Registry(t, definitions)
	return registry, registry.Enrichments[0]
}

// answered returns an event with its answers, after some other events.
func answered(t *testing.T, registry *features.Registry, events []string) *Event {
	t.Helper()
	mapper, stored, batch := registry.NewMapper(), memory.New(), &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	asking := &Enricher{known: known{of: map[*features.Feature]*query.Completeness{}}}
	ask := func(n *Event, before bool) {
		t.Helper()
		if err := asking.ask(t.Context(), n, stateOf{store: stored}, before); err != nil {
			t.Fatal(err)
		}
	}
	var n *Event
	for i, text := range events {
		batch.Reset()
		batch.Ranges = batch.Ranges[:1]
		from := state.Partition{Topic: "payments"}
		out, err := mapper.Map(&record.Record{Partition: from, Offset: int64(i), Timestamp: 1_000_000_000, Value: []byte(text)}, 0, batch)
		if err != nil {
			t.Fatal(err)
		}
		stream := Streams(registry)[out.Events[0].Stream]
		n = NewEvent(stream, &out.Events[0], from, &fetch.Record{Offset: int64(i), Value: []byte(text)})
		n.answers = make([]query.Answer, len(n.stream.features))
		ask(n, true)
		if err := stored.Apply(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	ask(n, false)
	return n
}

// stateOf is the state that a store has, as a snapshot.
type stateOf struct {
	state.Snapshot
	store *memory.Store
}

func (s stateOf) Read(r *state.Read) state.WindowState {
	read, err := s.store.Read(context.Background(), []state.Read{*r})
	if err != nil {
		panic(err)
	}
	return read[0]
}

// plain converts a decoded value to the form of JSON: moments in milliseconds, numbers as exact texts, and no null
// member.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]any{}
		for name, of := range v {
			if of != nil {
				all[name] = plain(of)
			}
		}
		return all
	case []any:
		all := []any{}
		for _, of := range v {
			all = append(all, plain(of))
		}
		return all
	case time.Time:
		return plain(v.UnixMilli())
	case *big.Rat:
		return v.RatString()
	case int64, float64, json.Number:
		number, _ := new(big.Rat).SetString(fmt.Sprint(v))
		return plain(number)
	}
	return v
}

// decoded is the value of an event's record by its schema.
func decoded(t *testing.T, n *Event) map[string]any {
	t.Helper()
	schema, err := avro.Parse(n.stream.schema)
	if err != nil {
		t.Fatalf("%v\n%s", err, n.stream.schema)
	}
	var got map[string]any
	rest, err := schema.Decode(n.value[frameBytes:], &got)
	if err != nil {
		t.Fatal(err)
	}
	if len(rest) > 0 {
		t.Error("the value has bytes beyond its schema")
	}
	return plain(got).(map[string]any)
}

// An event in Avro has the same content as in JSON, in all types and shapes.
func TestEventsInAvro(t *testing.T) {
	registry, enrichment := enrichmentOf(t, enrichedInAvro)
	all := []string{
		`{"t": 999000000, "user": "u", "shop": "a", "cents": 9007199254740993, "rate": 0.1, "amount": -1.25, "seen_at": 5, "ok": false, "place": {"lat": 1, "lon": 2}}`,
		`{"t": 999500000, "user": "u", "shop": "b\u00e9", "cents": -1, "rate": 0.3, "amount": 300.007, "seen_at": 4, "ok": true, "place": {"lat": 1.5, "lon": -2}}`,
		`{"t": 999600000, "user": "u", "shop": "a", "amount": 128}`,
	}
	for _, events := range [][]string{all, all[:1], {`{"t": 5, "shop": "of nobody"}`}, {`{"t": 5, "user": "late"}`}} {
		n := answered(t, registry, events)
		n.encode()
		got := decoded(t, n)
		n.event = eventJSON(&record.Event{Stream: enrichment.Stream, Values: make([]value.Value, len(enrichment.Stream.Fields))}, []byte(events[len(events)-1]))
		n.encodeJSON()
		var want map[string]any
		numbers := json.NewDecoder(bytes.NewReader(n.value))
		numbers.UseNumber()
		if err := numbers.Decode(&want); err != nil {
			t.Fatal(err)
		}
		delete(want["event"].(map[string]any), "t")
		if difference := cmp.Diff(plain(want), any(got)); difference != "" {
			t.Errorf("%s (-JSON +Avro):\n%s", n.value, difference)
		}
	}
}

// Whether an entity had the event's own value is one value, however the event itself counts.
func TestEventsOwnValue(t *testing.T) {
	registry, _ := enrichmentOf(t, enrichedInAvro)
	first, again := `{"t": 999000000, "user": "u", "shop": "a"}`, `{"t": 999500000, "user": "u", "shop": "a"}`
	for _, c := range []struct {
		events []string
		want   string // of met, met_now and met_before
	}{
		{[]string{first}, "false true false"},
		{[]string{first, again}, "true true true"},
		{[]string{first, `{"t": 999500000, "user": "u"}`}, "<nil> <nil> <nil>"},
	} {
		n := answered(t, registry, c.events)
		n.encode()
		answers := decoded(t, n)["features"].(map[string]any)
		value := func(name string) any { return answers[name].(map[string]any)["value"] }
		if got := fmt.Sprint(value("met"), value("met_now"), value("met_before")); got != c.want {
			t.Errorf("after %s they are %s; want %s", c.events, got, c.want)
		}
	}
}

// Values that Avro or JSON cannot hold are changed: an integer beyond 64 bits is cut and marked as capped, invalid
// UTF-8 is replaced, and NaN is null.
func TestLimitsOfAvro(t *testing.T) {
	registry, _ := enrichmentOf(t, enrichedInAvro)
	n := answered(t, registry, []string{`{"t": 999000000, "user": "u"}`})
	greatest := value.Value{Type: value.Int, Num: math.MaxInt64}
	least := value.Value{Type: value.Int, Num: math.MinInt64}
	for i := range n.answers {
		n.answers[i].Exact = true
	}
	n.answers[0].Value, n.answers[1].Value = value.Add(least, least), value.Add(greatest, greatest)
	n.answers[3].Value = value.Value{Type: value.Float, Flt: math.NaN()}
	n.answers[8].Items = []aggregate.Item{{Value: value.Value{Type: value.String, Str: []byte("a\xff")}}}
	n.encode()
	answers := decoded(t, n)["features"].(map[string]any)
	for name, want := range map[string]string{
		"payments": "-9223372036854775808 capped", "cents": "9223372036854775807 capped", "rates": "<nil> exact", "shops": "[a\uFFFD] exact",
	} {
		a := answers[name].(map[string]any)
		got := fmt.Sprint(a["value"])
		if a["capped"] == true {
			got += " capped"
		}
		if a["exact"] == true {
			got += " exact"
		}
		if got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// Decimals keep their sign and all digits, with the scale of the schema.
func TestDecimalsInAvro(t *testing.T) {
	schema := avro.MustParse(`{"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}`)
	for _, n := range []int64{0, 1, -1, 127, 128, -128, -129, 255, 256, math.MaxInt64, math.MinInt64} {
		for scale, by := range map[uint8]int64{2: 100, 0: 1} {
			var got any
			if _, err := schema.Decode(avroDecimal(nil, value.Value{Type: value.Decimal, Num: n, Scale: scale}, 2), &got); err != nil {
				t.Fatal(err)
			}
			if want := plain(big.NewRat(n, by)); plain(got) != want {
				t.Errorf("%d at scale %d is %v, want %v", n, scale, plain(got), want)
			}
		}
	}
}

// Schemas of definitions with more or fewer fields and features read each other's records; a schema in which a feature
// has another type does not.
func TestSchemasEvolve(t *testing.T) {
	schema := func(changes ...string) *avro.Schema {
		t.Helper()
		_, enrichment := enrichmentOf(t, strings.NewReplacer(changes...).Replace(enrichedInAvro))
		subject, text := Schema(enrichment)
		if subject != "payments.enriched-value" {
			t.Errorf("the subject is %s, want payments.enriched-value", subject)
		}
		if _, again := Schema(enrichment); again != text {
			t.Errorf("the schema is\n%s\nthe second time\n%s", text, again)
		}
		parsed, err := avro.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	compatible := func(reader, writer *avro.Schema) error { return avro.CheckCompatibility(writer, reader) }
	now := schema()
	for what, later := range map[string]*avro.Schema{
		"a feature and a field more": schema("none: int", "none: int, more: location", "  share:", "  added: SUM(1h, payment, rate, user)\n  share:", "[payments, ", "[added, payments, "),
		"fewer":                      schema("[payments, cents, ", "[", ", none: int", ", no: int", ", payment, none,", ", payment, no,"),
	} {
		if err := compatible(later, now); err != nil {
			t.Errorf("%s: old records cannot be read with the new schema: %v", what, err)
		}
		if err := compatible(now, later); err != nil {
			t.Errorf("%s: new records cannot be read with the old schema: %v", what, err)
		}
	}
	if compatible(schema("LAST(1d, payment, ok, user)", "LAST(1d, payment, shop, user)"), now) == nil {
		t.Error("a feature of another type has a compatible schema")
	}
}
