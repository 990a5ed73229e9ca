package store

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features/kinds"
	"github.com/weir-stream/weir/store/state"
)

// compactor folds what batches have appended to an entity into one section for
// each series. It changes no answer, and so has nothing to do with progress. It
// takes no round trips of its own: of a key that the script has found heavy, the
// next pipeline reads what it holds, and the one after that puts what was folded
// in its place.
type compactor struct {
	heavy   []heavyKey // to be read
	reading []readKey  // with the pipeline under way
	folded  []foldedKey
	sent    []*redis.Cmd    // that replace, with the pipeline under way
	under   map[string]bool // keys that are read or folded

	fresh state.Compactor
	known map[string]map[uint32]*kinds.Series
	of    []*kinds.Series // what known was made of
	dead  obituaries
}

type heavyKey struct {
	shard int
	key   string
}

type readKey struct {
	heavyKey
	held *redis.StringCmd
}

// foldedKey is what a key's first length bytes, with that SHA-1, are to become.
type foldedKey struct {
	heavyKey
	length int
	sum    string
	packed []byte
}

// grown notes that a key is worth compacting.
func (c *compactor) grown(shard int, key any) {
	text := *key.(*string)
	if c.under[text] {
		return
	}
	if c.under == nil {
		c.under = map[string]bool{}
	}
	text = strings.Clone(text)
	c.under[text] = true
	c.heavy = append(c.heavy, heavyKey{shard, text})
}

// learn takes in the series by group and tag. A batch without records has none.
func (c *compactor) learn(series []*kinds.Series) {
	if len(series) == 0 || len(series) == len(c.of) && series[0] == c.of[0] {
		return
	}
	c.of, c.known, c.fresh = series, map[string]map[uint32]*kinds.Series{}, state.Compactor{}
	for _, s := range series {
		if c.known[s.Group] == nil {
			c.known[s.Group] = map[uint32]*kinds.Series{}
		}
		c.known[s.Group][s.Tag()] = s
	}
}

// replace puts calls into a pipeline that put what was folded in the place of
// what it was made of, if that is still there; what was appended since stays
// behind it.
func (w *Writer) replace(ctx context.Context, pipe redis.Pipeliner) {
	w.sent = w.sent[:0]
	slices.SortStableFunc(w.folded, func(a, b foldedKey) int { return a.shard - b.shard })
	for rest := w.folded; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(f foldedKey) bool { return f.shard != rest[0].shard })
		if n < 0 {
			n = len(rest)
		}
		args := []any{"evalsha", w.store.compact.Hash(), n}
		for _, f := range rest[:n] {
			args = append(args, f.key)
			delete(w.under, f.key)
		}
		for _, f := range rest[:n] {
			args = append(args, f.length, f.sum, f.packed)
		}
		cmd := redis.NewCmd(ctx, args...)
		cmd.SetFirstKeyPos(3)
		_ = pipe.Process(ctx, cmd)
		w.sent = append(w.sent, cmd)
		rest = rest[n:]
	}
	w.folded = w.folded[:0]
}

// read puts commands into a pipeline that read the heavy keys.
func (w *Writer) read(ctx context.Context, pipe redis.Pipeliner) {
	for _, h := range w.heavy {
		w.reading = append(w.reading, readKey{h, pipe.Get(ctx, h.key)})
	}
	w.heavy = w.heavy[:0]
}

// compact folds what the pipeline has read. Keys whose state is damaged are
// counted as refused by the batch. What could not be read or replaced will be
// found heavy again.
func (w *Writer) compact(ctx context.Context, b *kinds.Batch) error {
	reading := w.reading
	w.reading = nil
	for _, cmd := range w.sent {
		if scriptGone(cmd.Err()) {
			if err := w.store.loadScripts(ctx); err != nil {
				return err
			}
			break
		}
	}
	w.learn(b.Series)
	if err := w.mourn(ctx, reading); err != nil {
		for _, r := range reading {
			delete(w.under, r.key)
		}
		return err
	}
	now := housekeeping(b.Now)
	for _, r := range reading {
		held, err := r.held.Bytes()
		if err != nil {
			delete(w.under, r.key)
			continue
		}
		packed, err := w.fold(r.heavyKey, held, now)
		if err != nil {
			delete(w.under, r.key)
			if b.Refused++; b.Refused == 1 {
				b.Refusal, b.RefusedKey = (&keyError{r.key, err}).Error(), r.key
			}
			continue
		}
		w.folded = append(w.folded, foldedKey{r.heavyKey, len(held), sha1Hex(held), packed})
	}
	return nil
}

// fold compacts what a key holds.
func (w *Writer) fold(h heavyKey, packed []byte, now int64) ([]byte, error) {
	known := w.known[w.groupOf(h)]
	var nonce state.Nonce
	_, _ = rand.Read(nonce[:]) // it never fails
	return w.fresh.Compact(nil, packed, func(tag uint32) *kinds.Series { return known[tag] }, w.dead.has, now, nonce)
}

// groupOf is the group whose state a key holds.
func (w *Writer) groupOf(h heavyKey) string {
	group, _, _ := strings.Cut(h.key[len(w.store.tags[h.shard]):], ":")
	return group
}

// sha1Hex is what the script's redis.sha1hex makes of b.
func sha1Hex(b []byte) string {
	sum := sha1.Sum(b)
	return hex.EncodeToString(sum[:])
}
