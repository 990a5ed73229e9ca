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
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

const (
	// defaultCallMutations and maxCallBytes bound one script call, and so the time for which it blocks others, one to
	// two milliseconds.
	defaultCallMutations = 1500
	maxCallBytes         = 64 << 10
	// maxPassBytes bounds what the calls of one pipeline append to a key. The rest goes with the next pipeline, before
	// which the key may be compacted. So keys stay bounded, even if a batch has very many events of one entity.
	maxPassBytes = 128 << 10
	// maxFull is how often in a row a batch may find keys full: other writers may use up the room that a compaction
	// makes.
	maxFull = 100
)

// writer applies batches. It reuses its memory, and is not safe for concurrent use.
type writer struct {
	store    *Store
	shards   []shardUpdates
	combiner *combiner // of the shard whose calls are being made
	packer   packed.Packer
	secret   string // that of the packer as text
	calls    []scriptCall
	refused  bool                // some call of the pipeline, because the memory is full
	appended map[uint64]appended // in earlier calls of the shard, by the hash of a key
	progress []any               // by shard, the progress key
	sha      any
	whole    bool  // the next calls contain the scripts: a server does not know them
	now      int64 // by the clock, in milliseconds since 1970
	compactor

	keeps      []int64 // distinct times for which keys of a call are kept
	lifetimeOf []byte  // for each key of a call, the index in keeps and whether it is busy
	due        []int   // numbers of the keys of a call whose time to live must be set now, from 1
	busy       []bool  // for each key of a call, see expiry

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
	w := &writer{store: s, shards: make([]shardUpdates, len(s.tags)), sha: s.apply.Hash(), appended: map[uint64]appended{}}
	for shard, tag := range s.tags {
		w.shards[shard].limit = s.callMutations
		w.progress = append(w.progress, keyspace.ProgressKey(tag))
	}
	return w
}

// Apply applies a batch. A script call applies the mutations of a shard and moves its progress in one step. If they
// need several calls, each applies those of some slices of the shard, and until the last one the positions say which
// slices are ahead. So all mutations of a key by a batch are combined, however long the batch is, and no call is long.
//
// For each range of a call the script compares the position that it finds with the one from which the call starts:
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
	if len(b.Ranges) == 0 { // as while the namespace is still being created
		return nil
	}
	if err := w.learnSecret(ctx); err != nil {
		return err
	}
	verify := make([]bool, len(w.shards))
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
		} else if full > maxFull && err == nil {
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
			w.whole = true // a server that a slot is only moving to is not among those masters
		case secretDiffers(err):
			_ = w.store.CheckLayout(ctx) // it learns the secret that the next try hashes with
			return err
		default:
			return err
		}
	}
}

// send sends the calls, after the replacements, which change no answer. Each command then has its
// own error.
func (w *writer) send(ctx context.Context) {
	shards, commands := w.replace(ctx)
	for _, c := range w.calls {
		shards, commands = append(shards, c.shard), append(commands, c.cmd)
	}
	w.store.send(ctx, w.store.masters.write, commands, func(i int) int { return shards[i] })
	w.whole = false
}

// encode makes the calls for what is still to be applied.
func (w *writer) encode(ctx context.Context, b *state.Batch, verify []bool) {
	clear(w.args)
	w.now = time.Now().UnixMilli()
	w.calls, w.args, w.texts, w.bytes = w.calls[:0], w.args[:0], w.texts[:0], w.bytes[:0]
	clear(w.appended)
	for shard := range w.shards {
		w.shards[shard].begin(b, shard)
	}
	// One pass for all shards: a long batch does not fit into the caches of a core.
	for i := range b.Updates {
		w.collect(ctx, b, &b.Updates[i])
	}
	for shard := range w.shards {
		w.finish(ctx, b, shard, verify[shard])
	}
	for i := range w.calls {
		*w.calls[i].spares = string(w.calls[i].spared)
	}
}

// collect collects an update, after the calls for what must be applied before it.
func (w *writer) collect(ctx context.Context, b *state.Batch, u *state.EntityUpdate) {
	shard := w.store.ShardOf(u, len(w.shards))
	s := &w.shards[shard]
	if s.full || !b.Ranges[u.Range].Changes(shard, &s.at[u.Range], u) {
		return
	}
	// A position cannot divide the mutations of an event.
	if s.enough() && (s.before.Offset != u.Offset || s.before.Range != u.Range) {
		if s.full = w.makeCalls(ctx, b, shard, true); s.full {
			return
		}
	}
	s.before = u
	s.add(u, b.Mutations[u.From:u.To])
	s.last[u.Range] = u.Offset + 1
}

// finish makes the last calls of a shard, which move all ranges to their ends.
func (w *writer) finish(ctx context.Context, b *state.Batch, shard int, verify bool) {
	s := &w.shards[shard]
	if s.full {
		return
	}
	for i := range b.Ranges {
		if r := &b.Ranges[i]; r.Moves(shard) && (s.last[i] > s.at[i].Offset || verify) {
			s.last[i] = max(r.To, s.at[i].Offset)
		}
	}
	if verify || s.count > 0 {
		w.makeCalls(ctx, b, shard, false)
	}
}

