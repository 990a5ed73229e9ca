package refill

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/scan"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// begin finds where to start reading partitions that a shard has applied up to its progress, and which records are
// lost.
func (l *Log) begin(ctx context.Context, partitions []state.Partition, r *progress.Record) error {
	logs, err := l.scanner.Logs(ctx, partitions)
	if err != nil {
		return err
	}
	parts, lost := map[state.Partition]*part{}, map[string]int64{}
	newest := min(r.Newest(), time.Now().UnixMilli())
	for topic := range l.fill.Columns {
		reach := l.registry.FillReach(l.fill, topic)
		moment := int64(0)
		if !reach.Forever {
			moment = max(0, newest-reach.Reach)
		}
		dated := l.scanner.Since(ctx, partitions, logs, moment)
		for i, id := range partitions {
			if id.Topic != topic {
				continue
			}
			at := r.Position(id)
			if err := l.fits(ctx, id, &logs[i], at); err != nil {
				return err
			}
			from, until := start(reach, &logs[i], dated[i], r.Relogged(), newest)
			parts[id] = &part{tag: at.Log, once: record.NewOnce(from, l.want.Seal), Range: scan.Range{
				Partition: id, Log: logs[i].ID, LeaderEpoch: logs[i].LeaderEpoch, Next: from, To: l.want.applied(at),
			}}
			lost[topic] = max(lost[topic], until)
		}
	}
	if err := l.readBack(ctx, partitions, logs, parts); err != nil {
		return err
	}
	for id, of := range parts {
		l.parts[id] = of
	}
	for topic, until := range lost {
		l.LostUntil[topic] = max(l.LostUntil[topic], until)
	}
	return nil
}

// readBack makes partitions begin with the records that must be remembered to know what repeats them.
func (l *Log) readBack(ctx context.Context, partitions []state.Partition, logs []fetch.Log, parts map[state.Partition]*part) error {
	asked := make([]fetch.Before, len(partitions))
	for i, id := range partitions {
		if p := parts[id]; p != nil {
			p.from, p.earlier = p.Next, record.NewEarlier(l.registry.Streams, id.Topic, l.want.Seal.Secret())
			asked[i] = fetch.Before{Offset: p.from, Reach: record.Reach(l.registry.Streams, id.Topic), Most: record.MaxEarlier}
		}
	}
	for i, from := range l.scanner.Earlier(ctx, partitions, logs, asked) {
		if logs[i].Err != nil {
			return logs[i].Err
		}
		if p := parts[partitions[i]]; p != nil {
			p.Next = from
		}
	}
	return nil
}

// fits returns an error if a position does not belong to a log.
func (l *Log) fits(ctx context.Context, id state.Partition, log *fetch.Log, at state.Position) error {
	if log.Err != nil {
		return log.Err
	}
	if at.Log != "" && at.Log != log.ID.Tag() {
		was, err := l.want.LogOf(ctx, at.Log)
		if err != nil {
			return err
		}
		if was.Contradicts(log.ID) {
			return fmt.Errorf("what was applied cannot be read again: %w", &fetch.OtherLogError{Topic: id.Topic, Partition: id.ID, Was: was, Is: log.ID})
		}
	}
	if applied := l.want.applied(at); applied > log.Stable {
		return fmt.Errorf("%v is applied up to offset %d, and can be read up to %d only: its log was truncated, or a transaction is open",
			id, applied, log.Stable)
	}
	return nil
}

// start returns the offset from which to read a log, given the first needed record, and the timestamp up to which
// needed records are no longer in the log; 0 if all are. Records of an earlier log with the same name are also lost.
func start(reach features.FillReach, log *fetch.Log, first fetch.Dated, relogged bool, newest int64) (from, lost int64) {
	lacks := log.Start > 0 || relogged
	switch {
	case log.Start == log.End && lacks:
		return log.Start, newest
	case first.Offset < 0: // all records are older
		return log.End, 0
	case !reach.Forever && first.Offset > log.Start:
		return first.Offset, 0
	case lacks:
		return log.Start, first.Timestamp
	default:
		return log.Start, 0
	}
}

// Fetching reports the progress, once a second.
func (l *Log) Fetching() {
	now := time.Now()
	if l.cfg.Screen == nil || now.Before(l.nextReport) {
		return
	}
	if !l.nextReport.IsZero() {
		left := int64(0)
		for _, p := range l.parts {
			left += p.To - p.Next
		}
		fmt.Fprintf(l.cfg.Screen, "read %d records of the log, %d of them of the entity; some %d are left\n", l.Records, l.Events, left)
	}
	l.nextReport = now.Add(time.Second)
}
