package packed

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/weir-stream/weir/state"
)

// The state of an entity in a group is packed into one string of sections. Each section belongs to
// a series; a series has several if mutations were appended since the last compaction:
//
//	section  tag (3 bytes), length of the body (varint), body
//	body     mutations or the state of the series, encoded as its State does
//
// The length 0 stands for the body of the section before: an event often changes several series alike, such as the sums
// of an amount with and without a filter.
//
// Compacted state begins with a header: a zero byte, which begins no tag, the length after the compaction (3 bytes: 5
// bits of a power of two, which multiplies the other 19 bits, rounded up), and a number that identifies this compaction
// (4 random bytes).

const (
	tagSize    = 3
	lengthSize = 3
	nonceSize  = 4
	headerSize = 1 + lengthSize + nonceSize
	// lengthBits is the number of bits of a header's length without its power of two.
	lengthBits = 19
)

// Nonce identifies a compaction.
type Nonce [nonceSize]byte

func appendTag(dst []byte, tag uint32) []byte {
	return append(dst, byte(tag>>16), byte(tag>>8), byte(tag))
}

// Packer packs mutations: Begin or Next begins a section of a series, Add adds mutations to it, and End appends it. It reuses
// its memory, and is not safe for concurrent use.
type Packer struct {
	Secret state.Secret // values are hashed with it

	series   *state.Series
	body     []byte
	before   int64
	follows  bool
	previous []byte // body of the section that this one follows
}

// Begin begins a section of a series.
func (p *Packer) Begin(s *state.Series) {
	p.series, p.body, p.before, p.follows = s, p.body[:0], firstTile(s), false
}

// Next begins a section that will be appended right after the one that ended last.
func (p *Packer) Next(s *state.Series) {
	p.body, p.previous = p.previous, p.body
	p.Begin(s)
	p.follows = true
}

// Add adds a mutation to the section.
func (p *Packer) Add(mutation *state.Mutation) {
	p.body, p.before = appendMutation(p.body, mutation, p.before, p.Secret)
}

// End appends the section.
func (p *Packer) End(dst []byte) []byte {
	if p.follows && bytes.Equal(p.body, p.previous) {
		return append(appendTag(dst, p.series.Tag()), 0)
	}
	return appendSection(dst, p.series.Tag(), p.body)
}

