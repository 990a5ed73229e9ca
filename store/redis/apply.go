package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

const (
	// callOps and callBytes bound the mutations of one script call, and so the time for which it blocks others, one to
	// two milliseconds. Smaller calls cost more: only what one call appends to a key is combined.
	callOps   = 1500
	callBytes = 64 << 10
	// passBytes bounds what the calls of one pipeline append to a key. The rest goes with the next pipeline, before
	// which the key may be compacted. So keys stay bounded, even if a batch has very many events of one entity.
	passBytes = 128 << 10
	// mostFull is how often in a row a batch may find keys full: other writers may use up the room that a compaction
	// makes.
	mostFull = 100
)

// writer applies batches. It reuses its memory, and is not safe for concurrent use.
type writer struct {
	store    *Store
	byShard  [][]int32 // indices in Batch.Updates
	combiner combiner
	packer   packed.Packer
	calls    []scriptCall
	refused  []scriptCall        // because the memory is full
	appended map[uint64]appended // in earlier calls of the shard, by the hash of a key
	progress []any               // by shard, the progress key
	sha      any
	now      int64 // by the clock, in milliseconds since 1970
	compactor

	keeps  []int64 // distinct times for which keys of a call are kept
	lifeOf []byte  // for each key of a call, the index in keeps

	child, sections []byte // packed of a child

	checked []int // numbers of the keys of a call that may be full
	full    bool  // some call of the pipeline found keys full

	args  []any    // of all calls of a pipeline
	texts []string // that args point to
	bytes []byte   // that texts are in
}

// scriptCall is one call under way, with the progress that it moves on success.
type scriptCall struct {
	shard int
	more  bool // the batch has further mutations of the shard
	cmd   *redis.Cmd
	keys  []any // the state keys
	moves []move

	spared []byte  // numbers of keys, two bytes each, that it must not return as candidates
	spares *string // the same as an argument
}

// appended holds what the calls of a pipeline append to a key: the number of bytes, the last of these calls, and the
// number of the key in it, from 1.
type appended struct {
	bytes, call, key int
}

// move moves the progress of a range in a shard from one position to another.
type move struct {
	rangeIndex int
	from, to   state.Position
}

// NewWriter returns a writer for one goroutine.
func (s *Store) NewWriter() store.Writer { return s.newWriter() }

func (s *Store) newWriter() *writer {
	s.makeExpiries()
	w := &writer{store: s, byShard: make([][]int32, len(s.tags)), sha: s.apply.Hash(), appended: map[uint64]appended{}}
	for _, tag := range s.tags {
		w.progress = append(w.progress, keyspace.ProgressKey(tag))
	}
	return w
}

