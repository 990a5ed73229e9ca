package packed

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-stream/weir/state"
)

// LossTag is the tag of a section that states what was dropped from the key because it could not be read or took too
// much. No series has a tag that begins with a zero byte.
const LossTag = 1

// noTag is the tag of no section.
const noTag = 0

// Loss states that state was dropped from a key: the effects of records or events with times up to a moment. Packed, it
// is the moment in LossMoment digits, the mark after three zero bytes if there is one, then the tags.
type Loss struct {
	Until int64 // greatest timestamp of a record lost, in ms
	// Mark identifies the refill that is to restore what was lost; it is zero if there is none. The refill finds it
	// changed if anything was dropped or moved to another key meanwhile.
	Mark Mark
	// Tags are the tags of the lost series; none means everything in the key. The tags of children's series follow the
	// children's tag; none means all their state.
	Tags []uint32
}

// Mark distinguishes a refill from all others.
type Mark [3 * tagSize]byte

// NewMark makes a random mark.
func NewMark() (m Mark) {
	_, _ = rand.Read(m[:]) // it never fails
	return m
}

// LossMoment is the number of digits of the moment of a packed loss.
const LossMoment = 16

// markPrefix precedes a mark. It is not a tag.
const markPrefix = "\x00\x00\x00"

// Losses are the losses of a key.
type Losses []Loss

// Take adds the loss of a section if the section is a loss, and reports whether it is.
func (l *Losses) Take(tag uint32, body []byte) (isLoss bool, err error) {
	if tag != LossTag {
		return false, nil
	}
	if len(body) < LossMoment || (len(body)-LossMoment)%tagSize != 0 {
		return true, errPacked
	}
	until, err := strconv.ParseInt(string(body[:LossMoment]), 10, 64)
	if err != nil {
		return true, errPacked
	}
	loss, tags := Loss{Until: until}, body[LossMoment:]
	if mark, marked := bytes.CutPrefix(tags, []byte(markPrefix)); marked {
		if len(mark) < len(loss.Mark) {
			return true, errPacked
		}
		tags = mark[copy(loss.Mark[:], mark):]
	}
	for ; len(tags) > 0; tags = tags[tagSize:] {
		loss.Tags = append(loss.Tags, tagOf(tags))
	}
	*l = append(*l, loss)
	return true, nil
}

// tags returns the tags in the losses, each once.
func (l Losses) tags() (tags []uint32) {
	for i := range l {
		tags = append(tags, l[i].Tags...)
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

func tagOf(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

// Of returns the greatest timestamp of a record whose effect the series with a tag may lack; nil if it lacks none.
func (l Losses) Of(tag uint32) (until *int64) {
	for i := range l {
		if len(l[i].Tags) > 0 && !slices.Contains(l[i].Tags, tag) {
			continue
		}
		if until == nil || l[i].Until > *until {
			until = &l[i].Until
		}
	}
	return until
}

// Salvage is the part of a damaged key that can be kept.
type Salvage struct {
	Kept  []byte   // sections that can be read, without a header
	Tags  []uint32 // of the series that cannot be read; none if these are unknown
	Wrong error    // what is damaged; nil if nothing is
}

// Salvaged finds what can be kept of packed state: all sections of known series that can be read, and all of unknown
// ones. The bytes after a section without an end cannot be attributed to any series.
func Salvaged(packed []byte, known func(tag uint32) *state.Series) (s Salvage) {
	var found damage // by compactions
	broken := map[uint32]error{}
	states := map[uint32]State{}
	s.Wrong = Sections(packed, func(tag uint32, body []byte) error {
		if found.take(tag, body) {
			return nil
		}
		series := known(tag)
		if tag == LossTag {
			if _, err := new(Losses).Take(tag, body); err != nil {
				broken[tag] = err
			}
		}
		if _, err := ChildOf(tag, body); err != nil && IsEmbedding(tag) {
			broken[tag] = err
		}
		if series == nil || broken[tag] != nil {
			return nil
		}
		if states[tag] == nil {
			states[tag] = New(series)
		}
		err := states[tag].Merge(body)
		if err == nil {
			_, _, err = Entries(series, states[tag])
		}
		if err != nil {
			broken[tag] = fmt.Errorf("%w: in a section of series %s", err, series.ID)
		}
		return nil
	})
	for _, tag := range found.tags {
		broken[tag] = found.err(anyTag)
	}
	s.Wrong = cmp.Or(s.Wrong, broken[LossTag])
	if found.all {
		s.Wrong = cmp.Or(s.Wrong, found.err(anyTag))
	}
	if s.Wrong == nil {
		for tag, err := range broken {
			s.Wrong, s.Tags = err, append(s.Tags, tag)
		}
		slices.Sort(s.Tags)
	}
	_ = Sections(packed, func(tag uint32, body []byte) error {
		if broken[tag] == nil && tag != state.DamageTag {
			s.Kept = appendSection(s.Kept, tag, body)
		}
		return nil
	})
	return s
}

// AppendLoss appends the section of a loss.
func AppendLoss(dst []byte, l Loss) []byte { return appendSection(dst, LossTag, l.body()) }

func (l *Loss) body() []byte {
	body := fmt.Appendf(nil, "%0*d", LossMoment, l.Until)
	if l.Mark != (Mark{}) {
		body = append(append(body, markPrefix...), l.Mark[:]...)
	}
	for _, tag := range l.Tags {
		body = appendTag(body, tag)
	}
	return body
}

// PackLoss packs kept sections after a header, with a loss. The loss's moment, in LossMoment digits, belongs between
// before and after.
func PackLoss(kept []byte, l Loss, nonce Nonce) (before, after []byte) {
	body := l.body()
	before = appendSection(append(make([]byte, headerSize), kept...), LossTag, body)
	putHeader(before, len(before), nonce)
	at := len(before) - len(body)
	return before[:at], body[LossMoment:]
}

// unmark removes the marks of losses, because the state changes in a way that a running refill must not overwrite.
func unmark(packed []byte) {
	_ = Sections(packed, func(tag uint32, body []byte) error {
		if isMarked(tag, body) {
			clear(body[LossMoment:][:len(markPrefix)+len(Mark{})])
		}
		return nil
	})
}

// isMarked reports whether a section is a loss that waits for a refill.
func isMarked(tag uint32, body []byte) bool {
	var found Losses
	isLoss, err := found.Take(tag, body)
	return isLoss && err == nil && found[0].Mark != Mark{}
}

// Without returns the sections of packed state, except those with some tags, without a header.
func Without(packed []byte, gone func(tag uint32) bool) (left []byte) {
	_ = Sections(packed, func(tag uint32, body []byte) error {
		if !gone(tag) {
			left = appendSection(left, tag, body)
		}
		return nil
	})
	return left
}

// Refilled returns the result of a refill: the compacted state, and the losses that remain.
func Refilled(compacted []byte, lost Losses, nonce Nonce) []byte {
	packed := append(make([]byte, headerSize), Without(compacted, func(uint32) bool { return false })...)
	for _, l := range lost {
		packed = AppendLoss(packed, l)
	}
	putHeader(packed, len(packed), nonce)
	return packed
}

// HeaderSize is the length of the header of compacted state.
const HeaderSize = headerSize
