package backfill

import (
	"context"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// Brokers look up the logs of partitions and their records by time.
type Brokers interface {
	Logs(ctx context.Context, partitions []state.Partition) ([]fetch.Log, error)
	Since(ctx context.Context, partitions []state.Partition, logs []fetch.Log, moment int64) []fetch.Dated
}

// Estimate is the effort of a fill for a topic.
type Estimate struct {
	// Records is the number of offsets, so compaction and transactions make it greater than the
	// number of records.
	Records int64
	// Lost means that retention has removed needed records; the filled columns are complete since Since, in ms.
	Lost  bool
	Since int64
}

// EstimateFill estimates what a fill would read of the partitions of a topic, if the newest event
// were of a moment, in ms. It reads no records.
func EstimateFill(ctx context.Context, brokers Brokers, reach features.FillReach, partitions []state.Partition, newest int64) (Estimate, error) {
	e := Estimate{Since: state.MinTime}
	logs, err := brokers.Logs(ctx, partitions)
	if err != nil {
		return e, err
	}
	moment := matters(reach, newest)
	dated := brokers.Since(ctx, partitions, logs, moment)
	for i := range logs {
		if logs[i].Err != nil {
			return e, logs[i].Err
		}
		from, since := start(&logs[i], dated[i], moment, newest)
		e.Records += max(0, logs[i].Stable-from)
		if since > moment {
			e.Lost, e.Since = true, max(e.Since, since)
		}
	}
	return e, nil
}

// BeginsAfter returns since when the log of a cut's topic has all events after the cut, in ms, if that is later than
// the cut: the events in between are neither in files nor in the log.
func BeginsAfter(ctx context.Context, brokers Brokers, cut *state.Cut, partitions []state.Partition) (since int64, later bool, err error) {
	reach := features.FillReach{Forever: true, After: cut.Until}
	e, err := EstimateFill(ctx, brokers, reach, partitions, time.Now().UnixMilli())
	return e.Since, e.Lost, err
}
