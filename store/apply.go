package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features/kinds"
)

const (
	// callOps bounds the operations of one script call, and with them the time,
	// under a millisecond, for which it keeps others waiting.
	callOps = 500
	// pruneEvery is how many batches pass between two in which a shard's call
	// prunes what it touches. More seldom leaves more stale tiles in memory.
	pruneEvery = 8
	// slack is how much longer than asked for keys live, in seconds, so that
	// neither a late event nor a clock that is off meets an expired key.
	slack = 3600
)

// Writer applies batches. It has memory of its own and serves one goroutine.
type Writer struct {
	store    *Store
	rounds   int
	byShard  [][]int32 // indices in Batch.Touched
	combiner combiner
	calls    []scriptCall
	progress []any // by shard, the progress key
	sha      any

	args  []any    // of all calls of a pass
	texts []string // that args point to
	bytes []byte   // that texts stand in
}

// scriptCall is one call under way: what it moves when it succeeds.
type scriptCall struct {
	shard int
	cmd   *redis.Cmd
	moves []move
}

// move takes a source's progress in a shard from one offset to another.
type move struct {
	source   int
	from, to int64
}

// NewWriter returns a writer for one goroutine.
func (s *Store) NewWriter() *Writer {
	w := &Writer{store: s, byShard: make([][]int32, len(s.tags)), sha: s.script.Hash()}
	for _, tag := range s.tags {
		w.progress = append(w.progress, progressKey(tag))
	}
	return w
}

