package redisstore

import (
	"slices"
	"strconv"
	"unsafe"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// callKeys are the keys that one call applies: those of some slices.
type callKeys struct {
	keys   []stateKey
	slices int // after the call, the slices below this one are complete
}

// splitIntoCalls divides the keys among calls by their slices. A call exceeds the limits only if a single slice does.
func (c *combiner) splitIntoCalls() []callKeys {
	c.calls = c.calls[:0]
	if !c.fillsCall() {
		return append(c.calls, callKeys{c.keys, state.ShardSlices})
	}
	c.sort()
	first, count, size := 0, 0, 0 // of the call
	for i := 0; i < len(c.sorted); {
		next, more, moreBytes := c.slice(i)
		if count > 0 && (count+more > c.limit || size+moreBytes > maxCallBytes) {
			c.calls = append(c.calls, callKeys{c.sorted[first:i], int(c.sorted[i].slice)})
			first, count, size = i, 0, 0
		}
		i, count, size = next, count+more, size+moreBytes
	}
	return append(c.calls, callKeys{c.sorted[first:], state.ShardSlices})
}

// slice returns where the keys of the next slice begin in sorted, and the mutations and bytes of the one that begins at
// an index.
func (c *combiner) slice(i int) (next, count, size int) {
	for next = i; next < len(c.sorted) && c.sorted[next].slice == c.sorted[i].slice; next++ {
		count, size = count+int(c.sorted[next].count), size+int(c.sorted[next].bytes)
	}
	return next, count, size
}

// sort sorts the keys by slice.
func (c *combiner) sort() {
	var next [state.ShardSlices + 1]int // where the next key of each slice goes
	for i := range c.keys {
		next[c.keys[i].slice+1]++
	}
	for slice := 1; slice < len(next); slice++ {
		next[slice] += next[slice-1]
	}
	c.sorted = slices.Grow(c.sorted[:0], len(c.keys))[:len(c.keys)]
	for i := range c.keys {
		n := &next[c.keys[i].slice]
		c.sorted[*n] = c.keys[i]
		*n++
	}
}

// arg sets w.bytes with one argument appended. The argument is passed as a pointer to a string,
// which needs no allocation, unlike a string or a slice.
func (w *writer) arg(grown []byte) {
	n := len(w.bytes)
	w.bytes = grown // if it moved, earlier texts stay in the old memory
	w.text(viewString(grown[n:]))
}

func (w *writer) num(n int64) { w.arg(strconv.AppendInt(w.bytes, n, 10)) }

func (w *writer) text(s string) {
	w.texts = append(state.WithRoom(w.texts), s)
	w.args = append(state.WithRoom(w.args), &w.texts[len(w.texts)-1])
}

// checkBytes is how many bytes one pipeline appends to a key before the script checks again whether the key is full.
// The bound on keys leaves room for that much from each of a hundred writers at once.
const checkBytes = 512

// packAll writes the mutations of each state key as one argument, and then which keys may be full.
// If this is not the shard's last call, full says that the pipeline must not have further ones.
//
// Of several calls that append to a key, only the last one may return it: the returned content has everything that the
// pipeline appends, so that little follows it when the key is replaced.
func (w *writer) packAll(keys []stateKey, more bool) (full bool) {
	w.checked = w.checked[:0]
	for i := range keys {
		n, before := w.pack(&keys[i]), 0
		if len(w.appended) > 0 {
			if earlier, met := w.appended[w.combiner.named(&keys[i]).hash]; met {
				before = earlier.bytes
				w.calls[earlier.call].spare(earlier.key)
			}
		}
		if before/checkBytes < (before+n)/checkBytes {
			w.checked = append(w.checked, i+1)
		}
		if more {
			w.appended[w.combiner.named(&keys[i]).hash] = appended{before + n, len(w.calls), i + 1}
			full = full || before+n >= maxPassBytes
		}
	}
	w.num(int64(len(w.checked)))
	for _, k := range w.checked {
		w.num(int64(k))
	}
	return full
}

// named returns the entity after which a key is named.
func (c *combiner) named(k *stateKey) *keyEntity { return &c.entities[k.first] }

// spare excludes a key from the candidates that a call returns.
func (c *scriptCall) spare(key int) { c.spared = append(c.spared, byte(key>>8), byte(key)) }

// pack writes what changes in one state key as one argument, and returns its length.
func (w *writer) pack(k *stateKey) int {
	entities := w.combiner.entities
	data := w.packSections(w.bytes, &entities[k.first])
	for i := entities[k.first].next; i >= 0; i = entities[i].next {
		child := &entities[i]
		w.sections = w.packSections(w.sections[:0], child)
		w.child = w.store.hashing.AppendChild(w.child[:0], child.text)
		data = packed.AppendChild(data, packed.Child{Tag: state.EmbeddingTag(child.group), Name: w.child, Sections: w.sections})
	}
	n := len(data) - len(w.bytes)
	w.arg(data)
	return n
}

// packSections appends the sections of an entity.
func (w *writer) packSections(dst []byte, e *keyEntity) []byte {
	c := w.combiner
	for i := e.first; i >= 0; {
		s := &c.sections[i]
		if i == e.first {
			w.packer.Begin(s.first.Series)
		} else {
			w.packer.Next(s.first.Series)
		}
		w.packer.Add(&s.first)
		if s.further >= 0 {
			for j := c.further[s.further].first; j >= 0; j = c.more[j].next {
				w.packer.Add(&c.more[j].Mutation)
			}
		}
		dst = w.packer.End(dst)
		i = s.next
	}
	return dst
}

// viewString returns b as a string without a copy; b must not change while it is used.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
