package servertest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/serve"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

const definitions = `
streams:
  transaction:
    topic: transactions
    timestamp: {path: time, unit: ms}
    id: id
    fields:
      user_id: string
      device_id: string
      merchant_id: string
      amount: {type: decimal, scale: 2}
      country: string
      abroad: bool
features:
  device_tx_7d: COUNT(7d, transaction, device_id)
  device_users_30d: APPROX_COUNT_DISTINCT(30d, transaction, device_id, user_id)
  user_amount_1d: SUM(1d, transaction, amount, user_id)
  user_abroad: LAST(1d, transaction, abroad, user_id)
  user_avg_1d: AVG(1d, transaction, amount, user_id)
  user_countries: TOP_K(1d, transaction, country, user_id, k=2)
  user_country: LAST(1d, transaction, country, user_id)
  user_ever: COUNT(lifetime, transaction, user_id)
  user_merchants: SET(1d, transaction, user_id, merchant_id)
  user_merchant_seen: SEEN(30d, transaction, user_id, merchant_id)
services:
  payment_risk: [device_tx_7d, user_amount_1d]
`

// now is the current time of the tests.
var now = time.Date(2026, 7, 25, 12, 0, 0, 0, time.UTC)

// clocked is a store whose clock shows now.
type clocked struct{ *memory.Store }

func (clocked) Clock(context.Context) (int64, error) { return now.UnixMilli(), nil }

// handler serves a user with a few transactions.
func handler() http.Handler {
	r, err := defined.Parse(definitions)
	if err != nil {
		panic(err)
	}
	stored, mapper, batch := memory.New(), r.NewMapper(), &state.Batch{
		Ranges: []state.PartitionRange{{Partition: state.Partition{Topic: "transactions"}, To: 3}},
	}
	for i, rest := range []string{
		`"amount":12.30,"merchant_id":"m000001","country":"DE","abroad":true`,
		`"amount":7.45,"merchant_id":"m000002","country":"DE"`,
		`"amount":80,"merchant_id":"m000001","country":"FR","abroad":false`,
	} {
		at := now.UnixMilli() - int64(3-i)
		event := fmt.Appendf(nil, `{"id":"t%d","time":%d,"user_id":"u000001","device_id":"d000001",%s}`, i, at, rest)
		record := record.Record{Partition: state.Partition{Topic: "transactions"}, Timestamp: at, Value: event}
		if _, err := mapper.Map(&record, 0, batch); err != nil {
			panic(err)
		}
	}
	if err := stored.Apply(context.Background(), batch); err != nil {
		panic(err)
	}
	return serve.New(serve.Config{
		Registry: func() *features.Registry { return r }, Reader: clocked{stored},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: func() time.Time { return now },
	})
}

// startServer serves on a local address until the program ends.
func startServer() (address string) { return httptest.NewServer(handler()).URL }
