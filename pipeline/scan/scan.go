// Package scan reads ranges of Kafka's log once, in bulk, for commands: no group, no progress in the store.
package scan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/pipeline/schemas"
	"github.com/weir-stream/weir/state"
)

// Config configures a Scanner. All fields without a default are required.
type Config struct {
	Transport kafka.RoundTripper
	Bootstrap net.Addr // of some brokers, by kafka.TCP
	Isolation fetch.Isolation
	// Schemas supplies the schemas that records name; nil if no stream needs them.
	Schemas interface {
		Supply(context.Context, *record.MissingSchema) error
	}
	Patience time.Duration // how long to retry a log that cannot be read; by default 30 s
}

// Range is what to read of a partition.
type Range struct {
	state.Partition
	Log         state.LogID
	LeaderEpoch int32
	Next, To    int64 // next offset to read, and the end

	// epochs is 1 more than the leader epoch of the record before Next, or a later one of the log; 0 if unknown. With
	// it, reading goes on only in the same log, not in one that was truncated before Next and has grown again.
	epochs  int32
	corrupt int  // consecutive failures to decode a batch
	deleted bool // retention has removed the records before Next meanwhile
}

// Sink receives the records.
type Sink interface {
	// Record takes a record, which is valid until it returns. If the error is a *record.MissingSchema, the schema is
	// supplied and the record is passed again. Other errors end the reading.
	Record(*record.Record) error
	// Lost reports records that cannot be read, with their newest timestamp, in ms: records of a batch that is damaged as the
	// error says, or, without an error, records that retention removed before they were read.
	Lost(of state.Partition, newest int64, damaged error)
	// Fetching is called before more is fetched.
	Fetching()
}

// Scanner reads ranges. It is not safe for concurrent use.
type Scanner struct {
	*fetch.Poller
	cfg     Config
	decoder fetch.Decoder
}

// New returns a Scanner. The caller must close it.
func New(cfg Config) *Scanner {
	if cfg.Patience == 0 {
		cfg.Patience = 30 * time.Second
	}
	return &Scanner{cfg: cfg, Poller: fetch.NewPoller(fetch.PollerConfig{
		Transport: cfg.Transport, Bootstrap: cfg.Bootstrap, Isolation: cfg.Isolation, Logger: slog.New(slog.DiscardHandler),
	})}
}

// Patiently retries for a while, except if a topic is another log, or if there is no Schema Registry.
func (s *Scanner) Patiently(ctx context.Context, try func() error) error {
	for until := time.Now().Add(s.cfg.Patience); ; {
		err := try()
		_, other := errors.AsType[*fetch.OtherLogError](err)
		if err == nil || other || errors.Is(err, schemas.ErrNoRegistry) || time.Now().After(until) || !retry.Wait(ctx, 200*time.Millisecond) {
			return err
		}
	}
}

// Topic looks up the logs of all partitions of a topic.
func (s *Scanner) Topic(ctx context.Context, name string) (ids []state.Partition, logs []fetch.Log, err error) {
	for n := 1; len(ids) < n; n = max(n, logs[0].Partitions) {
		ids = ids[:0]
		for id := range n {
			ids = append(ids, state.Partition{Topic: name, ID: int32(id)})
		}
		if logs, err = s.Logs(ctx, ids); err != nil {
			return nil, nil, err
		}
	}
	for i := range logs {
		if logs[i].Err != nil {
			return nil, nil, logs[i].Err
		}
	}
	return ids, logs, nil
}

