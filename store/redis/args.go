package redisstore

import (
	"bytes"
	"strconv"
	"unsafe"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// arg sets w.bytes with one argument appended. The argument is passed as a pointer to a string,
// which needs no allocation, unlike a string or a slice.
func (w *writer) arg(grown []byte) {
	n := len(w.bytes)
	w.bytes = grown // if it moved, earlier texts stay in the old memory
	w.text(viewString(grown[n:]))
}

func (w *writer) num(n int64) { w.arg(strconv.AppendInt(w.bytes, n, 10)) }

func (w *writer) text(s string) {
	w.texts = append(w.texts, s)
	w.args = append(w.args, &w.texts[len(w.texts)-1])
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
			if earlier, met := w.appended[keys[i].hash]; met {
				before = earlier.bytes
				w.calls[earlier.call].spare(earlier.key)
			}
		}
		if before/checkBytes < (before+n)/checkBytes {
			w.checked = append(w.checked, i+1)
		}
		if more {
			w.appended[keys[i].hash] = appended{before + n, len(w.calls), i + 1}
			full = full || before+n >= passBytes
		}
	}
	w.num(int64(len(w.checked)))
	for _, k := range w.checked {
		w.num(int64(k))
	}
	return full
}

// spare excludes a key from the candidates that a call returns.
func (c *scriptCall) spare(key int) { c.spared = append(c.spared, byte(key>>8), byte(key)) }

// pack writes the mutations of one state key as one argument, and returns its length.
func (w *writer) pack(k *stateKey) int {
	data, ops, follows := w.bytes, w.combiner.mutations, false
	for i := k.first; i >= 0; i = ops[i].next {
		switch {
		case ops[i].packed:
		case ops[i].child == nil:
			data, follows = w.packSection(data, i, nil, follows), true
		default:
			data, follows = w.packChild(data, i), false
		}
	}
	n := len(data) - len(w.bytes)
	w.arg(data)
	return n
}

// packSection appends the mutations of the first one's series and child. It follows if the packer appended the section
// before.
func (w *writer) packSection(dst []byte, first int32, child []byte, follows bool) []byte {
	ops := w.combiner.mutations
	series := ops[first].Series
	if follows {
		w.packer.Next(series)
	} else {
		w.packer.Begin(series)
	}
	for j := first; j >= 0; j = ops[j].next {
		if ops[j].Series == series && bytes.Equal(ops[j].child, child) {
			w.packer.Add(&ops[j].Mutation)
			ops[j].packed = true
		}
	}
	return w.packer.End(dst)
}

// packChild appends the mutations of the first one's child, in its group.
func (w *writer) packChild(dst []byte, first int32) []byte {
	ops := w.combiner.mutations
	child, group := ops[first].child, ops[first].Series.Group
	w.sections = w.sections[:0]
	for j := first; j >= 0; j = ops[j].next {
		if !ops[j].packed && ops[j].Series.Group == group && bytes.Equal(ops[j].child, child) {
			w.sections = w.packSection(w.sections, j, child, len(w.sections) > 0)
		}
	}
	w.child = w.store.hashing.AppendChild(w.child[:0], child)
	return packed.AppendChild(dst, packed.Child{Tag: state.EmbeddingTag(group), Name: w.child, Sections: w.sections})
}

// viewString returns b as a string without a copy; b must not change while it is used.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