// makeCalls makes the calls for what is collected, one after the other for some slices of the shard, and moves the
// ranges from at to last. If full, this pipeline must not have further calls of the shard.
func (w *writer) makeCalls(ctx context.Context, b *state.Batch, shard int, more bool) (full bool) {
	s := &w.shards[shard]
	w.combiner = &s.combiner
	calls := []callKeys{{s.keys, state.ShardSlices}}
	if !s.ahead {
		calls = s.splitIntoCalls()
	}
	for n, of := range calls {
		whole := n == len(calls)-1
		c := scriptCall{shard: shard, more: more || !whole}
		for i := range b.Ranges {
			r, from := &b.Ranges[i], s.at[i]
			if !r.Moves(shard) || s.last[i] <= from.Offset && !(whole && b.EveryShard) {
				continue
			}
			if whole {
				s.at[i] = from.To(s.last[i])
			} else {
				s.at[i] = from.WithAhead(s.last[i], of.slices)
			}
			if s.last[i] > from.Offset {
				s.at[i].Epoch = max(from.Epoch, r.Epoch)
			}
			c.moves = append(c.moves, move{rangeIndex: i, from: from, to: s.at[i]})
		}
		if len(c.moves) > 0 && w.makeCall(ctx, b, c, of.keys, more) {
			full = true
			break
		}
	}
	s.reset()
	s.lookAhead()
	return full
}

// makeCall makes the script call for some state keys. If full, this pipeline must not have further calls of the shard;
// more says whether some could append to the same keys.
func (w *writer) makeCall(ctx context.Context, b *state.Batch, c scriptCall, keys []stateKey, more bool) (full bool) {
	start := len(w.args)
	name, script := any("evalsha"), w.sha
	if w.whole {
		name, script = "eval", applyLua
	}
	w.args = append(w.args, name, script, strconv.Itoa(len(keys)+1), w.progress[c.shard])
	for i := range keys {
		e := w.combiner.named(&keys[i])
		w.arg(w.store.appendEntityKey(w.bytes, c.shard, e.group, e.text))
	}
	c.keys = w.args[len(w.args)-len(keys):]
	w.args = append(w.args, w.secret)
	w.num(int64(len(c.moves)))
	for _, m := range c.moves {
		w.arg(progress.AppendPositionField(w.bytes, b.Ranges[m.rangeIndex].Partition))
		w.arg(m.from.Append(w.bytes))
		w.arg(m.to.Append(w.bytes))
	}
	now := state.Believed(b.Now, time.UnixMilli(w.now))
	w.num(now)
	c.spares = new(string) // known once all calls are made
	w.args = append(w.args, c.spares)
	w.findDue(&w.store.expiry[c.shard], keys, now)
	w.addLifetimes(keys)
	full = w.packAll(keys, more)
	for _, number := range w.due {
		w.num(int64(number))
	}
	c.cmd = redis.NewCmd(ctx, w.args[start:len(w.args):len(w.args)]...)
	c.cmd.SetFirstKeyPos(3)
	w.calls = append(w.calls, c)
	return full
}

// receive handles the replies. If one of several calls for a shard was not applied, the later ones
// could not be applied either and are skipped.
func (w *writer) receive(ctx context.Context, b *state.Batch, verify []bool) error {
	var first error
	w.full, w.refused = false, false
	down := sync.OnceValue(func() error { return w.store.down(ctx) })
	failed := make([]bool, len(w.shards)) // those with an earlier call that was not applied
	for _, c := range w.calls {
		if failed[c.shard] {
			continue
		}
		reply, err := c.cmd.Slice()
		if err != nil {
			w.store.expiry[c.shard].forget() // its keys may lack their times to live
		}
		if errors.Is(err, state.ErrUnavailable) && down() == nil {
			failed[c.shard] = true
			for _, m := range c.moves {
				b.Ranges[m.rangeIndex].Lag(c.shard)
			}
			verify[c.shard] = false
			continue
		}
		if err != nil {
			failed[c.shard] = true
			w.refused = w.refused || memoryFull(err)
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
			failed[c.shard] = true
			continue
		}
		verify[c.shard] = verify[c.shard] && c.more
	}
	return first
}

var (
	errReply = errors.New("the script's reply has an unexpected form")
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
		if r := &b.Ranges[m.rangeIndex]; found.Exists() && (found == m.from || found.Continues(m.from, r.Epoch)) {
			r.Progress[c.shard] = found
		} else {
			r.Behind = true
		}
	}
	return false, nil
}

// housekeeping returns the moment by which state is pruned: one record with a clock ahead must not prune everything.
func housekeeping(now int64) int64 { return min(now, time.Now().UnixMilli()) }
