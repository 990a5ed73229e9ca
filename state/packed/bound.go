package packed

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/weir-stream/weir/state"
)

// The packed state of an entity is bounded. First each series that grows is squeezed into its own bytes (Fit). If all
// series of a key together still take too much, the growing ones are squeezed further. If that does not suffice, the
// oldest tiles of the longest series are dropped, and then series that the definitions do not have; both leave a Loss.
// Embedded children are not bounded: they are spilled, and bounded in keys of their own.

// squeezer is a State that can be made smaller at the cost of precision or completeness, and states this cost.
type squeezer interface {
	// squeeze makes it smaller; false if it cannot.
	squeeze() bool
}

// bound squeezes the parts, total bytes long, into what their series allow together, and reports whether any changed.
func (c *Compactor) bound(total int) (changed bool) {
	if c.embedded {
		return false
	}
	growing, maxGrowing, most := 0, 0, c.Most
	for _, p := range c.parts {
		if p.series == nil {
			continue
		}
		most = max(most, p.series.KeyBytes)
		if p.series.GroupBytes > 0 {
			growing, maxGrowing = growing+p.size, max(maxGrowing, p.series.GroupBytes)
		}
	}
	for _, size := range c.unknownChildren() {
		total += size
	}
	over := growing - maxGrowing
	if most > 0 {
		over = max(over, total-most)
	}
	if over <= 0 {
		return false
	}
	left := c.shorten(over, func(p *part) bool {
		q, ok := p.state.(squeezer)
		return ok && p.series.GroupBytes > 0 && q.squeeze()
	})
	if most > 0 && total-over+left > most {
		left = c.shorten(total-over+left-most, c.cut)
		c.cutUnknown(left)
	}
	return true
}

// unknownChildren yields the tags and bytes of the children whose series are unknown. They are not spilled.
func (c *Compactor) unknownChildren() iter.Seq2[uint32, int] {
	return func(yield func(tag uint32, size int) bool) {
		for _, child := range c.children {
			if c.seriesOf(child) == nil && !yield(child.Tag, len(AppendChild(c.section[:0], child))) {
				return
			}
		}
	}
}

// cutUnknown drops series and children that the definitions do not have, the longest first, until over bytes are saved.
// Other definitions may have them, so this is recorded as a loss of everything applied so far.
func (c *Compactor) cutUnknown(over int) {
	if over <= 0 {
		return
	}
	sizes := map[uint32]int{}
	for tag, size := range c.unknownChildren() {
		sizes[tag] += size
	}
	for _, p := range c.parts {
		if p.series == nil {
			sizes[p.tag] += p.size
		}
	}
	longestFirst := slices.SortedFunc(maps.Keys(sizes), func(a, b uint32) int { return cmp.Compare(sizes[b], sizes[a]) })
	for _, tag := range longestFirst {
		if over <= 0 {
			break
		}
		over -= sizes[tag]
		c.parts = slices.DeleteFunc(c.parts, func(p part) bool { return p.tag == tag })
		c.children = slices.DeleteFunc(c.children, func(child Child) bool { return child.Tag == tag })
		c.Cut = true
		c.losses = append(c.losses, Loss{Until: c.Latest, Tags: []uint32{tag}})
	}
}

// shorten shortens the longest of the known parts until over bytes are saved or none can be
// shortened, and returns how many bytes are still to be saved.
func (c *Compactor) shorten(over int, shorter func(p *part) bool) (left int) {
	done := make([]bool, len(c.parts))
	for over > 0 {
		longest := -1
		for i, p := range c.parts {
			if p.series != nil && !done[i] && (longest < 0 || p.size > c.parts[longest].size) {
				longest = i
			}
		}
		if longest < 0 {
			break
		}
		p := &c.parts[longest]
		if !shorter(p) {
			done[longest] = true
			continue
		}
		c.section = c.appendPart(c.section[:0], p)
		over -= p.size - len(c.section)
		p.size = len(c.section)
	}
	return max(0, over)
}

// cut drops the older half of the tiles that a part has, and records the loss. It returns false if only one tile is left. Which
// tiles are the older ones depends on the state alone: the moment of pruning may be unknown, or that of a log of long ago. Event
// IDs are never cut off, because a repeated event would count twice.
func (c *Compactor) cut(p *part) bool {
	s := p.series
	if s.Tile == 0 || s.Measure == state.RememberID {
		return false
	}
	if p.span == 0 {
		var first int64
		first, p.newest = tilesOf(s, p.state)
		p.span = p.newest - first + 1
	}
	if p.span <= 1 {
		return false
	}
	p.span /= 2
	first := p.newest - p.span + 1
	p.state.Prune(first)
	c.Cut = true
	c.losses = append(c.losses, Loss{Until: first*s.Tile - 1, Tags: []uint32{p.tag}})
	return true
}

// tilesOf returns the first and the last tile that a state has something of; last is before first if there are none.
func tilesOf(s *state.Series, held State) (first, last int64) {
	first, last = math.MaxInt64, math.MinInt64
	list, _, _ := Entries(s, held) // what is damaged counts as not there
	for _, e := range list {
		tiles := e.Tiles
		if e.Record != nil {
			tiles = []int64{s.TileOf(e.Record.Time)}
		}
		for _, tile := range tiles {
			first, last = min(first, tile), max(last, tile)
		}
	}
	if last < first {
		return 0, -1
	}
	return first, last
}

// appendPart appends a part's section.
func (c *Compactor) appendPart(dst []byte, p *part) []byte {
	if p.series == nil {
		return appendSection(dst, p.tag, p.body)
	}
	c.body = Fit(c.body[:0], p.series, p.state)
	return appendSection(dst, p.tag, c.body)
}

func (c *Compactor) appendParts(dst []byte) []byte {
	for i := range c.parts {
		dst = c.appendPart(dst, &c.parts[i])
	}
	return dst
}

// appendLosses appends one section for what all series of the key may lack, and one for each series that may lack more.
// Losses older than everything that is kept are dropped, and so are the losses of garbage. Losses that wait for a
// refill are kept unchanged, and so are those of some series of children.
func (c *Compactor) appendLosses(dst []byte, oldest int64, garbage func(tag uint32) bool) []byte {
	var plain Losses
	for _, l := range c.losses {
		switch {
		case l.Until < oldest:
		case l.Mark != Mark{}, slices.ContainsFunc(l.Tags, IsEmbedding):
			dst = AppendLoss(dst, l)
		default:
			plain = append(plain, l)
		}
	}
	all := plain.Of(noTag)
	if all != nil {
		dst = AppendLoss(dst, Loss{Until: *all})
	}
	for _, tag := range plain.tags() {
		if until := *plain.Of(tag); (all == nil || until > *all) && !garbage(tag) {
			dst = AppendLoss(dst, Loss{Until: until, Tags: []uint32{tag}})
		}
	}
	return dst
}

// oldest returns the earliest moment for which state may be kept.
func (c *Compactor) oldest(now int64) int64 {
	for _, p := range c.parts {
		if p.series != nil && p.series.GroupKeep > 0 {
			return now - p.series.GroupKeep
		}
	}
	return math.MinInt64
}

// Fit packs a state, squeezed as far as possible into the bytes that its series allows.
func Fit(dst []byte, s *state.Series, held State) []byte {
	start := len(dst)
	for dst = held.Append(dst); s.Bytes > 0 && len(dst)-start > s.Bytes; dst = held.Append(dst[:start]) {
		if q, ok := held.(squeezer); !ok || !q.squeeze() {
			break
		}
	}
	return dst
}
