package query

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// BenchmarkExact asks for ten exact features of one entity whose log holds 500 events.
func BenchmarkExact(b *testing.B) {
	text := `
streams:
  tx:
    topic: t
    timestamp: ts
    fields: {user: string, merchant: string, amount: decimal, score: float, ok: bool}
features:
  a: COUNT(1h, tx, user, tile=exact)
  b: SUM(1h, tx, amount, user, tile=exact)
  c: SUM(1d, tx, amount, user, tile=exact, where=ok)
  d: AVG(1d, tx, score, user, tile=exact)
  e: MAX(1d, tx, amount, user, tile=exact)
  f: LAST(1d, tx, merchant, user, tile=exact)
  g: STDDEV_POP(1d, tx, amount, user, tile=exact)
  h: LAST_K(1d, tx, merchant, user, k=5)
  i: COUNT(10m, tx, user, tile=exact)
  j: RATIO(1d, tx, user, condition=ok, tile=exact)
`
	r := defined.Registry(b, text)
	mapper, log := r.NewMapper(), []byte(state.LogHeader)
	const now = int64(1_700_000_000_000)
	for i := range int64(500) {
		at := now - 12*3_600_000 + i*86_400
		value := fmt.Appendf(nil, `{"ts":%d,"user":"u","merchant":"m%d","amount":%d.25,"score":0.5,"ok":%t}`, at, i%20, i, i%3 == 0)
		batch := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
		if _, err := mapper.Map(&record.Record{Partition: state.Partition{Topic: "t"}, Timestamp: at, Value: value}, 0, batch); err != nil {
			b.Fatal(err)
		}
		log = append(log, batch.Mutations[0].Member...)
	}
	var reading Reading
	b.ReportAllocs()
	for b.Loop() {
		reading.Reset(now)
		for _, f := range r.Features {
			reading.Want(f, "u", now)
		}
		if err := reading.Read(b.Context(), logReader(log)); err != nil {
			b.Fatal(err)
		}
		for range r.Features {
			var answer Answer
			reading.Next(&answer)
		}
	}
}

// logReader answers all reads with one log.
type logReader state.Log

func (l logReader) Read(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
	states := make([]state.WindowState, len(reads))
	for i := range states {
		states[i].Log = state.Log(l)
	}
	return states, nil
}
