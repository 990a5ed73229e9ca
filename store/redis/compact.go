package redisstore

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// compactor merges what batches have appended to an entity into one section for each series. It changes no answer, and
// so does not affect progress. It needs no round trips of its own: the content of a candidate is in the script's reply,
// and the next pipeline replaces it.
type compactor struct {
	candidates []candidate // to be compacted
	compacted  []compacted
	sent       []replacement   // by the pipeline under way
	noted      map[string]bool // keys that are candidates or compacted
	relieved   int             // keys read so far to relieve a full memory
	// reported maps keys whose damage was reported to the moment, in milliseconds since 1970, before which it is not
	// reported again.
	reported map[string]int64

	// idleOnly means that the candidates belong to entities without recent events.
	idleOnly bool

	merger  packed.Compactor
	groups  map[string]*group
	learned []*state.Series // the series that groups was made from
	garbage garbageSeries
}

// group has what the compaction of a group's keys needs.
type group struct {
	series   map[uint32]*state.Series // by tag
	embedded map[uint32]*group        // of children, by tag
	known    func(tag uint32) *state.Series
	children func(tag uint32) func(tag uint32) *state.Series
	name     string
	keep     int64 // see state.Series.GroupKeep
	most     int   // bytes that a key may take
}

// candidate is a key to compact, with its content.
type candidate struct {
	shard int
	key   string
	held  []byte
}

// compacted is the replacement of a key's content.
type compacted struct {
	candidate
	packed  []byte
	spilled []spill
}

// addCandidate adds a key to compact, with its content.
func (c *compactor) addCandidate(shard int, text, held string) {
	if c.noted[text] {
		return
	}
	if c.noted == nil {
		c.noted = map[string]bool{}
	}
	text = strings.Clone(text)
	c.noted[text] = true
	c.candidates = append(c.candidates, candidate{shard, text, unsafe.Slice(unsafe.StringData(held), len(held))}) // read only
}

// addCandidates adds the keys of a call that its reply lists, each by its number and content.
func (w *writer) addCandidates(b *state.Batch, c scriptCall, list []any) error {
	for ; len(list) > 1; list = list[2:] {
		i, isNumber := list[0].(int64)
		held, isText := list[1].(string)
		if !isNumber || !isText || i < 1 || i > int64(len(c.keys)) {
			return errReply
		}
		b.GreatestKey = max(b.GreatestKey, len(held))
		w.addCandidate(c.shard, *c.keys[i-1].(*string), held)
	}
	return nil
}

// learn registers the series by group and tag. A batch without records has no series.
func (c *compactor) learn(series []*state.Series) {
	if len(series) == 0 || slices.Equal(series, c.learned) {
		return
	}
	c.learned, c.merger, c.groups = series, packed.Compactor{}, map[string]*group{}
	for _, s := range series {
		g := c.group(s.Group)
		g.series[s.Tag()], g.keep, g.most = s, s.GroupKeep, max(g.most, s.KeyBytes)
		if s.Parent != "" {
			c.group(s.Parent).embedded[state.EmbeddingTag(s.Group)] = g
		}
	}
}

// group finds or makes a group.
func (c *compactor) group(name string) *group {
	g := c.groups[name]
	if g == nil {
		g = newGroup(name)
		c.groups[name] = g
	}
	return g
}

func newGroup(name string) *group {
	g := &group{name: name, series: map[uint32]*state.Series{}, embedded: map[uint32]*group{}}
	g.known = func(tag uint32) *state.Series { return g.series[tag] }
	g.children = func(tag uint32) func(tag uint32) *state.Series {
		if child := g.embedded[tag]; child != nil {
			return child.known
		}
		return nil
	}
	return g
}

const (
	// maxReplacedKeys and maxReplacedBytes bound the keys of one call that replaces content, and the bytes that it
	// compares or writes: so it blocks others for about half a millisecond. A single key goes with all children that it
	// spills.
	maxReplacedKeys  = 64
	maxReplacedBytes = 128 << 10
)

// replace makes calls that replace compacted content if it is still there; what was appended since stays after it.
func (w *writer) replace(ctx context.Context) (shards []int, calls []redis.Cmder) {
	w.sent = w.sent[:0]
	slices.SortStableFunc(w.compacted, func(a, b compacted) int { return a.shard - b.shard })
	for rest := w.compacted; len(rest) > 0; {
		n := together(rest)
		r := w.replaceTogether(ctx, rest[:n])
		w.sent = append(w.sent, r)
		shards, calls = append(shards, r.shard), append(calls, r.Cmd)
		rest = rest[n:]
	}
	w.compacted = w.compacted[:0]
	return shards, calls
}

