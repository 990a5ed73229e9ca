package scan

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// Log holds the records of a partition from a moment on, up to the end of the readable log when it was opened.
type Log struct {
	scanner *Scanner
	what    Range
	begin   int64 // the first offset read
	from    int64 // the first offset that counts
	since   int64

	take func(*record.Record) error
}

// Open opens the logs of partitions from a moment on, in ms; 0 means from their start. If some of the streams know repeated
// events, the logs also have the records before that which they need for it. The logs are read one at a time.
func Open(ctx context.Context, scanner *Scanner, partitions []state.Partition, moment int64, streams []*record.Stream) (logs []*Log, err error) {
	now := time.Now().UnixMilli()
	err = scanner.Patiently(ctx, func() error {
		found, err := scanner.Logs(ctx, partitions)
		if err != nil {
			return err
		}
		dated := scanner.Since(ctx, partitions, found, moment)
		logs = logs[:0]
		asked := make([]fetch.Before, len(partitions))
		for i, id := range partitions {
			if found[i].Err != nil {
				return fmt.Errorf("%v: %w", id, found[i].Err)
			}
			from, since := logStart(&found[i], dated[i], moment, now)
			logs = append(logs, &Log{scanner: scanner, from: from, since: since, what: Range{
				Partition: id, Log: found[i].ID, LeaderEpoch: found[i].LeaderEpoch, To: max(from, found[i].Stable),
			}})
			asked[i] = fetch.Before{Offset: from, Reach: record.Reach(streams, id.Topic), Most: record.MaxEarlier}
		}
		for i, begin := range scanner.Earlier(ctx, partitions, found, asked) {
			if found[i].Err != nil {
				return fmt.Errorf("%v: %w", partitions[i], found[i].Err)
			}
			logs[i].begin, logs[i].what.Next = begin, begin
		}
		return nil
	})
	return logs, err
}

// logStart returns the offset from which a log is read, given the first record from a moment on, and the timestamp
// since which that includes all records; both moments are in ms.
func logStart(log *fetch.Log, first fetch.Dated, moment, now int64) (from, since int64) {
	switch {
	case log.Start == 0 && (log.End == 0 || moment == 0 || first.Offset == 0):
		return 0, state.MinTime
	case moment > 0 && first.Offset > log.Start: // all records before it are older
		return first.Offset, moment
	case first.Offset >= 0: // retention may have removed records as new as the first remaining one
		return log.Start, max(moment, first.Timestamp+1)
	case moment > 0 && log.Start < log.End: // all records are older
		return log.End, moment
	default: // the age of the records that retention has removed is unknown
		return log.Start, now + 1
	}
}

// Name returns the name of the partition: TOPIC/PARTITION.
func (l *Log) Name() string { return l.what.Partition.String() }

// Topic returns the topic of the partition.
func (l *Log) Topic() string { return l.what.Topic }

// Since returns the timestamp, in ms, since which Read has handed over all records that were ever written;
// state.MinTime if it has handed over all, state.MaxTime if Newest left none.
func (l *Log) Since() int64 { return l.since }

// From returns the first offset that counts. What Read hands over before it is only to be remembered, see record.Earlier.
func (l *Log) From() int64 { return l.from }

// Progress returns the number of offsets read, and of all offsets to read.
func (l *Log) Progress() (read, all int64) { return l.what.Next - l.begin, l.what.To - l.begin }

// Newest limits a log that has not been read yet to its newest offsets.
func (l *Log) Newest(offsets int64) {
	l.what.Next = max(l.what.Next, l.what.To-offsets)
	l.begin, l.from, l.since = l.what.Next, l.what.Next, state.MaxTime // until the first record tells the age of those before it
}

// Read passes the records to take. If take returns a *record.MissingSchema, the schema is supplied and the record is
// passed again; other errors end the reading.
func (l *Log) Read(ctx context.Context, take func(*record.Record) error) error {
	l.take = take
	return l.scanner.Read(ctx, []*Range{&l.what}, l)
}

// Record passes a record on; see Sink.
func (l *Log) Record(r *record.Record) error {
	if l.since == state.MaxTime {
		l.since = r.Timestamp
	}
	return l.take(r)
}

// Lost notes a batch that cannot be decoded.
func (l *Log) Lost(_ state.Partition, timestamp int64, _ error) { l.since = max(l.since, timestamp+1) }

// Fetching does nothing.
func (l *Log) Fetching() {}