// Apply applies a batch; each shard's share and the shard's progress change in one step. For each
// range of a call the script compares the position that it finds with the one from which the call
// starts:
//
//	equal          applied, and the progress moved
//	greater        applied before, by a request that was sent twice or by another
//	               owner of the partition: only what comes after is sent again
//	less, or none  the store went back in time: the range is marked Behind
//	of another     the partition was placed in another log, or after a truncation:
//	log or epoch   the range is marked Behind
//
// A call that would make a key too long is not applied either: the key is compacted first.
//
// All masters are called concurrently, each with its own deadline. If one does not answer while
// others do, its shards are marked Lagging.
//
// An error means that Redis could not be reached or refused to write. What was confirmed by then is in the Progress of
// the ranges; applying the batch again continues from there, and nothing counts twice.
func (w *writer) Apply(ctx context.Context, b *state.Batch) error {
	for shard := range w.byShard {
		w.byShard[shard] = w.byShard[shard][:0]
	}
	for i := range b.Updates {
		shard := w.store.ShardOf(&b.Updates[i], len(w.byShard))
		w.byShard[shard] = append(w.byShard[shard], int32(i))
	}
	if err := w.learnSecret(ctx); err != nil {
		return err
	}
	verify := make([]bool, len(w.byShard))
	for shard := range verify {
		verify[shard] = b.EveryShard
	}
	for reloaded, full := 0, 0; ; {
		w.encode(ctx, b, verify)
		if len(w.calls) == 0 {
			return nil
		}
		b.Calls += len(w.calls)
		w.send(ctx)
		refused := w.receive(ctx, b, verify)
		w.relieve(ctx)
		err := cmp.Or(refused, w.compact(ctx, b))
		if full++; !w.full {
			full = 0
		} else if full > mostFull && err == nil {
			err = errFull
		}
		switch {
		case err == nil:
		case scriptGone(err) && reloaded < 3:
			// A server that was restarted, or a new master, has not loaded the script.
			reloaded++
			if err := w.store.loadScripts(ctx); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// learnSecret sets the namespace's secret for hashing.
func (w *writer) learnSecret(ctx context.Context) (err error) {
	w.packer.Secret, err = w.store.keyed(ctx)
	if err == nil && w.packer.Secret == (packed.Secret{}) {
		err = fmt.Errorf("namespace %q has not been made", w.store.namespace)
	}
	return err
}

// send sends the calls, after the replacements, which change no answer. Each command then has its
// own error.
func (w *writer) send(ctx context.Context) {
	shards, commands := w.replace(ctx)
	for _, c := range w.calls {
		shards, commands = append(shards, c.shard), append(commands, c.cmd)
	}
	w.store.send(ctx, w.store.masters.write, commands, func(i int) int { return shards[i] })
}

// encode makes the calls for what is still to be applied.
func (w *writer) encode(ctx context.Context, b *state.Batch, verify []bool) {
	clear(w.args)
	w.now = time.Now().UnixMilli()
	w.calls, w.args, w.texts, w.bytes = w.calls[:0], w.args[:0], w.texts[:0], w.bytes[:0]
	at := make([]state.Position, len(b.Ranges)) // where the next call of each range starts
	last := make([]int64, len(b.Ranges))
	for shard := range w.byShard {
		for i := range b.Ranges {
			if b.Ranges[i].Behind {
				continue // its progress may be for another number of shards
			}
			at[i] = b.Ranges[i].Progress[shard]
			last[i] = at[i].Offset
		}
		w.combiner.reset()
		clear(w.appended)
		if w.encodeShard(ctx, b, shard, at, last) {
			continue
		}
		for i := range b.Ranges {
			if s := &b.Ranges[i]; !s.Behind && !s.Lags(shard) && (last[i] > at[i].Offset || verify[shard]) {
				last[i] = max(s.To, at[i].Offset)
			}
		}
		if verify[shard] || len(w.combiner.mutations) > 0 {
			w.call(ctx, b, shard, at, last, false)
		}
	}
	for i := range w.calls {
		*w.calls[i].spares = string(w.calls[i].spared)
	}
}

// encodeShard makes the calls for what is still to be applied to a shard, except the last, whose
// mutations stay in the combiner. If full, the rest must wait for the next pipeline.
func (w *writer) encodeShard(ctx context.Context, b *state.Batch, shard int, at []state.Position, last []int64) (full bool) {
	before := -1 // the previous one of the shard
	for _, i := range w.byShard[shard] {
		t := &b.Updates[i]
		if s := &b.Ranges[t.Range]; s.Behind || t.Offset < at[t.Range].Offset || s.Lags(shard) {
			continue
		}
		// A call contains all mutations of an event.
		if w.combiner.full() && (b.Updates[before].Offset != t.Offset || b.Updates[before].Range != t.Range) {
			if w.call(ctx, b, shard, at, last, true) {
				return true
			}
		}
		before = int(i)
		w.combiner.add(t, b.Mutations[t.From:t.To])
		last[t.Range] = t.Offset + 1
	}
	return false
}

// call makes the script call for the combiner's content, moving the ranges from at to last, and
// advances at if the shard has more. If full, this pipeline must not have further calls of the
// shard.
func (w *writer) call(ctx context.Context, b *state.Batch, shard int, at []state.Position, last []int64, more bool) (full bool) {
	start := len(w.args)
	c := scriptCall{shard: shard, more: more}
	for i := range b.Ranges {
		to := moved(at[i], &b.Ranges[i], last[i])
		if s := &b.Ranges[i]; !s.Behind && !s.Lags(shard) && (last[i] > at[i].Offset || b.EveryShard) {
			c.moves = append(c.moves, move{rangeIndex: i, from: at[i], to: to})
		}
		at[i] = to
	}
	if len(c.moves) == 0 {
		return false
	}
	keys := w.combiner.keys
	w.args = append(w.args, "evalsha", w.sha, strconv.Itoa(len(keys)+1), w.progress[shard])
	for i := range keys {
		w.arg(w.store.appendEntityKey(w.bytes, shard, keys[i].group, keys[i].entity))
	}
	c.keys = w.args[len(w.args)-len(keys):]
	w.num(int64(len(c.moves)))
	for _, m := range c.moves {
		p := b.Ranges[m.rangeIndex].Partition
		w.arg(strconv.AppendInt(append(append(w.bytes, p.Topic...), '/'), int64(p.ID), 10))
		w.arg(m.from.Append(w.bytes))
		w.arg(m.to.Append(w.bytes))
	}
	w.num(state.Believed(b.Now, time.UnixMilli(w.now)))
	c.spares = new(string) // known once all calls are made
	w.args = append(w.args, c.spares)
	w.lifetimes(keys)
	full = w.packAll(keys, more)
	expiry := &w.store.expiry[shard]
	expiry.Lock()
	for i := range keys {
		if expiry.due(keys[i].hash, keys[i].renewed(), w.now) {
			w.num(int64(i + 1))
		}
	}
	expiry.Unlock()
	c.cmd = redis.NewCmd(ctx, w.args[start:len(w.args):len(w.args)]...)
	c.cmd.SetFirstKeyPos(3)
	w.calls = append(w.calls, c)
	w.combiner.reset()
	return full
}

// moved returns a range's position moved to an offset in its batch.
func moved(at state.Position, s *state.PartitionRange, offset int64) state.Position {
	if offset > at.Offset {
		at.Offset, at.Epoch = offset, max(at.Epoch, s.Epoch)
	}
	return at
}

// receive handles the replies. If one of several calls for a shard was not applied, the later ones
// could not be applied either and are skipped.
func (w *writer) receive(ctx context.Context, b *state.Batch, verify []bool) error {
	var first error
	w.full = false
	down := sync.OnceValue(func() error { return w.store.down(ctx) })
	failed := -1 // the shard with an earlier call that was not applied
	for _, c := range w.calls {
		if c.shard == failed {
			continue
		}
		reply, err := c.cmd.Slice()
		if err != nil {
			w.store.expiry[c.shard].forget() // its keys may lack their times to live
		}
		if errors.Is(err, state.ErrUnavailable) && down() == nil {
			failed = c.shard
			for _, m := range c.moves {
				b.Ranges[m.rangeIndex].Lag(c.shard)
			}
			verify[c.shard] = false
			continue
		}
		if err != nil {
			failed = c.shard
			if memoryFull(err) {
				w.refused = append(w.refused, c)
			}
			if first == nil || scriptGone(first) {
				first = fmt.Errorf("apply a batch to shard %d: %w", c.shard, err)
			}
			continue
		}
		applied, err := w.receiveReply(b, c, reply)
		if err != nil {
			return err
		}
		if !applied {
			failed = c.shard
			continue
		}
		verify[c.shard] = verify[c.shard] && c.more
	}
	return first
}

var (
	errReply = errors.New("the script gave an answer of an unknown type")
	errFull  = errors.New("state keys are full, and compacting them has made no room: see whether Redis refuses writes")
)

// receiveReply handles one reply and reports whether the call was applied.
func (w *writer) receiveReply(b *state.Batch, c scriptCall, reply []any) (applied bool, err error) {
	if len(reply) == 0 {
		return false, errReply
	}
	if refused, ok := reply[0].(int64); ok {
		if len(reply) < 2 || len(reply)%2 != 0 {
			return false, errReply
		}
		if refused > 0 {
			b.Refused += int(refused)
			b.Refusal, _ = reply[1].(string)
		}
		if err := w.addCandidates(b, c, reply[2:]); err != nil {
			return false, err
		}
		for _, m := range c.moves {
			b.Ranges[m.rangeIndex].Progress[c.shard] = m.to
		}
		return true, nil
	}
	w.store.expiry[c.shard].forget() // its keys did not get their times to live
	if reply[0] == "full" {
		w.full = true
		return false, w.addCandidates(b, c, reply[1:])
	}
	if len(reply) != len(c.moves)+1 {
		return false, errReply
	}
	for i, m := range c.moves {
		text, _ := reply[i+1].(string)
		found, err := state.ParsePosition(text)
		if err != nil {
			return false, fmt.Errorf("%s: %w", keyspace.ProgressKey(w.store.tags[c.shard]), err)
		}
		if r := &b.Ranges[m.rangeIndex]; found == m.from || found.Continues(m.from, r.Epoch) {
			r.Progress[c.shard] = found
		} else {
			r.Behind = true
		}
	}
	return false, nil
}

// housekeeping returns the moment by which state is pruned: one record with a clock ahead must not prune everything.
func housekeeping(now int64) int64 { return min(now, time.Now().UnixMilli()) }
