package packed

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-stream/weir/state"
)

// LossTag is the tag of a section that says what of the key was dropped, because
// it could not be read. No series has a tag that begins with a zero byte.
const LossTag = 1

// Loss says that state was dropped from a key: that of records whose timestamps go
// up to a moment. Packed it is the moment in LossMoment digits, then the tags.
type Loss struct {
	Until int64    // greatest timestamp of a record lost, in ms
	Tags  []uint32 // of the series concerned; none: all that the key may hold
}

// LossMoment is the number of digits of the moment of a packed loss.
const LossMoment = 16

// Losses are those of a key.
type Losses []Loss

// Take takes in a section if it is one of a loss, and says whether it is.
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
	loss := Loss{Until: until}
	for t := body[LossMoment:]; len(t) > 0; t = t[tagSize:] {
		loss.Tags = append(loss.Tags, tagOf(t))
	}
	*l = append(*l, loss)
	return true, nil
}

func tagOf(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

// Of is the greatest timestamp of a record of which the series with a tag may lack
// what it did, nil where it lacks none.
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

// Salvage is what can be kept of a damaged key.
type Salvage struct {
	Kept  []byte   // sections that can be read, without a header
	Tags  []uint32 // of the series that cannot; none: what was of which is not known
	Wrong error    // what is damaged; nil where nothing is
}

// Salvaged finds out what can be kept of packed state: all sections of the series
// that can be read, and of those that are not known. Where a section has no end,
// nobody can tell what the rest was of.
func Salvaged(packed []byte, known func(tag uint32) *state.Series) (s Salvage) {
	broken := map[uint32]error{}
	states := map[uint32]State{}
	s.Wrong = Sections(packed, func(tag uint32, body []byte) error {
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
	if s.Wrong == nil && broken[LossTag] == nil {
		for tag, err := range broken {
			s.Wrong, s.Tags = err, append(s.Tags, tag)
		}
		slices.Sort(s.Tags)
	} else if s.Wrong == nil {
		s.Wrong = broken[LossTag]
	}
	_ = Sections(packed, func(tag uint32, body []byte) error {
		if broken[tag] == nil {
			s.Kept = appendSection(s.Kept, tag, body)
		}
		return nil
	})
	return s
}

// PackLoss packs kept sections behind a header, and a loss whose moment is to stand
// between before and after, in LossMoment digits.
func PackLoss(kept []byte, tags []uint32, nonce Nonce) (before, after []byte) {
	for _, tag := range tags {
		after = appendTag(after, tag)
	}
	section := appendSection(nil, LossTag, append(make([]byte, LossMoment), after...))
	before = append(make([]byte, headerSize), kept...)
	before = append(before, section[:len(section)-LossMoment-len(after)]...)
	putHeader(before, len(before)+LossMoment+len(after), nonce)
	return before, after
}
