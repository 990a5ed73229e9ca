package packed

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/weir-stream/weir/state"
)

// What groups keep of an entity of several values is embedded in what is kept of its
// parent while that is short (see state.Series.Parent), for a key costs Redis about a hundred bytes
// and a look-up of its own. It is a section of its own form:
//
//	body     length of the child's name (varint), that name, sections of the child
//
// Its tag is state.EmbeddingTag, which no series has. When a parent is compacted whose
// children take more than MaxEmbedded bytes together, they are spilled: what they held moves to
// their own keys, behind what was spilled before. So what is held of a child is what its
// own key holds, followed by what is embedded.

// MaxEmbedded is how many bytes of children stay with their parent when it is compacted.
const MaxEmbedded = 2048

// Child is what is embedded of a child.
type Child struct {
	Tag      uint32 // of its group
	Name     []byte // what tells it from the parent's other children
	Sections []byte
}

// IsEmbedding says whether a tag is that of children.
func IsEmbedding(tag uint32) bool { return tag>>16 == 0xff }

// AppendChild appends a section of a child.
func AppendChild(dst []byte, c Child) []byte {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(c.Name)))
	dst = appendTag(dst, c.Tag)
	dst = binary.AppendUvarint(dst, uint64(n+len(c.Name)+len(c.Sections)))
	dst = append(append(dst, length[:n]...), c.Name...)
	return append(dst, c.Sections...)
}

// ChildOf is the child that a section is of.
func ChildOf(tag uint32, body []byte) (Child, error) {
	r := decoder{packed: body}
	name := r.bytes(r.uvarint())
	return Child{tag, name, body[r.at:]}, r.err
}

// WithEmbedded is all that is held of a child, of which its own key holds something
// and its parent's the rest, and the losses of the parent that concern it.
func WithEmbedded(own, parent []byte, tag uint32, name []byte) (held []byte, losses Losses, err error) {
	held = slices.Clip(own)
	err = Sections(parent, func(t uint32, body []byte) error {
		if t != tag {
			_, err := losses.Take(t, body)
			return err
		}
		c, err := ChildOf(t, body)
		if err == nil && bytes.Equal(c.Name, name) {
			held = append(held, c.Sections...)
		}
		return err
	})
	losses = slices.DeleteFunc(losses, func(l Loss) bool { return len(l.Tags) > 0 && !slices.Contains(l.Tags, tag) })
	for i := range losses {
		losses[i].Tags = nil // all that is held of the child
	}
	return held, losses, err
}

// WithoutEmbedded is what a parent holds but for a child, behind a header.
func WithoutEmbedded(parent []byte, tag uint32, name []byte, nonce Nonce) ([]byte, error) {
	left := make([]byte, headerSize, max(headerSize, len(parent)))
	err := Sections(parent, func(t uint32, body []byte) error {
		if t == tag {
			if c, err := ChildOf(t, body); err != nil || bytes.Equal(c.Name, name) {
				return err
			}
		}
		left = appendSection(left, t, body)
		return nil
	})
	putHeader(left, len(left), nonce)
	return left, err
}

// takeChild gathers the sections of a child that is embedded.
func (c *Compactor) takeChild(tag uint32, body []byte) error {
	child, err := ChildOf(tag, body)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(c.children, func(have Child) bool { return have.Tag == tag && bytes.Equal(have.Name, child.Name) })
	if i < 0 {
		child.Sections = slices.Clip(child.Sections) // what follows in the parent is not its own
		c.children = append(c.children, child)
		return nil
	}
	c.children[i].Sections = append(c.children[i].Sections, child.Sections...)
	return nil
}

// appendChildren compacts the children and appends them, or spills those that are known.
func (c *Compactor) appendChildren(dst []byte, dead func(tag uint32) bool, now int64, nonce Nonce) ([]byte, error) {
	start := len(dst)
	known := c.children[:0] // compacted
	for _, child := range c.children {
		var series func(tag uint32) *state.Series
		if c.Children != nil {
			series = c.Children(child.Tag)
		}
		compact, err := c.compactChild(child, series, dead, now, nonce)
		switch {
		case err != nil:
			return nil, err
		case len(compact) == 0:
		case series == nil:
			dst = AppendChild(dst, Child{child.Tag, child.Name, compact})
			start = len(dst)
		default:
			known = append(known, Child{child.Tag, child.Name, compact})
		}
	}
	for _, child := range known {
		dst = AppendChild(dst, child)
	}
	if len(dst)-start > MaxEmbedded {
		c.Spilled = append(c.Spilled, known...)
		return dst[:start], nil
	}
	return dst, nil
}

// compactChild is what is kept of a child, whose series may not be known.
func (c *Compactor) compactChild(child Child, series func(tag uint32) *state.Series, dead func(tag uint32) bool, now int64, nonce Nonce) ([]byte, error) {
	if series == nil {
		series = func(uint32) *state.Series { return nil }
	}
	if c.inner == nil {
		c.inner = new(Compactor)
	}
	var past map[uint32]bool
	if c.Idle {
		var err error
		if past, err = c.inner.past(child.Sections, series, now); err != nil {
			return nil, err
		}
	}
	// What is known is not dead, also where it is not folded: who says so may say it of before.
	gone := func(tag uint32) bool { return past[tag] || series(tag) == nil && dead(tag) }
	compact, err := c.inner.Compact(nil, child.Sections, associative(series), gone, now, nonce)
	return compact[min(headerSize, len(compact)):], err
}

// past are the series of which nothing is kept any more at a moment.
func (c *Compactor) past(sections []byte, series func(tag uint32) *state.Series, now int64) (map[uint32]bool, error) {
	defer c.clear()
	if err := c.take(sections, series); err != nil {
		return nil, err
	}
	past := map[uint32]bool{}
	for _, p := range c.parts {
		past[p.tag] = p.series != nil && p.series.Keep > 0 && p.state.Prune(p.series.Horizon(now))
	}
	return past, nil
}

// associative leaves out the series whose operations must be folded with all that came before,
// some of which may have been spilled.
func associative(known func(tag uint32) *state.Series) func(tag uint32) *state.Series {
	return func(tag uint32) *state.Series {
		if s := known(tag); s != nil && s.Layout().Associative() {
			return s
		}
		return nil
	}
}