// Read reads ranges to their ends and moves them on. Records of a partition come in order.
func (s *Scanner) Read(ctx context.Context, ranges []*Range, sink Sink) error {
	left := map[state.Partition]*Range{}
	for _, r := range ranges {
		if r.Next < r.To {
			left[r.Partition] = r
			s.Resume(r.Topic, r.ID, fetch.Known{Offset: r.Next, Epoch: r.epochs - 1, LeaderEpoch: r.LeaderEpoch, Log: r.Log})
		}
	}
	done := func(r *Range) {
		if r.Next < r.To {
			return
		}
		if r.deleted {
			sink.Lost(r.Partition, time.Now().UnixMilli(), nil)
		}
		r.Next = r.To
		s.Remove(r.Topic, r.ID)
		delete(left, r.Partition)
	}
	patience := time.Now().Add(s.cfg.Patience)
	for len(left) > 0 {
		sink.Fetching()
		waiting, cancel := context.WithDeadline(ctx, patience)
		fetched, err := s.Poll(waiting)
		cancel()
		if out, ok := errors.AsType[*fetch.OffsetOutOfRangeError](err); ok && s.skip(left[out.Of()], out) {
			done(left[out.Of()])
			continue
		}
		if _, misplaced := errors.AsType[fetch.PositionError](err); misplaced {
			return fmt.Errorf("the log changed while it was read, try again: %w", err)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			if err := s.late(); err != nil {
				return err
			}
			patience = time.Now().Add(s.cfg.Patience)
			continue
		case err != nil:
			return fmt.Errorf("the log cannot be read: %w", err)
		}
		r := left[state.Partition{Topic: fetched.Topic, ID: fetched.Partition}]
		if r == nil || !s.Current(fetched) {
			fetched.Release()
			continue
		}
		before := r.Next
		err = s.take(ctx, fetched, r, sink)
		fetched.Release()
		if err != nil {
			return err
		}
		if r.Next > before {
			patience = time.Now().Add(s.cfg.Patience)
		}
		done(r)
	}
	return nil
}

// ErrHeld is the error where brokers answer, but hold back records of a range.
var ErrHeld = errors.New("the brokers answer without the records up to the end: perhaps a transaction is open")

// late returns why records have not come in time. There is no reason while some partition was never fetched, because only
// fetched partitions show what they wait for.
func (s *Scanner) late() error {
	troubles := s.Troubles()
	if len(troubles) == 0 {
		return ErrHeld
	}
	for _, t := range troubles {
		if !errors.Is(t.Err, fetch.ErrNotYetFetched) {
			return fmt.Errorf("%s/%d cannot be read: %w", t.Topic, t.Partition, t.Err)
		}
	}
	return nil
}

// skip continues after records that retention has removed, and reports whether that was the error.
func (s *Scanner) skip(r *Range, e *fetch.OffsetOutOfRangeError) bool {
	if r == nil || e.LogStart <= r.Next {
		return false
	}
	r.Next, r.deleted = e.LogStart, true
	s.Seek(r.Topic, r.ID, r.Next)
	return true
}

// take handles the fetched data of a range.
func (s *Scanner) take(ctx context.Context, fetched *fetch.PartitionData, r *Range, sink Sink) error {
	s.decoder.Reset(fetched)
	r.epochs = max(r.epochs, fetched.LastEpoch+1)
	log := r.Log.Tag()
	var rec fetch.Record
	for {
		ok, err := s.decoder.Next(&rec)
		if corrupt, is := errors.AsType[*fetch.CorruptError](err); is {
			return s.pass(r, corrupt, sink)
		}
		r.corrupt = 0
		if !ok {
			r.Next = max(r.Next, s.decoder.NextOffset())
			return nil
		}
		if rec.Offset >= r.To {
			r.Next = r.To
			return nil
		}
		if r.deleted {
			sink.Lost(r.Partition, rec.Timestamp, nil) // those deleted were not newer, or hardly
			r.deleted = false
		}
		of := record.Record{Partition: r.Partition, Offset: rec.Offset, Timestamp: rec.Timestamp, Key: rec.Key, Value: rec.Value, Headers: &rec.Headers, Log: log}
		err = sink.Record(&of)
		if missing, lacks := errors.AsType[*record.MissingSchema](err); lacks {
			if err := s.Patiently(ctx, func() error { return s.cfg.Schemas.Supply(ctx, missing) }); err != nil {
				return located(&of, err)
			}
			err = sink.Record(&of)
		}
		if err != nil {
			return located(&of, err)
		}
		r.Next = rec.Offset + 1
	}
}

func located(of *record.Record, err error) error {
	return fmt.Errorf("%v at offset %d: %w", of.Partition, of.Offset, err)
}

// pass skips a batch that cannot be decoded.
func (s *Scanner) pass(r *Range, e *fetch.CorruptError, sink Sink) error {
	r.corrupt++
	if e.FetchAgain(r.corrupt) {
		s.Seek(r.Topic, r.ID, e.Offset)
		return nil
	}
	if e.EndOffset < 0 {
		return e
	}
	sink.Lost(r.Partition, e.NewestIn(time.Now().UnixMilli()), e)
	r.Next, r.corrupt = e.EndOffset, 0
	s.Seek(r.Topic, r.ID, e.EndOffset)
	return nil
}
