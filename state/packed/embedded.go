package packed

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/weir-stream/weir/state"
)

// The state of an entity of several values is embedded in that of its parent while it is short (see
// state.Series.Parent), because each key costs Redis about a hundred bytes and a look-up. It is a section with its own
// encoding:
//
//	body     length of the child's name (varint), that name, sections of the child
//
// Its tag is state.EmbeddingTag, which no series has. When a parent is compacted whose children take more than
// maxEmbedded bytes together, they are spilled: their state moves to the end of their own keys. So the state of a child
// is its own key followed by the embedded sections.

// maxEmbedded is how many bytes of children stay with their parent when it is compacted, and maxEmbeddedMarked while
// the parent waits for a refill: the refill replaces the children's own keys, so nothing should be spilled to them.
// Above that limit they are spilled, and the refill must start over.
const (
	maxEmbedded       = 2048
	maxEmbeddedMarked = 64 << 10
)

// Child is an embedded child.
type Child struct {
	Tag      uint32 // of its group
	Name     []byte // distinguishes it from the parent's other children
	Sections []byte
}

// IsEmbedding reports whether a tag is that of embedded children.
func IsEmbedding(tag uint32) bool { return tag>>16 == 0xff && tag != state.DamageTag }

// AppendChild appends the section of a child.
func AppendChild(dst []byte, c Child) []byte {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(c.Name)))
	dst = appendTag(dst, c.Tag)
	dst = binary.AppendUvarint(dst, uint64(n+len(c.Name)+len(c.Sections)))
	dst = append(append(dst, length[:n]...), c.Name...)
	return append(dst, c.Sections...)
}

// ChildOf returns the child in a section.
func ChildOf(tag uint32, body []byte) (Child, error) {
	r := decoder{packed: body}
	name := r.bytes(r.uvarint())
	return Child{tag, name, body[r.at:]}, r.err
}

// WithEmbedded returns all state of a child, from its own key and from its parent's, and the losses of the parent that
// concern it. It fails if the parent's damage may include the child.
func WithEmbedded(own, parent []byte, tag uint32, name []byte) (held []byte, losses Losses, err error) {
	var found damage
	held = own
	err = Sections(parent, func(t uint32, body []byte) error {
		if t != tag {
			found.take(t, body)
			_, err := losses.Take(t, body)
			return err
		}
		c, err := ChildOf(t, body)
		if err == nil && bytes.Equal(c.Name, name) {
			if len(held) == len(own) {
				held = slices.Clip(whole(own))
			}
			held = append(held, whole(c.Sections)...)
		}
		return err
	})
	return held, losses.OfChildren(tag), cmp.Or(err, found.err(func(t uint32) bool { return t == tag }))
}

// OfChildren returns the losses of a parent that concern the children with a tag.
func (l Losses) OfChildren(tag uint32) (of Losses) {
	for _, loss := range l {
		i := slices.Index(loss.Tags, tag)
		if len(loss.Tags) > 0 && i < 0 {
			continue
		}
		loss.Tags = loss.Tags[i+1:]
		if next := slices.IndexFunc(loss.Tags, IsEmbedding); next >= 0 {
			loss.Tags = loss.Tags[:next]
		}
		of = append(of, loss)
	}
	return of
}

// WithoutEmbedded returns the state of a parent without a child, after a header. A running refill of the parent must
// start over, because it would restore the old child.
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
	unmark(left)
	putHeader(left, len(left), nonce)
	return left, err
}

// takeChild collects the sections of an embedded child.
func (c *Compactor) takeChild(tag uint32, body []byte) error {
	child, err := ChildOf(tag, body)
	if err != nil {
		return err
	}
	child.Sections = slices.Clip(whole(child.Sections)) // the sections after it in the parent belong to others
	i := slices.IndexFunc(c.children, func(have Child) bool { return have.Tag == tag && bytes.Equal(have.Name, child.Name) })
	if i < 0 {
		c.children = append(c.children, child)
		return nil
	}
	c.children[i].Sections = append(c.children[i].Sections, child.Sections...)
	return nil
}

// appendChildren compacts the children and appends them, or spills those that are known. The error
// says what is damaged, see Compact.
func (c *Compactor) appendChildren(dst []byte, garbage func(tag uint32) bool, now int64, nonce Nonce) (_ []byte, wrong error) {
	start := len(dst)
	known := c.children[:0] // compacted
	for _, child := range c.children {
		series := c.seriesOf(child)
		compact, err := c.compactChild(child, series, garbage, now, nonce)
		if err != nil && wrong == nil {
			wrong = fmt.Errorf("%w, of an entity with tag %06x that is embedded in it", err, child.Tag)
		}
		switch {
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
	if len(dst)-start > c.embeddedLimit() {
		c.Spilled = append(c.Spilled, known...)
		return dst[:start], wrong
	}
	return dst, wrong
}

// seriesOf returns the series of a child, nil if these are unknown.
func (c *Compactor) seriesOf(child Child) func(tag uint32) *state.Series {
	if c.Children == nil {
		return nil
	}
	return c.Children(child.Tag)
}

// embeddedLimit returns how many bytes of children stay with their parent.
func (c *Compactor) embeddedLimit() int {
	if slices.ContainsFunc(c.losses, func(l Loss) bool { return l.Mark != Mark{} }) {
		return maxEmbeddedMarked
	}
	return maxEmbedded
}

// compactChild compacts a child, whose series may be unknown.
func (c *Compactor) compactChild(child Child, series func(tag uint32) *state.Series, garbage func(tag uint32) bool, now int64, nonce Nonce) ([]byte, error) {
	if series == nil {
		series = func(uint32) *state.Series { return nil }
	}
	if c.inner == nil {
		c.inner = &Compactor{embedded: true}
	}
	c.inner.Secret = c.Secret
	var past map[uint32]bool
	if c.Idle {
		past = c.inner.past(child.Sections, series, now)
	}
	// A known series is not garbage, even if it is not compacted here: definitions may have brought it back after the
	// list of garbage was read.
	gone := func(tag uint32) bool { return past[tag] || series(tag) == nil && garbage(tag) }
	room := make([]byte, 0, headerSize+len(child.Sections))
	compact, err := c.inner.Compact(room, child.Sections, associative(series), gone, now, nonce)
	return compact[min(headerSize, len(compact)):], err
}

// past returns the series that keep nothing any more at a moment.
func (c *Compactor) past(sections []byte, series func(tag uint32) *state.Series, now int64) map[uint32]bool {
	defer c.clear()
	c.pool.keyed(c.Secret)
	c.take(sections, series)
	past := map[uint32]bool{}
	for _, p := range c.parts {
		past[p.tag] = p.series != nil && p.series.Keep > 0 && p.state.Prune(p.series.Horizon(now))
	}
	return past
}

// associative leaves out the series whose mutations must be merged with all earlier state, because some of it may have
// been spilled.
func associative(known func(tag uint32) *state.Series) func(tag uint32) *state.Series {
	return func(tag uint32) *state.Series {
		if s := known(tag); s != nil && s.Layout().Associative() {
			return s
		}
		return nil
	}
}
