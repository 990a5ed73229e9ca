package backfill

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// fakeBrokers has a log and a first record for each partition.
type fakeBrokers struct {
	logs   []fetch.Log
	dated  []fetch.Dated
	moment int64 // that was asked for
	err    error
}

func (b *fakeBrokers) Logs(context.Context, []state.Partition) ([]fetch.Log, error) {
	return b.logs, b.err
}

func (b *fakeBrokers) Since(_ context.Context, _ []state.Partition, _ []fetch.Log, moment int64) []fetch.Dated {
	b.moment = moment
	return b.dated
}

// A fill reads from the first needed record to the last readable one.
func TestEstimateFill(t *testing.T) {
	window, forever := features.FillReach{Reach: 1000}, features.FillReach{Forever: true}
	logs := []fetch.Log{{Start: 5, Stable: 90, End: 95}, {Start: 0, Stable: 40, End: 40}}
	for name, c := range map[string]struct {
		reach  features.FillReach
		dated  []fetch.Dated
		want   Estimate
		moment int64
	}{
		"in the logs":                {window, []fetch.Dated{{Offset: 70, Timestamp: 9003}, {Offset: 30, Timestamp: 9001}}, Estimate{20 + 10, false, state.MinTime}, 9000},
		"all of a log":               {window, []fetch.Dated{{Offset: 70, Timestamp: 9003}, {Offset: 0, Timestamp: 9500}}, Estimate{20 + 40, false, state.MinTime}, 9000},
		"all records are older":      {window, []fetch.Dated{{Offset: -1}, {Offset: -1}}, Estimate{0, false, state.MinTime}, 9000},
		"retention has removed some": {window, []fetch.Dated{{Offset: 5, Timestamp: 9500}, {Offset: 30, Timestamp: 9001}}, Estimate{85 + 10, true, 9501}, 9000},
		"forever, retention":         {forever, []fetch.Dated{{Offset: 5, Timestamp: 8000}, {Offset: 0, Timestamp: 7000}}, Estimate{85 + 40, true, 8001}, 0},
		"beyond what can be read":    {window, []fetch.Dated{{Offset: 93, Timestamp: 9003}, {Offset: 39, Timestamp: 9001}}, Estimate{0 + 1, false, state.MinTime}, 9000},
		"retention of several, last": {window, []fetch.Dated{{Offset: 5, Timestamp: 9700}, {Offset: 0, Timestamp: 9100}}, Estimate{85 + 40, true, 9701}, 9000},
	} {
		b := &fakeBrokers{logs: logs, dated: c.dated}
		if got, err := EstimateFill(t.Context(), b, c.reach, make([]state.Partition, 2), 10_000); err != nil || got != c.want || b.moment != c.moment {
			t.Errorf("%s: got %+v, error %v, from records since %d; want %+v since %d", name, got, err, b.moment, c.want, c.moment)
		}
	}
	away, broken := errors.New("away"), errors.New("no leader")
	for _, b := range []*fakeBrokers{{err: away}, {logs: []fetch.Log{{}, {Err: broken}}, dated: make([]fetch.Dated, 2)}} {
		if _, err := EstimateFill(t.Context(), b, window, make([]state.Partition, 2), 10_000); !errors.Is(err, away) && !errors.Is(err, broken) {
			t.Errorf("got error %v, want that of the brokers", err)
		}
	}
}
