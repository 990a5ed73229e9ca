package state

import (
	"encoding/binary"
	"slices"

	"github.com/weir-stream/weir/features/kinds"
)

// What a group keeps of an entity is packed into one string of sections, each of
// which belongs to a series, several to the same one where operations have been
// appended since it was last compacted:
//
//	section  tag (3 bytes), length of the body (varint), body
//	body     operations or the state of the series, in the form of its State
//
// What was compacted begins with a header: a zero byte, with which no tag
// begins, how long it was then (3 bytes), and what tells this compaction from
// all others (4 random bytes).

const (
	tagSize    = 3
	lengthSize = 3
	nonceSize  = 4
	headerSize = 1 + lengthSize + nonceSize
	// mostLength is what a header says of all that was longer.
	mostLength = 1<<(8*lengthSize) - 1
)

// Nonce tells one compaction from all others.
type Nonce [nonceSize]byte

func appendTag(dst []byte, tag uint32) []byte {
	return append(dst, byte(tag>>16), byte(tag>>8), byte(tag))
}

// Packer packs operations: Begin begins a section of a series, Add adds
// operations to it, and End appends it. It has memory of its own and serves one
// goroutine.
type Packer struct {
	series *kinds.Series
	body   []byte
	before int64
}

// Begin begins a section of a series.
func (p *Packer) Begin(s *kinds.Series) { p.series, p.body, p.before = s, p.body[:0], firstTile(s) }

// Add adds an operation to the section.
func (p *Packer) Add(op *kinds.Op) { p.body, p.before = appendOp(p.body, op, p.before) }

// End appends the section.
func (p *Packer) End(dst []byte) []byte { return appendSection(dst, p.series.Tag(), p.body) }

func appendSection(dst []byte, tag uint32, body []byte) []byte {
	dst = appendTag(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return append(dst, body...)
}

// Sections calls visit with each section of what is packed, but for a header.
// The error is visit's, or that it is not packed.
func Sections(packed []byte, visit func(tag uint32, body []byte) error) error {
	r := reader{rest: packed}
	if len(packed) > 0 && packed[0] == 0 {
		r.bytes(headerSize)
	}
	for r.more() {
		t := r.bytes(tagSize)
		body := r.bytes(r.uvarint())
		if r.err != nil {
			return r.err
		}
		tag := uint32(t[0])<<16 | uint32(t[1])<<8 | uint32(t[2])
		if err := visit(tag, body); err != nil {
			return err
		}
	}
	return r.err
}

// Compact makes one section for each series of what is packed, without what
// lies before the first tile that the series keeps at a moment in milliseconds.
// Sections whose series is not known, which is nil, stay as they are, unless it
// is dead. The nonce
// must be one that was never used. Where nothing is left, the result is empty.
func Compact(dst, packed []byte, known func(tag uint32) *kinds.Series, dead func(tag uint32) bool, now int64, nonce Nonce) ([]byte, error) {
	type part struct {
		tag   uint32
		state State // nil where the series is not known
		body  []byte
	}
	var parts []part
	err := Sections(packed, func(tag uint32, body []byte) error {
		i := slices.IndexFunc(parts, func(p part) bool { return p.tag == tag && p.state != nil })
		if i < 0 {
			i = len(parts)
			parts = append(parts, part{tag: tag, body: body})
			if s := known(tag); s != nil {
				parts[i].state = New(s)
			}
		}
		if parts[i].state == nil {
			return nil
		}
		return parts[i].state.Merge(body)
	})
	if err != nil {
		return nil, err
	}
	start := len(dst)
	dst = append(dst, make([]byte, headerSize)...)
	var body []byte
	for _, p := range parts {
		if p.state == nil {
			if !dead(p.tag) {
				dst = appendSection(dst, p.tag, p.body)
			}
			continue
		}
		if s := known(p.tag); s.Keep > 0 && p.state.Prune(s.Horizon(now)) {
			continue
		}
		body = p.state.Append(body[:0])
		dst = appendSection(dst, p.tag, body)
	}
	if len(dst) == start+headerSize {
		return dst[:start], nil
	}
	length := min(len(dst)-start, mostLength)
	copy(dst[start+1:], []byte{byte(length >> 16), byte(length >> 8), byte(length)})
	copy(dst[start+1+lengthSize:], nonce[:])
	return dst, nil
}
