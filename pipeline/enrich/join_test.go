package enrich

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/tables"
)

const joinedDefinitions = `
streams:
  transaction:
    topic: transactions
    timestamp: at
    fields: {user: string, merchant: string, amount: {type: decimal, scale: 2}}
    enrich: {service: merchants, topic: joined}
  joined:
    topic: joined
    timestamp: event.at
    fields:
      user: {type: string, path: event.user}
      amount: {type: decimal, scale: 2, path: event.amount}
      category: {type: string, path: features.merchant_category.value}
tables:
  merchant: {topic: merchants, key: id, fields: {category: string}}
features:
  merchant_category: {expr: merchant.category, by: merchant}
  user_spent_1d: SUM(1d, joined, amount, user, where='category == "gambling"')
services:
  merchants: [merchant_category]
`

// BenchmarkJoin joins an event with one of 100,000 rows: it looks the row up, alone, and as the enriched event is made for it, and
// then maps that event. What the broker does is not measured.
func BenchmarkJoin(b *testing.B) {
	registry := defined.Registry(b, joinedDefinitions)
	merchant := registry.Tables[0]
	rows := tables.New(merchant)
	for i := range 100_000 {
		row := record.Record{Partition: state.Partition{Topic: "merchants"}, Key: fmt.Append(nil, i), Value: fmt.Appendf(nil, `{"id":"m%d","category":"gambling"}`, i)}
		if bad, err := rows.Take(&row); bad != nil || err != nil {
			b.Fatal(bad, err)
		}
	}
	var reading query.Reading
	reading.SetTables(tables.Fixed(rows))
	stored := memory.New()
	const at = 1_700_000_000_000
	asked := func(b *testing.B, want func(), a *query.Answer) {
		reading.Reset(at)
		want()
		if err := reading.Read(b.Context(), stored); err != nil {
			b.Fatal(err)
		}
		if reading.Next(a); a.Status != query.Present {
			b.Fatal(a.Status)
		}
	}
	f := defined.Feature(b, registry, "merchant_category")
	b.Run("look up", func(b *testing.B) {
		var a query.Answer
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			asked(b, func() { reading.Want(f, "m77", at) }, &a)
		}
	})
	source := registry.Streams[0]
	if source.Name != "transaction" {
		source = registry.Streams[1]
	}
	stream := Streams(registry)[source]
	value := []byte(`{"at":1700000000000,"user":"u1","merchant":"m77","amount":12.5}`)
	events, err := registry.NewDecoder().Decode(&record.Record{Partition: state.Partition{Topic: "transactions"}, Timestamp: at, Value: value})
	if err != nil {
		b.Fatal(err)
	}
	enriched := func(b *testing.B) *Event {
		n := NewEvent(stream, &events[0], state.Partition{Topic: "transactions"}, &fetch.Record{Value: value})
		n.answers = make([]query.Answer, 1)
		asked(b, func() { n.want(&reading, false) }, &n.answers[0])
		n.encode()
		return n
	}
	b.Run("enrich", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			enriched(b)
		}
	})
	b.Run("map", func(b *testing.B) {
		mapJoined(b, registry, enriched(b).value, at)
	})
}

// mapJoined maps an event with its row.
func mapJoined(b *testing.B, registry *features.Registry, value []byte, at int64) {
	mapper, batch := registry.NewMapper(), &state.Batch{}
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		batch.Ranges = append(batch.Ranges, state.PartitionRange{})
		out, err := mapper.Map(&record.Record{Partition: state.Partition{Topic: "joined"}, Timestamp: at, Value: value}, 0, batch)
		if err != nil || len(out.Events) != 1 || len(batch.Mutations) == 0 {
			b.Fatal(out, err, string(value))
		}
	}
}
