package packed

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/weir-stream/weir/state"
)

// What a group keeps of an entity is packed into one string of sections, each of
// which belongs to a series, several to the same one where operations have been
// appended since it was last compacted:
//
//	section  tag (3 bytes), length of the body (varint), body
//	body     operations or the state of the series, in the form of its State
//
// What was compacted begins with a header: a zero byte, with which no tag
// begins, how long it was then (3 bytes: 5 bits of a power of two, by which the
// other 19 bits are to be multiplied, rounded up), and what tells this compaction
// from all others (4 random bytes).

const (
	tagSize    = 3
	lengthSize = 3
	nonceSize  = 4
	headerSize = 1 + lengthSize + nonceSize
	// lengthBits are those of a header's length that are not its power of two.
	lengthBits = 19
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
	Secret Secret // values are hashed with it

	series *state.Series
	body   []byte
	before int64
}

// Begin begins a section of a series.
func (p *Packer) Begin(s *state.Series) { p.series, p.body, p.before = s, p.body[:0], firstTile(s) }

// Add adds an operation to the section.
func (p *Packer) Add(op *state.Mutation) {
	p.body, p.before = appendMutation(p.body, op, p.before, p.Secret)
}

// End appends the section.
func (p *Packer) End(dst []byte) []byte { return appendSection(dst, p.series.Tag(), p.body) }

