package packed

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/state"
)

// State that cannot be read is dropped when its key is compacted, and a section with the tag state.DamageTag notes
// that, until an operator drops the note. So damage stays visible after more is appended, and a key with damage is as
// short as any other.
//
//	body  number of tags (varint), tags, what was found wrong
//
// Without tags the note concerns everything in the key, children included: nobody can tell which sections followed one
// without an end.

// damage lists the parts of a key, or of an embedded child, that could not be read.
type damage struct {
	all   bool     // everything
	tags  []uint32 // of series, or of embedded children
	wrong string   // the first error found
}

const (
	// maxDamagedTags bounds the tags of a note. Beyond that, it concerns everything.
	maxDamagedTags = 100
	// maxWrong bounds the error in a note.
	maxWrong = 120
)

// take adds the damage of a section if the section is a note of damage, and reports whether it is.
func (d *damage) take(tag uint32, body []byte) (isDamage bool) {
	if tag != state.DamageTag {
		return false
	}
	r := decoder{packed: body}
	n := r.uvarint()
	tags := r.bytes(min(n, maxDamagedTags+1) * tagSize)
	wrong := fmt.Errorf("%w: %s", errPacked, body[r.at:])
	if r.err != nil || n == 0 || n > maxDamagedTags {
		d.addAll(wrong)
	}
	for ; len(tags) > 0; tags = tags[tagSize:] {
		d.add(tagOf(tags), wrong)
	}
	return true
}

// add adds that the sections with a tag cannot be read.
func (d *damage) add(tag uint32, wrong error) {
	d.note(wrong)
	if !d.has(tag) {
		d.tags = append(d.tags, tag)
	}
	if len(d.tags) > maxDamagedTags {
		d.addAll(wrong)
	}
}

// addAll adds that everything may be damaged.
func (d *damage) addAll(wrong error) {
	d.note(wrong)
	d.all = true
}

func (d *damage) note(wrong error) {
	if d.wrong == "" {
		d.wrong = strings.TrimPrefix(wrong.Error(), errPacked.Error()+": ")
		d.wrong = d.wrong[:min(len(d.wrong), maxWrong)]
	}
}

// has reports whether the sections with a tag cannot be read.
func (d *damage) has(tag uint32) bool { return slices.Contains(d.tags, tag) }

// err returns the error of a read that needs the sections with some tags; nil if these are sound.
func (d *damage) err(of func(tag uint32) bool) error {
	if d.all || slices.ContainsFunc(d.tags, of) {
		return fmt.Errorf("%w: %s", errPacked, d.wrong)
	}
	return nil
}

// append appends the note, without tags that are garbage; nothing if there is no damage.
func (d *damage) append(dst []byte, garbage func(tag uint32) bool) []byte {
	var tags []uint32
	if !d.all {
		if tags = slices.DeleteFunc(slices.Clone(d.tags), garbage); len(tags) == 0 {
			return dst
		}
	}
	body := binary.AppendUvarint(nil, uint64(len(tags)))
	for _, tag := range tags {
		body = appendTag(body, tag)
	}
	return appendSection(dst, state.DamageTag, append(body, d.wrong...))
}

func anyTag(uint32) bool { return true }

// whole returns the sections of packed state, which may begin with a header, up to one without an end, followed by a
// note of that. So sections that are appended are not taken for a part of it.
func whole(packed []byte) []byte {
	end, err := walk(packed, headerEnd(packed), func(uint32, []byte) error { return nil })
	if err == nil {
		return packed
	}
	var d damage
	d.addAll(err)
	return d.append(slices.Clip(packed[:end]), nil)
}
