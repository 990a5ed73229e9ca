package redisstore

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// compactor folds what batches have appended to an entity into one section for
// each series. It changes no answer, and so has nothing to do with progress. It
// takes no round trips of its own: what a compaction candidate holds comes with the script's
// reply, and the next pipeline puts what was compacted in its place.
type compactor struct {
	candidates []candidate // to be compacted
	compacted  []compacted
	sent       []replacement   // with the pipeline under way
	noted      map[string]bool // keys that are candidates or compacted
	// damaged are keys that cannot be compacted, until when, in milliseconds since
	// 1970, they are not asked for again: they may be long, and would come with
	// each batch that appends to them.
	damaged map[string]int64

	// idleOnly says that candidates are of entities that nothing was written of for long.
	idleOnly bool

	fresh packed.Compactor
	known map[string]map[uint32]*state.Series // by group and tag
	// embedded are by their parent's group and tag those that have children in it, a series for each.
	embedded map[string]map[uint32]*state.Series
	of       []*state.Series // what known was made of
	dead     deadSeries
}

// candidate is a key that is worth compacting, and what it held then.
type candidate struct {
	shard int
	key   string
	held  []byte
}

// compacted is what is to stand in the place of what a key held.
type compacted struct {
	candidate
	packed  []byte
	spilled []spill
}

// addCandidate notes that a key is worth compacting, and what it holds.
func (c *compactor) addCandidate(shard int, text, held string) {
	if c.noted[text] {
		return
	}
	if c.noted == nil {
		c.noted = map[string]bool{}
	}
	text = strings.Clone(text)
	c.noted[text] = true
	c.candidates = append(c.candidates, candidate{shard, text, unsafe.Slice(unsafe.StringData(held), len(held))}) // it is only read
}

// learn takes in the series by group and tag. A batch without records has none.
func (c *compactor) learn(series []*state.Series) {
	if len(series) == 0 || len(series) == len(c.of) && series[0] == c.of[0] {
		return
	}
	c.of, c.fresh = series, packed.Compactor{}
	c.known, c.embedded = map[string]map[uint32]*state.Series{}, map[string]map[uint32]*state.Series{}
	for _, s := range series {
		if s.Parent != "" {
			if c.embedded[s.Parent] == nil {
				c.embedded[s.Parent] = map[uint32]*state.Series{}
			}
			c.embedded[s.Parent][state.EmbeddingTag(s.Group)] = s
		}
		if c.known[s.Group] == nil {
			c.known[s.Group] = map[uint32]*state.Series{}
		}
		c.known[s.Group][s.Tag()] = s
	}
}

// replace makes calls that put what was compacted in the place of what it was made
// of, if that is still there; what was appended since stays behind it.
func (w *writer) replace(ctx context.Context) (shards []int, calls []redis.Cmder) {
	w.sent = w.sent[:0]
	slices.SortStableFunc(w.compacted, func(a, b compacted) int { return a.shard - b.shard })
	for rest := w.compacted; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(f compacted) bool { return f.shard != rest[0].shard })
		if n < 0 {
			n = len(rest)
		}
		args := []any{"evalsha", w.store.compact.Hash(), 0}
		for _, f := range rest[:n] {
			args = append(args, f.key)
			delete(w.noted, f.key)
		}
		var spilledTo []string
		for _, f := range rest[:n] {
			for _, s := range f.spilled {
				args, spilledTo = append(args, s.key), append(spilledTo, s.key)
			}
		}
		args[2] = n + len(spilledTo)
		args = append(args, n)
		for _, f := range rest[:n] {
			args = append(args, len(f.held), proof(f.held), f.packed, len(f.spilled))
			for _, s := range f.spilled {
				args = append(args, s.sections, s.lives)
			}
		}
		cmd := redis.NewCmd(ctx, args...)
		cmd.SetFirstKeyPos(3)
		shards, calls = append(shards, rest[0].shard), append(calls, cmd)
		w.sent = append(w.sent, replacement{cmd, rest[0].shard, spilledTo})
		rest = rest[n:]
	}
	w.compacted = w.compacted[:0]
	return shards, calls
}

// compact compacts what compaction candidates hold. Keys whose state is damaged are counted as
// refused by the batch. What could not be compacted or replaced will be found a candidate
// again, damaged keys after a while.
func (w *writer) compact(ctx context.Context, b *state.Batch) error {
	w.receiveSpilled()
	candidates := w.candidates
	w.candidates = nil
	for _, cmd := range w.sent {
		if scriptGone(cmd.Err()) {
			if err := w.store.loadScripts(ctx); err != nil {
				return err
			}
			break
		}
	}
	w.learn(b.Series)
	if err := w.markDead(ctx, candidates); err != nil {
		for _, h := range candidates {
			delete(w.noted, h.key)
		}
		if errors.Is(err, state.ErrUnavailable) {
			return nil // they will be found again
		}
		return err
	}
	now := housekeeping(b.Now)
	for _, h := range candidates {
		done, err := w.fold(h, now)
		if err != nil {
			delete(w.noted, h.key)
			w.rest(h.key)
			if b.Refused++; b.Refused == 1 {
				b.Refusal, b.RefusedKey = (keyspace.NewError(h.key, err)).Error(), h.key
			}
			continue
		}
		w.compacted = append(w.compacted, done)
	}
	return nil
}

// children says which series the children have that are embedded in a group.
func (c *compactor) children(group string) func(tag uint32) func(tag uint32) *state.Series {
	return func(tag uint32) func(tag uint32) *state.Series {
		child := c.embedded[group][tag]
		if child == nil {
			return nil
		}
		return func(tag uint32) *state.Series { return c.known[child.Group][tag] }
	}
}

