package refill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/inspector"
)

// Config configures the reading of the log. All fields without a default are required.
type Config struct {
	Transport *kafka.Transport
	Brokers   []string
	Isolation fetch.Isolation
	// MaxRecordBytes is the size of a record's value above which it is poison, as for live events.
	MaxRecordBytes int
	// Schemas supplies the schemas that records name; nil if no stream needs them.
	Schemas interface {
		Supply(context.Context, *record.MissingSchema) error
	}
	Patience time.Duration // how long to retry a log that cannot be read; by default 30 s
	// Screen receives the progress, in lines; by default nothing does.
	Screen io.Writer
}

// Want is what to bring back of an entity.
type Want struct {
	Group, Entity string
	// Series are the wanted series of the group and of the entity's children.
	Series map[*state.Series]bool
	Secret packed.Secret
	// LogOf is the log with the tag of a position.
	LogOf func(ctx context.Context, tag string) (state.LogID, error)
}

// Log reads the records of an entity. It serves one goroutine.
type Log struct {
	Records, Events int64
	// Lost is by topic the timestamp, in ms, up to which the log lacks wanted records.
	Lost map[string]int64

	cfg      Config
	want     *Want
	registry *features.Registry
	fill     *state.Fill
	poller   *fetch.Poller
	mapper   *features.Mapper
	decoder  fetch.Decoder
	batch    state.Batch
	contents *contents
	parts    map[state.Partition]*part
	newest   int64     // greatest believed timestamp of a record read, in ms
	told     time.Time // no progress is reported until then
}

// part is one partition.
type part struct {
	state.Partition
	log      state.LogID
	tag      string // the tag of its log, as in positions
	leader   int32  // epoch of the leader
	next, to int64  // next offset to read, and the end
	corrupt  int    // consecutive failures to decode a batch
}

// Open starts reading; Close ends it.
func Open(cfg Config, registry *features.Registry, want *Want) *Log {
	if cfg.Patience == 0 {
		cfg.Patience = 30 * time.Second
	}
	fill := registry.FillOf(want.Series)
	l := &Log{
		Lost: map[string]int64{}, cfg: cfg, want: want, registry: registry, fill: fill, mapper: registry.NewFillMapper(fill),
		contents: newContents(want, want.Secret), parts: map[state.Partition]*part{},
		poller: fetch.NewPoller(fetch.PollerConfig{
			Transport: cfg.Transport, Bootstrap: kafka.TCP(cfg.Brokers...), Isolation: cfg.Isolation, Logger: slog.New(slog.DiscardHandler),
		}),
	}
	l.mapper.MaxRecordBytes = cfg.MaxRecordBytes
	return l
}

// Close ends what Open started.
func (l *Log) Close() { l.poller.Close() }

// ErrBehind says that a shard is behind its earlier progress: the store has gone back in time.
var ErrBehind = errors.New("the state has gone back in time")

// ReadTo reads up to the progress of a shard, from where the last call ended. It reads partitions
// of the topics that matter. The error is ErrBehind, or that of the log.
func (l *Log) ReadTo(ctx context.Context, p inspector.Progress) error {
	var fresh []state.Partition
	left := map[state.Partition]*part{}
	for id, at := range p.Partitions {
		switch known := l.parts[id]; {
		case len(l.fill.Columns[id.Topic]) == 0:
		case known == nil:
			fresh = append(fresh, id)
		case at.Offset < known.to || at.Log != known.tag:
			return ErrBehind
		default:
			known.to, left[id] = at.Offset, known
		}
	}
	if len(fresh) > 0 {
		if err := l.patiently(ctx, func() error { return l.begin(ctx, fresh, p) }); err != nil {
			return err
		}
	}
	for _, id := range fresh {
		left[id] = l.parts[id]
	}
	for id, of := range left {
		if of.next >= of.to {
			delete(left, id)
			continue
		}
		l.poller.Resume(id.Topic, id.ID, fetch.Known{Offset: of.next, Epoch: -1, LeaderEpoch: of.leader, Log: of.log})
	}
	return l.read(ctx, left)
}

// patiently retries for a while.
func (l *Log) patiently(ctx context.Context, try func() error) error {
	for until := time.Now().Add(l.cfg.Patience); ; {
		err := try()
		if _, other := errors.AsType[*fetch.OtherLogError](err); err == nil || other || time.Now().After(until) || !retry.Wait(ctx, 200*time.Millisecond) {
			return err
		}
	}
}