func appendSection(dst []byte, tag uint32, body []byte) []byte {
	dst = appendTag(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return append(dst, body...)
}

// Sections calls visit with each section of what is packed, but for a header.
// The error is visit's, or that it is not packed, and says at which byte the
// section begins.
func Sections(packed []byte, visit func(tag uint32, body []byte) error) error {
	r := decoder{packed: packed}
	if len(packed) > 0 && packed[0] == 0 {
		r.bytes(headerSize)
	}
	for r.more() {
		start := r.at
		t := r.bytes(tagSize)
		body := r.bytes(r.uvarint())
		if r.err != nil {
			return fmt.Errorf("%w: the section at byte %d reaches beyond the end, at byte %d", r.err, start, len(packed))
		}
		tag := tagOf(t)
		if err := visit(tag, body); err != nil {
			return fmt.Errorf("%w: in the section of tag %06x, bytes %d to %d", err, tag, start, r.at)
		}
	}
	if r.err != nil {
		return fmt.Errorf("%w: its header is cut off", r.err)
	}
	return nil
}

// Compactor compacts what is packed. It has memory of its own and serves one
// goroutine. Its zero value is ready.
type Compactor struct {
	// Children says which series the children have that are embedded under a tag; nil
	// where they are not known: they stay as they are.
	Children func(tag uint32) func(tag uint32) *state.Series
	// Idle has series of children dropped of which nothing is kept any more, whatever their
	// layout. That takes more time, and it suffices to do it where an entity is idle:
	// children of others are spilled in the end.
	Idle bool
	// Spilled are the children that the last compaction has left out, since they took too
	// much together. They are to be appended to their own keys in the same step.
	Spilled []Child

	pool     Pool
	parts    []part
	body     []byte
	children []Child
	inner    *Compactor // of children
}

// part is what there is of one series.
type part struct {
	tag    uint32
	series *state.Series // nil where it is not known
	state  State         // of a known series
	body   []byte        // of an unknown one
	size   int           // packed, of one that grows and can be made shorter
}

// Compact appends one section for each series of what is packed, without what
// lies before the first tile that the series keeps at a moment in milliseconds.
// Sections whose series is not known, which is nil, stay as they are, unless it
// is dead. The nonce must be one that was never used. Where nothing is left,
// nothing is appended.
func (c *Compactor) Compact(dst, packed []byte, known func(tag uint32) *state.Series, dead func(tag uint32) bool, now int64, nonce Nonce) ([]byte, error) {
	defer c.clear()
	if err := c.take(packed, known); err != nil {
		return nil, err
	}
	c.parts = slices.DeleteFunc(c.parts, func(p part) bool {
		if p.series == nil {
			return dead(p.tag)
		}
		gone := p.series.Keep > 0 && p.state.Prune(p.series.Horizon(now))
		if gone {
			c.pool.Put(p.series, p.state)
		}
		return gone
	})
	start := len(dst)
	dst = append(dst, make([]byte, headerSize)...)
	growing, most := 0, 0 // bytes of the series that grow, and how many those may be
	for i := range c.parts {
		p := &c.parts[i]
		if p.series == nil {
			dst = appendSection(dst, p.tag, p.body)
			continue
		}
		c.body = Fit(c.body[:0], p.series, p.state)
		dst = appendSection(dst, p.tag, c.body)
		if p.series.GroupBytes > 0 {
			p.size = len(c.body)
			growing, most = growing+p.size, max(most, p.series.GroupBytes)
		}
	}
	if growing > most {
		dst = c.squeeze(dst[:start+headerSize], growing, most)
	}
	dst, err := c.appendChildren(dst, dead, now, nonce)
	if err != nil {
		return nil, err
	}
	if len(dst) == start+headerSize {
		return dst[:start], nil
	}
	putHeader(dst[start:], len(dst)-start, nonce)
	return dst, nil
}

// putHeader makes the first bytes the header of what is as long.
func putHeader(packed []byte, size int, nonce Nonce) {
	length := packedLength(size)
	copy(packed, []byte{0, byte(length >> 16), byte(length >> 8), byte(length)})
	copy(packed[1+lengthSize:], nonce[:])
}

// squeezer is a State that may be made to take less by what it then no longer says
// as exactly, or lacks, and says that it does.
type squeezer interface {
	// squeeze makes it take less; false says that it cannot.
	squeeze() bool
}

// squeeze makes the longest of the series that grow shorter until all of them
// together take no more than they may, and packs all parts anew.
func (c *Compactor) squeeze(dst []byte, growing, most int) []byte {
	for growing > most {
		longest := 0
		for i := range c.parts {
			if c.parts[i].size > c.parts[longest].size {
				longest = i
			}
		}
		p := &c.parts[longest]
		if p.size == 0 {
			break // none of them can be made shorter
		}
		growing -= p.size
		if q, ok := p.state.(squeezer); ok && q.squeeze() {
			c.body = p.state.Append(c.body[:0])
			p.size = len(c.body)
		} else {
			most, p.size = most-p.size, 0
		}
		growing += p.size
	}
	for _, p := range c.parts {
		c.body = append(c.body[:0], p.body...)
		if p.series != nil {
			c.body = p.state.Append(c.body[:0])
		}
		dst = appendSection(dst, p.tag, c.body)
	}
	return dst
}

// Fit packs a state into no more bytes than its series allows, as far as it can be
// squeezed.
func Fit(dst []byte, s *state.Series, held State) []byte {
	start := len(dst)
	for dst = held.Append(dst); s.Bytes > 0 && len(dst)-start > s.Bytes; dst = held.Append(dst[:start]) {
		if q, ok := held.(squeezer); !ok || !q.squeeze() {
			break
		}
	}
	return dst
}

// packedLength is a length as a header has it.
func packedLength(length int) uint32 {
	power := max(0, bits.Len(uint(length))-lengthBits)
	mantissa := (length + 1<<power - 1) >> power
	if mantissa == 1<<lengthBits { // it was rounded up
		power, mantissa = power+1, mantissa>>1
	}
	return uint32(power)<<lengthBits | uint32(mantissa)
}

// take takes the parts of what is packed.
func (c *Compactor) take(packed []byte, known func(tag uint32) *state.Series) error {
	c.Spilled = nil
	return Sections(packed, func(tag uint32, body []byte) error {
		if IsEmbedding(tag) {
			return c.takeChild(tag, body)
		}
		i := slices.IndexFunc(c.parts, func(p part) bool { return p.tag == tag && p.series != nil })
		if i < 0 {
			i = len(c.parts)
			c.parts = append(c.parts, part{tag: tag, body: body})
			if s := known(tag); s != nil {
				c.parts[i].series, c.parts[i].state = s, c.pool.Take(s, Secret{}) // nothing is hashed
			}
		}
		if c.parts[i].series == nil {
			return nil
		}
		return c.parts[i].state.Merge(body)
	})
}

func (c *Compactor) clear() {
	for _, p := range c.parts {
		if p.series != nil {
			c.pool.Put(p.series, p.state)
		}
	}
	clear(c.parts)
	clear(c.children)
	c.parts, c.children = c.parts[:0], c.children[:0]
}