// appendSection appends a section, unless its body is empty.
func appendSection(dst []byte, tag uint32, body []byte) []byte {
	if len(body) == 0 {
		return dst
	}
	dst = appendTag(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return append(dst, body...)
}

// Sections calls visit with each section of packed state, except a header. It returns the error of visit, or an error
// that names the byte where a damaged section begins.
func Sections(packed []byte, visit func(tag uint32, body []byte) error) error {
	_, err := walk(packed, headerEnd(packed), visit)
	return err
}

// headerEnd returns where the sections of packed state begin: after the header, if there is one.
func headerEnd(packed []byte) int {
	if len(packed) > 0 && packed[0] == 0 {
		return headerSize
	}
	return 0
}

// walk calls visit with each section from a byte on, and returns the end of the last one.
func walk(packed []byte, from int, visit func(tag uint32, body []byte) error) (end int, err error) {
	if from > len(packed) {
		return 0, fmt.Errorf("%w: its header is cut off", errPacked)
	}
	r := decoder{packed: packed, at: from}
	var body []byte
	for r.more() {
		start := r.at
		t := r.bytes(tagSize)
		if length := r.uvarint(); length > 0 {
			body = r.bytes(length)
		} else if body == nil && r.err == nil {
			return start, fmt.Errorf("%w: the section at byte %d has the body of the one before, but is the first", errPacked, start)
		}
		if r.err != nil {
			return start, fmt.Errorf("%w: the section at byte %d reaches beyond the end, at byte %d", r.err, start, len(packed))
		}
		tag := tagOf(t)
		if tag>>16 == 0 && tag != LossTag {
			return start, fmt.Errorf("%w: no section has the tag %06x, which is at byte %d", errPacked, tag, start)
		}
		if err := visit(tag, body); err != nil {
			return start, fmt.Errorf("%w: in the section of tag %06x, bytes %d to %d", err, tag, start, r.at)
		}
	}
	return r.at, nil
}

// Compactor compacts packed state. It reuses its memory, and is not safe for concurrent use. Its zero value is ready.
type Compactor struct {
	// Secret is that with which the values of the state were hashed.
	Secret state.Secret
	// Children returns the series of the children that are embedded under a tag. If it returns nil, the series are
	// unknown and the children stay unchanged.
	Children func(tag uint32) func(tag uint32) *state.Series
	// Idle makes compactions also drop series of children that keep nothing any more, of any layout. That takes more
	// time. Only idle entities need it: the children of others are spilled in the end.
	Idle bool
	// Spilled are the children that the last compaction left out to shorten the key. They must be appended to their own
	// keys in the same step.
	Spilled []Child
	// Cut means that the last compaction dropped state that would have been kept, because the key was too long.
	Cut bool
	// Most is how many bytes the last resort leaves a key, see bound; 0 for as many as needed.
	Most int
	// Latest is a moment in milliseconds: no record that was applied has a later timestamp, as far
	// as such are believed.
	Latest int64

	pool     pool
	parts    []part
	at       int // index in parts of the one that the last section belongs to
	body     []byte
	section  []byte
	children []Child
	losses   Losses
	damage   damage
	inner    *Compactor // for children
	embedded bool       // it is such an inner one
}

// part is the state of one series.
type part struct {
	tag    uint32
	series *state.Series // nil if unknown
	state  State         // of a known series
	body   []byte        // of an unknown one
	size   int           // of its section
	// newest is the last tile when it was first cut, and span how many tiles are kept, up to that one; 0 before.
	newest, span int64
}

// Compact appends one section for each series of the packed state, without the tiles before the first one that the
// series keeps at a moment, in milliseconds. Sections of unknown series are left unchanged, unless they are garbage.
// The nonce must never have been used before. If nothing is left, nothing is appended.
//
// The error says what could not be read, now or earlier. The appended state then has everything else, and a note of the
// damage.
func (c *Compactor) Compact(dst, packed []byte, known func(tag uint32) *state.Series, garbage func(tag uint32) bool, now int64, nonce Nonce) ([]byte, error) {
	defer c.clear()
	c.pool.keyed(c.Secret)
	c.take(packed, known)
	oldest := c.oldest(now)
	c.parts = slices.DeleteFunc(c.parts, func(p part) bool {
		if p.series == nil {
			return garbage(p.tag)
		}
		gone := p.series.Keep > 0 && p.state.Prune(p.series.Horizon(now))
		if gone {
			c.pool.put(p.series, p.state)
		}
		return gone
	})
	start := len(dst)
	dst = append(dst, make([]byte, headerSize)...)
	for i := range c.parts {
		p := &c.parts[i]
		before := len(dst)
		dst = c.appendPart(dst, p)
		p.size = len(dst) - before
	}
	if c.bound(len(dst) - start) {
		dst = c.appendParts(dst[:start+headerSize])
	}
	dst = c.appendLosses(dst, oldest, garbage)
	dst = c.damage.append(dst, garbage)
	dst, wrong := c.appendChildren(dst, garbage, now, nonce)
	wrong = cmp.Or(c.damage.err(anyTag), wrong)
	if len(dst) == start+headerSize {
		return dst[:start], wrong
	}
	if len(c.Spilled) > 0 {
		unmark(dst[start:])
	}
	putHeader(dst[start:], len(dst)-start, nonce)
	return dst, wrong
}

// putHeader writes the header for a state of that size into the first bytes.
func putHeader(packed []byte, size int, nonce Nonce) {
	length := packedLength(size)
	copy(packed, []byte{0, byte(length >> 16), byte(length >> 8), byte(length)})
	copy(packed[1+lengthSize:], nonce[:])
}

// Identified returns how many bytes of packed state the header identifies: those that the last compaction left, or a
// few less. No other state begins with the same header.
func Identified(packed []byte) int {
	if len(packed) < headerSize || packed[0] != 0 {
		return 0
	}
	length := tagOf(packed[1:])
	power := length >> lengthBits
	rounded := int(length&(1<<lengthBits-1)) << power
	least := rounded - 1<<power + 1
	if least > len(packed) {
		return 0 // there is no header
	}
	return max(least, 0)
}

// packedLength returns a length as headers encode it.
func packedLength(length int) uint32 {
	power := max(0, bits.Len(uint(length))-lengthBits)
	mantissa := (length + 1<<power - 1) >> power
	if mantissa == 1<<lengthBits { // rounded up to the next power
		power, mantissa = power+1, mantissa>>1
	}
	return uint32(power)<<lengthBits | uint32(mantissa)
}

// take splits packed state into parts, except what is damaged.
func (c *Compactor) take(packed []byte, known func(tag uint32) *state.Series) {
	c.Spilled, c.Cut = nil, false
	err := Sections(packed, func(tag uint32, body []byte) error {
		if err := c.takeSection(tag, body, known); err != nil {
			c.damage.add(tag, fmt.Errorf("%w: in a section of tag %06x", err, tag))
		}
		return nil
	})
	if err != nil {
		c.damage.addAll(err)
	}
	if len(c.damage.tags) == 0 {
		return
	}
	c.children = slices.DeleteFunc(c.children, func(child Child) bool { return c.damage.has(child.Tag) })
	c.parts = slices.DeleteFunc(c.parts, func(p part) bool {
		broken := c.damage.has(p.tag)
		if broken && p.series != nil {
			c.pool.put(p.series, p.state)
		}
		return broken
	})
}

func (c *Compactor) takeSection(tag uint32, body []byte, known func(tag uint32) *state.Series) error {
	if c.damage.take(tag, body) {
		return nil
	}
	if isLoss, err := c.losses.Take(tag, body); isLoss {
		if err != nil {
			c.damage.addAll(fmt.Errorf("%w: in the note of a loss", err))
		}
		return nil
	}
	if IsEmbedding(tag) {
		return c.takeChild(tag, body)
	}
	if p := c.part(tag, body, known); p.series != nil {
		return p.state.Merge(body)
	}
	return nil
}

// part finds or makes the part of a section. Sections are mostly appended in the same order of series, so it is mostly
// the one after the last one found. Each section of an unknown series is a part of its own.
func (c *Compactor) part(tag uint32, body []byte, known func(tag uint32) *state.Series) *part {
	if c.at++; c.at < len(c.parts) && c.parts[c.at].isOf(tag) {
		return &c.parts[c.at]
	}
	for c.at = range c.parts {
		if p := &c.parts[c.at]; p.isOf(tag) {
			return p
		}
	}
	c.at = len(c.parts)
	c.parts = append(c.parts, part{tag: tag, body: body})
	p := &c.parts[c.at]
	if s := known(tag); s != nil {
		p.series, p.state = s, c.pool.take(s)
	}
	return p
}

// isOf reports whether it is the part of a known series with a tag.
func (p *part) isOf(tag uint32) bool { return p.tag == tag && p.series != nil }

func (c *Compactor) clear() {
	for _, p := range c.parts {
		if p.series != nil {
			c.pool.put(p.series, p.state)
		}
	}
	clear(c.parts)
	clear(c.children)
	c.parts, c.children, c.losses, c.damage = c.parts[:0], c.children[:0], nil, damage{}
}