// read reads partitions up to their ends.
func (l *Log) read(ctx context.Context, left map[state.Partition]*part) error {
	patience := time.Now().Add(l.cfg.Patience)
	var trouble error
	for len(left) > 0 {
		l.tell(left)
		waiting, cancel := context.WithDeadline(ctx, patience)
		fetched, err := l.poller.Poll(waiting)
		cancel()
		if _, misplaced := errors.AsType[fetch.PositionError](err); misplaced {
			return fmt.Errorf("the log changed while it was read, try again: %w", err)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && time.Now().Before(patience):
			trouble = err
			continue
		case err != nil:
			return fmt.Errorf("the log cannot be read: %w", errors.Join(trouble, err))
		}
		before := l.Records
		done, err := l.take(ctx, fetched, left[state.Partition{Topic: fetched.Topic, ID: fetched.Partition}])
		fetched.Release()
		if err != nil {
			return err
		}
		if done != nil {
			l.poller.Remove(done.Topic, done.ID)
			delete(left, done.Partition)
		}
		if done != nil || l.Records > before {
			patience = time.Now().Add(l.cfg.Patience)
		}
	}
	return nil
}

// take handles the fetched data of a partition, and returns the partition once it is read to its
// end.
func (l *Log) take(ctx context.Context, fetched *fetch.PartitionData, p *part) (done *part, err error) {
	if p == nil || !l.poller.Current(fetched) {
		return nil, nil
	}
	l.decoder.Reset(fetched)
	var rec fetch.Record
	for {
		ok, err := l.decoder.Next(&rec)
		if corrupt, is := errors.AsType[*fetch.CorruptError](err); is {
			if err := l.pass(p, corrupt); err != nil {
				return nil, err
			}
			break
		}
		p.corrupt = 0
		if !ok {
			p.next = max(p.next, l.decoder.NextOffset())
			break
		}
		if rec.Offset >= p.to {
			p.next = p.to
			break
		}
		if err := l.mapRecord(ctx, p, &rec); err != nil {
			return nil, fmt.Errorf("%s/%d at offset %d: %w", p.Topic, p.ID, rec.Offset, err)
		}
		p.next = rec.Offset + 1
	}
	if p.next < p.to {
		return nil, nil
	}
	p.next = p.to
	return p, nil
}

// mapRecord applies a record. Poison has no effect, as it had none when it was applied.
func (l *Log) mapRecord(ctx context.Context, p *part, rec *fetch.Record) error {
	l.Records++
	l.batch.Reset()
	of := record.Record{Partition: p.Partition, Offset: rec.Offset, Timestamp: rec.Timestamp, Key: rec.Key, Value: rec.Value, Headers: &rec.Headers}
	_, err := l.mapper.Map(&of, 0, &l.batch)
	if missing, lacks := errors.AsType[*record.MissingSchema](err); lacks {
		supply := func() error { return l.cfg.Schemas.Supply(ctx, missing) }
		if err := l.patiently(ctx, supply); err != nil {
			return err
		}
		_, err = l.mapper.Map(&of, 0, &l.batch)
	}
	if _, poison := errors.AsType[*record.Poison](err); poison {
		return nil
	}
	if err != nil {
		return err
	}
	l.newest = max(l.newest, min(rec.Timestamp, time.Now().UnixMilli()))
	events, err := l.contents.take(&l.batch, l.newest)
	l.Events += int64(events)
	return err
}

// checksumTries is how often a batch with a wrong checksum is fetched, as for live events.
const checksumTries = 3

// pass skips a batch that cannot be decoded, and records it as lost.
func (l *Log) pass(p *part, e *fetch.CorruptError) error {
	p.corrupt++
	if errors.Is(e, fetch.ErrChecksum) && p.corrupt < checksumTries {
		l.poller.Seek(p.Topic, p.ID, e.Offset)
		return nil
	}
	if e.EndOffset < 0 {
		return e
	}
	timestamp := e.Timestamp
	if timestamp <= 0 {
		timestamp = time.Now().UnixMilli()
	}
	l.Lost[p.Topic] = max(l.Lost[p.Topic], timestamp)
	p.next = e.EndOffset
	l.poller.Seek(p.Topic, p.ID, e.EndOffset)
	return nil
}

// Contents are the state of the entity, and of its children in the store's form, from the records
// read so far. What is no longer kept at a moment, in ms, is left out.
func (l *Log) Contents(now int64) (own []byte, children []inspector.RefilledChild, err error) {
	own, keys, err := l.contents.all(min(now, time.Now().UnixMilli()))
	for _, k := range keys {
		child := inspector.RefilledChild{Group: k.group, Entity: k.entity, Sections: k.held}
		for _, s := range k.series {
			child.Keep = s.GroupKeep
		}
		children = append(children, child)
	}
	return own, children, err
}