// together returns how many keys, from the first one on, one call replaces.
func together(list []compacted) int {
	keys, bytes := 0, 0
	for i := range list {
		c := &list[i]
		keys += 1 + len(c.spilled)
		bytes += len(c.held) - packed.Identified(c.held) + len(c.packed)
		for _, s := range c.spilled {
			bytes += len(s.sections)
		}
		if i > 0 && (c.shard != list[0].shard || keys > maxReplacedKeys || bytes > maxReplacedBytes) {
			return i
		}
	}
	return len(list)
}

// replaceTogether makes the call that replaces the content of keys of one shard.
func (w *writer) replaceTogether(ctx context.Context, list []compacted) replacement {
	shard := list[0].shard
	args := append(make([]any, 0, 5+8*len(list)), "evalsha", w.store.compact.Hash(), 0)
	if w.whole {
		args[0], args[1] = "eval", compactLua
	}
	for _, c := range list {
		args = append(args, c.key)
		delete(w.noted, c.key)
	}
	var spilledTo []string
	for _, c := range list {
		for _, s := range c.spilled {
			args, spilledTo = append(args, s.key), append(spilledTo, s.key)
		}
	}
	args = append(args, w.progress[shard])
	args[2] = len(args) - 3
	args = append(args, len(list))
	for _, c := range list {
		header, from, rest := proof(c.held)
		args = append(args, len(c.held), header, from, rest, c.packed, len(c.spilled))
		for _, s := range c.spilled {
			args = append(args, s.sections, s.ttl, s.check(), s.others)
		}
	}
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return replacement{cmd, shard, spilledTo}
}

// compact compacts the candidates. Keys with damaged state are counted as refused by the batch. Keys that are not
// replaced become candidates again.
func (w *writer) compact(ctx context.Context, b *state.Batch) (err error) {
	w.receiveSpilled()
	candidates, before := w.candidates, len(w.compacted)
	defer func() {
		if err != nil { // they become candidates again
			w.compacted = w.compacted[:before]
			for _, c := range candidates {
				delete(w.noted, c.key)
			}
		}
		clear(candidates)
		w.candidates = candidates[:0]
	}()
	for _, cmd := range w.sent {
		if scriptGone(cmd.Err()) {
			if err := w.store.loadScripts(ctx); err != nil {
				return err
			}
			w.whole = true
			break
		}
	}
	w.learn(b.Series)
	w.garbage.fresh, w.garbage.err = false, nil
	now := housekeeping(b.Now - b.Spare)
	for _, c := range candidates {
		done, wrong := w.compactKey(ctx, c, now)
		if wrong != nil && w.reportsDamage(c.key) {
			if b.Refused++; b.Refused == 1 {
				b.Refusal, b.RefusedKey = keyspace.NewError(c.key, wrong).Error(), c.key
			}
		}
		if w.merger.Cut {
			b.CutKeys++
		}
		w.compacted = append(w.compacted, done)
	}
	return w.garbage.err
}

// spills returns the children that leave their parent: their keys, times to live in seconds, and the bytes to append.
func (w *writer) spills(c candidate, g *group, children []packed.Child) (list []spill) {
	parent := c.key[len(w.store.tags[c.shard])+len(g.name)+1:]
	for _, child := range children {
		of := g.embedded[child.Tag]
		s := spill{
			key:      string(w.store.hashing.AppendChildKey(nil, w.store.tags[c.shard], of.name, parent, child.Name)),
			sections: child.Sections,
			others:   g.others(of, child.Sections),
		}
		if of.keep > 0 {
			s.ttl = keyspace.Lifetime(of.keep, w.store.slack)
		}
		list = append(list, s)
	}
	return list
}

// spill is an append to a child's own key.
type spill struct {
	key      string
	ttl      int64 // in seconds, 0 for forever
	sections []byte
	others   string // see group.others
}

// check returns the argument that makes the script check whether the child's key is full.
func (s *spill) check() string {
	if len(s.sections) >= checkBytes {
		return "check"
	}
	return ""
}

// replacement is a call that replaces a key's content with its compaction.
type replacement struct {
	*redis.Cmd
	shard int
	keys  []string // of spilled children
}