// spills are the children that do not stay with a parent: their keys, for how many seconds those live, and
// what is appended to them.
func (w *writer) spills(h candidate, group string, children []packed.Child) (list []spill) {
	parent := h.key[len(w.store.tags[h.shard])+len(group)+1:]
	for _, c := range children {
		of := w.embedded[group][c.Tag]
		s := spill{
			key:      string(w.store.hashing.AppendChildKey(nil, w.store.tags[h.shard], of.Group, parent, c.Name)),
			sections: c.Sections,
		}
		if of.GroupKeep > 0 {
			s.lives = keyspace.Lifetime(of.GroupKeep, w.store.slack)
		}
		list = append(list, s)
	}
	return list
}

// spill is what is appended to a child's own key.
type spill struct {
	key      string
	lives    int64 // seconds, 0 for ever
	sections []byte
}

// replacement is a call that puts what was compacted in its place.
type replacement struct {
	*redis.Cmd
	shard int
	keys  []string // of children that it spills to
}

// receiveSpilled takes in which children's keys are worth compacting.
func (w *writer) receiveSpilled() {
	for _, r := range w.sent {
		reply, _ := r.Slice() // where it has failed, the parent is found again
		for found := reply; len(found) > 2; found = found[2:] {
			i, isNumber := found[1].(int64)
			held, isText := found[2].(string)
			if isNumber && isText && 1 <= i && i <= int64(len(r.keys)) {
				w.addCandidate(r.shard, r.keys[i-1], held)
			}
		}
	}
}

// damagedRest is for how long a damaged key is left alone: an operator may have
// dropped what was damaged by then.
const (
	damagedRest = time.Minute
	mostDamaged = 10_000 // keys that are remembered
)

// rest has a damaged key left alone for a while.
func (w *writer) rest(key string) {
	if w.damaged == nil || len(w.damaged) >= mostDamaged {
		w.damaged = map[string]int64{}
	}
	w.damaged[key] = w.now + damagedRest.Milliseconds()
}

// isDamaged says whether a key is to be left alone.
func (w *writer) isDamaged(key string) bool {
	until, ok := w.damaged[key]
	if ok && w.now >= until {
		delete(w.damaged, key)
		return false
	}
	return ok
}

// spare writes which keys are not to be handed out: those that a call before this
// one may have handed out, and those that are damaged.
func (w *writer) spare(keys []stateKey, names []any) {
	if len(w.appended) == 0 && len(w.damaged) == 0 {
		w.num(0)
		return
	}
	at := len(w.args)
	w.num(0) // until they are counted
	for i := range keys {
		if _, ok := w.appended[keys[i].hash]; ok || w.isDamaged(*names[i].(*string)) {
			w.num(int64(i + 1))
		}
	}
	w.args[at] = len(w.args) - at - 1
}

// fold compacts what a key holds.
func (w *writer) fold(h candidate, now int64) (compacted, error) {
	group := w.groupOf(h)
	known := w.known[group]
	w.fresh.Children, w.fresh.Idle = w.children(group), w.idleOnly
	var nonce packed.Nonce
	_, _ = rand.Read(nonce[:]) // it never fails
	room := make([]byte, 0, len(h.held))
	made, err := w.fresh.Compact(room, h.held, func(tag uint32) *state.Series { return known[tag] }, w.dead.has, now, nonce)
	return compacted{h, made, w.spills(h, group, w.fresh.Spilled)}, err
}

// groupOf is the group whose state a key holds.
func (w *writer) groupOf(h candidate) string {
	group, _, _ := strings.Cut(h.key[len(w.store.tags[h.shard]):], ":")
	return group
}

// shortest is how many bytes go as they are where they prove what is replaced:
// few are compared sooner than their SHA-1 is taken.
const shortest = 256

// proof is what the script knows by that a key still begins with what it held:
// that itself, or of what is long its SHA-1 as redis.sha1hex has it.
func proof(held []byte) any {
	if len(held) <= shortest {
		return held
	}
	sum := sha1.Sum(held)
	return hex.EncodeToString(sum[:])
}

// A full memory (maxmemory, with noeviction) refuses batches. Nothing would be
// compacted then, as keys that are worth it come with the replies of batches; so the
// keys that a refused batch is about are read and compacted instead. That makes room
// by what they hold twice or no longer need, and the batch is tried again.

// memoryFull says whether a server refuses to write because its memory is full.
func memoryFull(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "OOM ") }

// relieved is how many keys are read at most for a batch that was refused, and
// worthRelief how long one must be.
const (
	relieved    = 1000
	worthRelief = 32
)

// relieve has the keys of calls compacted that a full memory has refused.
func (w *writer) relieve(ctx context.Context) {
	var shards []int
	var keys []any
	for _, c := range w.refused {
		for _, key := range c.keys[:min(len(c.keys), relieved-len(keys))] {
			shards, keys = append(shards, c.shard), append(keys, key)
		}
	}
	w.refused = w.refused[:0]
	held, commands := make([]*redis.StringCmd, len(keys)), make([]redis.Cmder, len(keys))
	for i, key := range keys {
		held[i] = redis.NewStringCmd(ctx, "get", key)
		commands[i] = held[i]
	}
	w.store.send(ctx, w.store.masters.write, commands, func(i int) int { return shards[i] })
	for i, key := range keys {
		// Where it cannot be read, it is tried again with the batch.
		if text := held[i].Val(); len(text) >= worthRelief {
			w.addCandidate(shards[i], *key.(*string), text)
		}
	}
}
