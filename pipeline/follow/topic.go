package follow

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/reworded/brokers"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/pipeline/scan"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/tables"
)

// askEach is how often the ends of a topic's partitions are asked for, to know that the table has all of it. Records are
// taken as they come.
const askEach = 2 * time.Second

// patience is how long a round waits for records, or for a schema, before it says why they do not come.
const patience = 10 * time.Second

// topic is a table in a topic.
type topic struct {
	*tables.Held
	follower *Follower
	scanner  *scan.Scanner

	contents   *tables.Contents
	bad        error // the first record that could not be read
	partitions map[int32]*scan.Range
	lost       error     // why the contents may lack rows
	complained time.Time // when a bad record was last logged
}

func (t *topic) follow(ctx context.Context) {
	cfg, done, err := t.follower.cfg.Kafka()
	if err != nil {
		t.follower.fail(t.Held, err)
		return
	}
	defer done()
	cfg.Patience = patience
	t.scanner = scan.New(cfg)
	defer t.scanner.Close()
	t.begin()
	backoff := retry.Backoff{First: again, Longest: tooLarge}
	for wait := time.Duration(0); retry.Wait(ctx, wait); {
		err := t.round(ctx)
		switch wait = 0; {
		case err == nil || ctx.Err() != nil:
			continue
		case errors.Is(err, tables.ErrTooLarge):
			wait = tooLarge
			t.begin()
		case errors.Is(err, errOther):
			wait = backoff.Next()
			t.begin()
		default:
			wait = again
		}
		t.follower.fail(t.Held, brokers.Plainly(err))
	}
}

// Read reads the rows of a table that its topic has now. Bad is the first record that could not be read,
// so that its row is missing.
func Read(ctx context.Context, cfg scan.Config, of *features.Table, keep tables.Keep) (c *tables.Contents, bad, err error) {
	t := &topic{Held: &tables.Held{Table: of}, scanner: scan.New(cfg)}
	defer t.scanner.Close()
	t.begin()
	t.contents.Keeping(keep)
	ranges, err := t.ends(ctx)
	if err == nil {
		err = t.read(ctx, ranges)
	}
	return t.contents, t.bad, err
}

// errOther means that the topic has to be read from its beginning.
var errOther = errors.New("the topic is read again")

// begin begins to read the topic from its beginning. What was read of it before answers until that is done.
func (t *topic) begin() {
	t.contents, t.partitions, t.lost = tables.New(t.Table), map[int32]*scan.Range{}, nil
}

// round reads up to the ends of all partitions, which makes the table whole, and then takes what comes until it is time to ask
// for the ends again.
func (t *topic) round(ctx context.Context) error {
	began := time.Now()
	ranges, err := t.ends(ctx)
	if err == nil {
		err = t.read(ctx, ranges)
	}
	if err != nil {
		return err
	}
	if _, _, age, _ := t.State(began); age < 0 {
		rows, _ := t.contents.Rows()
		t.follower.cfg.Log.Info("a table was read", "table", t.Table.Name, "topic", t.Table.Rows.Topic, "rows", rows)
	}
	t.Whole(t.contents, began)
	for _, r := range ranges {
		r.To = math.MaxInt64
	}
	live, cancel := context.WithTimeout(ctx, askEach-time.Since(began)%askEach)
	defer cancel()
	if err = t.read(live, ranges); live.Err() != nil {
		err = nil
	}
	return err
}

// ends finds what there is to read.
func (t *topic) ends(ctx context.Context) (ranges []*scan.Range, err error) {
	ids, logs, err := t.scanner.Topic(ctx, t.Table.Rows.Topic)
	if err != nil {
		return nil, err
	}
	if len(ids) < len(t.partitions) {
		return nil, fmt.Errorf("%s has %d partitions, and had %d: %w", t.Table.Rows.Topic, len(ids), len(t.partitions), errOther)
	}
	for i, id := range ids {
		log := &logs[i]
		r := t.partitions[id.ID]
		if r == nil {
			r = &scan.Range{Partition: id, Log: log.ID, Next: log.Start}
			t.partitions[id.ID] = r
		}
		switch {
		case r.Log.Contradicts(log.ID):
			return nil, fmt.Errorf("%v is another log than before: %w", id, errOther)
		case log.End < r.Next:
			return nil, fmt.Errorf("%v ends at offset %d, and was read up to %d: %w", id, log.End, r.Next, errOther)
		}
		r.LeaderEpoch, r.To = log.LeaderEpoch, log.Stable
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// read reads ranges to their ends.
func (t *topic) read(ctx context.Context, ranges []*scan.Range) error {
	err := t.scanner.Read(ctx, ranges, t)
	if _, misplaced := errors.AsType[fetch.PositionError](err); misplaced {
		return fmt.Errorf("%w: %w", errOther, err)
	}
	if err == nil && t.lost != nil {
		err = t.lost
	}
	return err
}

// Record takes a record; see scan.Sink.
func (t *topic) Record(r *record.Record) error {
	if t.lost != nil {
		return t.lost
	}
	bad, err := t.contents.Take(r)
	if bad == nil {
		return err
	}
	if t.bad == nil {
		t.bad = fmt.Errorf("%v at offset %d: %w", r.Partition, r.Offset, bad)
	}
	if t.follower == nil {
		return err
	}
	t.follower.metrics.bad.WithLabelValues(t.Table.Name).Inc()
	if now := time.Now(); now.Sub(t.complained) >= time.Second {
		t.complained = now
		t.follower.cfg.Log.Warn("a record of a table cannot be read: its row is missing", "table", t.Table.Name,
			"partition", r.Partition.String(), "offset", r.Offset, "error", bad)
	}
	return err
}

// Lost notes records that cannot be read. Those that retention removed meanwhile, or a batch that is damaged, may have been
// the newest of their keys, or the deletes of rows.
func (t *topic) Lost(p state.Partition, _ int64, _ error) {
	if r := t.partitions[p.ID]; r != nil {
		t.lost = fmt.Errorf("records of %v near offset %d are gone or cannot be decoded: %w", p, r.Next, errOther)
	}
}

// Fetching does nothing.
func (*topic) Fetching() {}
