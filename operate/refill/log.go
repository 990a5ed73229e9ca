package refill

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/scan"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store/redis/inspector"
)

// Config configures the reading of the log. All fields without a default are required.
type Config struct {
	scan.Config
	// MaxRecordBytes is the size of a record's value above which it is poison, as for live events.
	MaxRecordBytes int
	// Screen receives the progress, in lines; by default nothing does.
	Screen io.Writer
}

// Want describes what to restore of an entity.
type Want struct {
	Group, Entity string
	// Series are the wanted series of the group and of the entity's children.
	Series map[*state.Series]bool
	Secret state.Secret
	Seal   state.Seal // by which copies of dead letters are known
	// LogOf is the log with the tag of a position.
	LogOf func(ctx context.Context, tag string) (state.LogID, error)
}

// applied returns the offset up to which a partition is applied to the entity, given the position of its shard.
func (w *Want) applied(at state.Position) int64 {
	return at.In(state.SliceOf(state.EntityHash([]byte(w.Entity))))
}

// Log reads the records of an entity. It is not safe for concurrent use.
type Log struct {
	Records, Events int64
	// LostUntil maps topics to the timestamp, in ms, up to which the log lacks wanted records.
	LostUntil map[string]int64

	cfg        Config
	want       *Want
	registry   *features.Registry
	fill       *state.Fill
	scanner    *scan.Scanner
	mapper     *features.Mapper
	batch      state.Batch
	contents   *contents
	parts      map[state.Partition]*part
	newest     int64     // greatest believed timestamp of a record read, in ms
	nextReport time.Time // no progress is reported until then
}

// part is one partition.
type part struct {
	scan.Range
	tag     string // the tag of its log, as in positions
	once    *record.Once
	from    int64           // the first offset that counts
	earlier *record.Earlier // nil for a topic without dedup
}

// Open starts reading; Close ends it.
func Open(cfg Config, registry *features.Registry, want *Want) *Log {
	fill := registry.FillOf(want.Series)
	l := &Log{
		LostUntil: map[string]int64{}, cfg: cfg, want: want, registry: registry, fill: fill, mapper: registry.NewFillMapper(fill),
		contents: newContents(want, want.Secret), parts: map[state.Partition]*part{},
		scanner: scan.New(cfg.Config),
	}
	l.mapper.MaxRecordBytes = cfg.MaxRecordBytes
	return l
}

// Close ends what Open started.
func (l *Log) Close() { l.scanner.Close() }

// ErrBehind is returned if a shard is behind its earlier progress: the store has gone back in time.
var ErrBehind = errors.New("the state has gone back in time")

// ReadTo reads up to the progress of a shard, from where the last call ended. It reads only the partitions of needed
// topics. The error is ErrBehind, or the log's.
func (l *Log) ReadTo(ctx context.Context, r *progress.Record) error {
	var fresh []state.Partition
	var ranges []*scan.Range
	for id, h := range r.Held() {
		switch known := l.parts[id]; {
		case len(l.fill.Columns[id.Topic]) == 0:
		case known == nil:
			fresh = append(fresh, id)
		case l.want.applied(h.At) < known.To || h.At.Log != known.tag:
			return ErrBehind
		default:
			known.To = l.want.applied(h.At)
			ranges = append(ranges, &known.Range)
		}
	}
	if len(fresh) > 0 {
		if err := l.scanner.Patiently(ctx, func() error { return l.begin(ctx, fresh, r) }); err != nil {
			return err
		}
	}
	for _, id := range fresh {
		ranges = append(ranges, &l.parts[id].Range)
	}
	return l.scanner.Read(ctx, ranges, l)
}

// Record applies a record. Poison has no effect, as it had none when it was applied. An original that could not be used
// then, and can be now, counts in place of its copy.
func (l *Log) Record(of *record.Record) error {
	p := l.parts[of.Partition]
	if p.earlier.Pass(of.Offset, of.Timestamp); of.Offset < p.from {
		return l.remember(of)
	}
	of.Earlier = p.earlier
	repeats, err := p.once.Use(of, func() error {
		l.batch.Reset()
		_, err := l.mapper.Map(of, 0, &l.batch)
		return err
	})
	if _, lacks := errors.AsType[*record.MissingSchema](err); lacks {
		return err
	}
	l.Records++
	if _, poison := errors.AsType[*record.Poison](err); poison || repeats {
		return nil
	}
	if err != nil {
		return err
	}
	l.newest = max(l.newest, min(of.Timestamp, time.Now().UnixMilli()))
	events, err := l.contents.take(&l.batch, l.newest)
	l.Events += int64(events)
	return err
}

// remember remembers the events of a record that does not count.
func (l *Log) remember(of *record.Record) error {
	if c, _ := record.CopyOf(of, l.want.Seal); c != nil {
		return nil
	}
	of.Earlier = l.parts[of.Partition].earlier
	err := l.mapper.Note(of)
	if _, lacks := errors.AsType[*record.MissingSchema](err); lacks {
		return err
	}
	return nil
}

// Lost records a batch that cannot be decoded.
func (l *Log) Lost(p state.Partition, timestamp int64, _ error) {
	l.LostUntil[p.Topic] = max(l.LostUntil[p.Topic], timestamp)
}

// Contents returns the state of the entity, and of its children in the store's form, from the records read so far,
// without state that is no longer kept at a moment, in ms.
func (l *Log) Contents(now int64) (own []byte, children []inspector.RefilledChild, err error) {
	own, keys, err := l.contents.all(min(now, time.Now().UnixMilli()))
	for _, k := range keys {
		child := inspector.RefilledChild{Group: k.group, Entity: k.entity, Sections: k.packed}
		for _, s := range k.series {
			child.Keep = s.GroupKeep
		}
		children = append(children, child)
	}
	return own, children, err
}