// receiveSpilled adds the children's keys that are long enough to compact, or full.
func (w *writer) receiveSpilled() {
	for _, r := range w.sent {
		reply, _ := r.Slice() // if it failed, the parent becomes a candidate again
		for found := reply; len(found) > 2; found = found[2:] {
			i, isNumber := found[1].(int64)
			held, isText := found[2].(string)
			if isNumber && isText && 1 <= i && i <= int64(len(r.keys)) {
				w.addCandidate(r.shard, r.keys[i-1], held)
			}
		}
	}
}

const (
	// reportEvery is how often the damage of a key is reported.
	reportEvery = time.Minute
	maxReported = 10_000 // keys remembered
)

// reportsDamage reports whether to report that a key is damaged.
func (w *writer) reportsDamage(key string) bool {
	if w.now < w.reported[key] {
		return false
	}
	if w.reported == nil || len(w.reported) >= maxReported {
		w.reported = map[string]int64{}
	}
	w.reported[key] = w.now + reportEvery.Milliseconds()
	return true
}

// compactKey compacts the content of a key. The error says what is damaged, see packed.Compactor.
func (w *writer) compactKey(ctx context.Context, c candidate, now int64) (compacted, error) {
	g := w.groupOf(c)
	w.merger.Secret = w.packer.Secret
	w.merger.Children, w.merger.Idle, w.merger.Most = g.children, w.idleOnly, g.most
	w.merger.Latest = state.Believed(math.MaxInt64, time.Now())
	var nonce packed.Nonce
	_, _ = rand.Read(nonce[:]) // it never fails
	room := make([]byte, 0, len(c.held))
	made, err := w.merger.Compact(room, c.held, g.known, func(tag uint32) bool { return w.isGarbage(ctx, tag) }, now, nonce)
	return compacted{c, made, w.spills(c, g, w.merger.Spilled)}, err
}

// groupOf returns the group of a key, one without series if it is unknown.
func (w *writer) groupOf(c candidate) *group {
	name, _, _ := strings.Cut(c.key[len(w.store.tags[c.shard]):], ":")
	if g := w.groups[name]; g != nil {
		return g
	}
	return newGroup(name)
}

// maxVerbatim is the length up to which bytes are sent instead of their SHA-1: comparing them is faster.
const maxVerbatim = 256

// proof lets the script check that a key still begins with certain content, without reading all of it: the header of
// its last compaction identifies the bytes up to from. The rest is what was appended since, or its SHA-1, as
// redis.sha1hex writes it.
func proof(held []byte) (header []byte, from int, rest any) {
	if from = packed.Identified(held); from > 0 {
		header = held[:packed.HeaderSize]
	}
	if len(held)-from <= maxVerbatim {
		return header, from, held[from:]
	}
	sum := sha1.Sum(held[from:])
	return header, from, hex.EncodeToString(sum[:])
}

// A full memory (maxmemory with noeviction) refuses batches. Nothing would be compacted then, because candidates come
// with the replies of batches. So the keys of the batch are read and compacted instead. That frees redundant and outdated
// state, and the batch is tried again.

// memoryFull reports whether a server refuses to write because its memory is full. Redis 6.2 says so within the error of
// the script, Redis 7 with an error of its own.
func memoryFull(err error) bool {
	return err != nil && (strings.HasPrefix(err.Error(), "OOM ") || strings.Contains(err.Error(), ": -OOM "))
}

// maxRelieved bounds the keys read after a pipeline with a refused call, and minRelieved is the least length of one.
const (
	maxRelieved = 1000
	minRelieved = 32
)

// relieve compacts keys of the pipeline if a full memory has refused one of its calls: all of them, in several attempts,
// since those of the refused call may have nothing to free.
func (w *writer) relieve(ctx context.Context) {
	if !w.refused {
		return
	}
	var shards []int
	var keys []any
	for _, c := range w.calls {
		for _, key := range c.keys {
			shards, keys = append(shards, c.shard), append(keys, key)
		}
	}
	reads, commands := make([]*redis.StringCmd, min(len(keys), maxRelieved)), make([]redis.Cmder, min(len(keys), maxRelieved))
	at := func(i int) int { return (w.relieved + i) % len(keys) }
	for i := range reads {
		reads[i] = redis.NewStringCmd(ctx, "get", keys[at(i)])
		commands[i] = reads[i]
	}
	w.store.send(ctx, w.store.masters.write, commands, func(i int) int { return shards[at(i)] })
	for i, read := range reads {
		// A key that cannot be read is tried again with the batch.
		if text := read.Val(); len(text) >= minRelieved {
			w.addCandidate(shards[at(i)], *keys[at(i)].(*string), text)
		}
	}
	w.relieved += len(reads)
}