// Apply applies a batch, each shard's share at once with the shard's progress.
// For each source of a call the script compares the progress that it finds with
// the offset from which the call goes on:
//
//	equal          applied, and the progress moved
//	greater        applied before, by a request that was sent twice or by another
//	               owner of the partition: only what lies behind is sent again
//	less, or none  the store went back in time: the source is marked Behind
//
// An error means that Redis could not be reached or would not write. What was
// confirmed until then stands in the sources' Progress; applying the batch
// again goes on from there, and nothing counts twice.
func (w *Writer) Apply(ctx context.Context, b *kinds.Batch) error {
	w.rounds++
	for shard := range w.byShard {
		w.byShard[shard] = w.byShard[shard][:0]
	}
	for i := range b.Touched {
		shard := kinds.Shard(b.Touched[i].Hash, len(w.byShard))
		w.byShard[shard] = append(w.byShard[shard], int32(i))
	}
	verify := make([]bool, len(w.byShard))
	for shard := range verify {
		verify[shard] = b.EveryShard
	}
	for reloaded := 0; ; {
		w.encode(ctx, b, verify)
		if len(w.calls) == 0 {
			return nil
		}
		pipe := w.store.redis.Pipeline()
		for _, c := range w.calls {
			_ = pipe.Process(ctx, c.cmd)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		err := w.settle(b, verify)
		switch {
		case err == nil:
		case scriptGone(err) && reloaded < 3:
			// A server that was restarted, or a new master, forgot the script.
			reloaded++
			if err := w.store.loadScript(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// encode makes the calls for what is still to be applied.
func (w *Writer) encode(ctx context.Context, b *kinds.Batch, verify []bool) {
	clear(w.args)
	w.calls, w.args, w.texts, w.bytes = w.calls[:0], w.args[:0], w.texts[:0], w.bytes[:0]
	at := make([]int64, len(b.Sources)) // the offset from which the next call goes on
	last := make([]int64, len(b.Sources))
	for shard, touched := range w.byShard {
		for i := range b.Sources {
			at[i] = b.Sources[i].Progress[shard]
			last[i] = at[i]
		}
		w.combiner.reset()
		for n, i := range touched {
			t := &b.Touched[i]
			if b.Sources[t.Source].Behind || t.Offset < at[t.Source] {
				continue
			}
			if len(w.combiner.ops) >= callOps && (n == 0 || b.Touched[touched[n-1]].Offset != t.Offset ||
				b.Touched[touched[n-1]].Source != t.Source) {
				w.call(ctx, b, shard, at, last)
			}
			for j := t.From; j < t.To; j++ {
				w.combiner.add(t.Entity, t.Hash, &b.Ops[j])
			}
			last[t.Source] = t.Offset + 1
		}
		for i := range b.Sources {
			if s := &b.Sources[i]; !s.Behind && (last[i] > at[i] || verify[shard]) {
				last[i] = max(s.To, at[i])
			}
		}
		if verify[shard] || len(w.combiner.ops) > 0 {
			w.call(ctx, b, shard, at, last)
		}
	}
}

// call makes the script call for what the combiner holds, moving the sources
// from at to last, and lets the next one go on there.
func (w *Writer) call(ctx context.Context, b *kinds.Batch, shard int, at, last []int64) {
	start := len(w.args)
	c := scriptCall{shard: shard}
	for i := range b.Sources {
		if !b.Sources[i].Behind && (last[i] > at[i] || b.EveryShard) {
			c.moves = append(c.moves, move{source: i, from: at[i], to: last[i]})
		}
		at[i] = last[i]
	}
	if len(c.moves) == 0 {
		return
	}
	keys := w.combiner.keys
	w.args = append(w.args, "evalsha", w.sha, strconv.Itoa(len(keys)+1), w.progress[shard])
	for i := range keys {
		k := &keys[i]
		w.arg(appendStateKey(w.bytes, w.store.tags[shard], k.series, k.entity, k.tile))
	}
	w.num(int64(len(c.moves)))
	for _, m := range c.moves {
		p := b.Sources[m.source].Partition
		w.arg(strconv.AppendInt(append(append(w.bytes, p.Topic...), '/'), int64(p.ID), 10))
		w.num(m.from)
		w.num(m.to)
	}
	w.num(b.Now)
	now := min(b.Now, time.Now().UnixMilli()) // one clock that is ahead must not prune all
	w.horizons(now, (w.rounds+shard)%pruneEvery == 0)
	for i := range keys {
		w.key(&keys[i], now)
	}
	c.cmd = redis.NewCmd(ctx, w.args[start:len(w.args):len(w.args)]...)
	c.cmd.SetFirstKeyPos(3)
	w.calls = append(w.calls, c)
	w.combiner.reset()
}

// horizons writes the first tile kept of every tiled series in the call, if it
// is to prune.
func (w *Writer) horizons(now int64, prune bool) {
	if !prune {
		w.num(-1)
		return
	}
	var tiled []*kinds.Series
	for i := range w.combiner.ops {
		s := w.combiner.ops[i].Series
		if s.Measure.State() == kinds.Tiles && s.Keep > 0 && !slices.Contains(tiled, s) {
			tiled = append(tiled, s)
		}
	}
	w.num(int64(len(tiled)))
	for _, s := range tiled {
		w.text(s.ID)
		w.num(s.Horizon(now))
	}
}

// key writes the operations on one state key.
func (w *Writer) key(k *stateKey, now int64) {
	w.num(timeToLive(k.series))
	for _, run := range runs {
		n := 0
		for i := k.first; i >= 0; i = w.combiner.ops[i].next {
			if run.takes(w.combiner.ops[i].Series) {
				n++
			}
		}
		if n == 0 {
			continue
		}
		w.text(run.code)
		w.num(int64(n))
		if run.head != nil {
			run.head(w, k.series, now)
		}
		for i := k.first; i >= 0; i = w.combiner.ops[i].next {
			if op := &w.combiner.ops[i].Op; run.takes(op.Series) {
				run.item(w, op)
			}
		}
	}
	if k.series.Measure.State() == kinds.Logs {
		w.log(k, now)
	}
	w.text(".")
}

// log writes the run that appends the records of a log, all as one argument.
func (w *Writer) log(k *stateKey, now int64) {
	w.text("a")
	w.num(int64(k.series.Max))
	if k.series.Keep > 0 {
		w.num(firstKept(k.series, now))
	} else {
		w.num(math.MinInt64)
	}
	data := w.bytes
	for i := k.first; i >= 0; i = w.combiner.ops[i].next {
		data = append(data, w.combiner.ops[i].Member...)
	}
	w.arg(data)
}

// timeToLive is how long a state key is kept after it was last added to, in
// seconds; 0 is for ever.
func timeToLive(s *kinds.Series) int64 {
	keep := s.GroupKeep
	if s.Measure.State() != kinds.Tiles {
		keep = s.Keep
		if keep > 0 {
			keep += s.Tile
		}
	}
	if keep == 0 {
		return 0
	}
	return keep/1000 + slack
}

// runs are the forms in which operations stand in a call; see apply.lua.
var runs = []struct {
	code  string
	takes func(*kinds.Series) bool
	head  func(*Writer, *kinds.Series, int64)
	item  func(*Writer, *kinds.Op)
}{
	{code: "+", takes: addsIntegers, item: (*Writer).fieldAndNumber},
	{code: "f", takes: addsFloats, item: (*Writer).fieldAndNumber},
	{code: "<", takes: measures(kinds.Min), item: (*Writer).fieldAndNumber},
	{code: ">", takes: measures(kinds.Max), item: (*Writer).fieldAndNumber},
	{code: "m", takes: measures(kinds.Distinct),
		head: func(w *Writer, s *kinds.Series, now int64) { w.num(firstKept(s, now)) },
		item: func(w *Writer, op *kinds.Op) {
			w.arg(appendMember(w.bytes, op.Member))
			w.num(op.Tile)
		}},
	{code: "h", takes: measures(kinds.Approx),
		item: func(w *Writer, op *kinds.Op) { w.text(viewString(op.Member)) }},
	{code: "z", takes: measures(kinds.Touch),
		head: func(w *Writer, s *kinds.Series, now int64) {
			w.num(int64(s.Max))
			if s.Keep == 0 {
				w.text("")
			} else {
				w.num(firstKept(s, now))
			}
		},
		item: func(w *Writer, op *kinds.Op) {
			w.num(op.Num)
			w.text(viewString(op.Member))
		}},
}

func measures(m kinds.Measure) func(*kinds.Series) bool {
	return func(s *kinds.Series) bool { return s.Measure == m }
}

func addsFloats(s *kinds.Series) bool { return s.Measure == kinds.Sum && s.Type == kinds.Float }

func addsIntegers(s *kinds.Series) bool {
	return s.Measure == kinds.CountEvents || s.Measure == kinds.CountValues ||
		s.Measure == kinds.Sum && s.Type != kinds.Float
}

// firstKept is the first tile of a series that is kept; of one kept for ever,
// the only one.
func firstKept(s *kinds.Series, now int64) int64 {
	if s.Keep == 0 {
		return 0
	}
	return s.Horizon(now)
}

func (w *Writer) fieldAndNumber(op *kinds.Op) {
	w.arg(appendTileField(w.bytes, op.Series, op.Tile))
	if op.Series.Type == kinds.Float && op.Series.Measure != kinds.CountValues {
		w.arg(strconv.AppendFloat(w.bytes, floatOf(op.Num), 'g', -1, 64))
		return
	}
	w.num(op.Num)
}

// arg takes w.bytes with one argument appended. The argument is passed as a
// pointer to a string, which unlike a string or a slice costs no allocation.
func (w *Writer) arg(grown []byte) {
	n := len(w.bytes)
	w.bytes = grown // where it was moved, earlier texts stand on in the old memory
	w.text(viewString(grown[n:]))
}

func (w *Writer) num(n int64) { w.arg(strconv.AppendInt(w.bytes, n, 10)) }

func (w *Writer) text(s string) {
	w.texts = append(w.texts, s)
	w.args = append(w.args, &w.texts[len(w.texts)-1])
}

// viewString is b as a string without a copy; b must not change while it is used.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// settle takes in the replies. Of several calls for one shard, those behind
// one that was not applied could not be applied either and are passed over.
func (w *Writer) settle(b *kinds.Batch, verify []bool) error {
	var first error
	failed := -1 // the shard whose earlier call was not applied
	for _, c := range w.calls {
		if c.shard == failed {
			continue
		}
		reply, err := c.cmd.Slice()
		if err != nil {
			failed = c.shard
			if first == nil || scriptGone(first) {
				first = fmt.Errorf("apply a batch to shard %d: %w", c.shard, err)
			}
			continue
		}
		applied, err := w.settleCall(b, c, reply)
		if err != nil {
			return err
		}
		if !applied {
			failed = c.shard
			continue
		}
		verify[c.shard] = false
	}
	return first
}

var errReply = errors.New("the script gave an answer of an unknown form")

// settleCall takes in one reply and says whether the call was applied.
func (w *Writer) settleCall(b *kinds.Batch, c scriptCall, reply []any) (applied bool, err error) {
	if len(reply) == 0 {
		return false, errReply
	}
	if refused, ok := reply[0].(int64); ok {
		if refused > 0 && len(reply) > 1 {
			b.Refused += int(refused)
			b.Refusal, _ = reply[1].(string)
		}
		for _, m := range c.moves {
			b.Sources[m.source].Progress[c.shard] = m.to
		}
		return true, nil
	}
	if len(reply) != len(c.moves)+1 {
		return false, errReply
	}
	for i, m := range c.moves {
		found, err := parseOffset(reply[i+1])
		if err != nil {
			return false, err
		}
		if found < m.from {
			b.Sources[m.source].Behind = true
		} else {
			b.Sources[m.source].Progress[c.shard] = found
		}
	}
	return false, nil
}
