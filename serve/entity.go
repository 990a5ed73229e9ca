package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// nameEntities makes the texts of all entities, one for each key set.
func (q *question) nameEntities() error {
	for i, entity := range q.entities {
		// First keep the entity as sent, because fastjson unescapes in place what is read.
		q.echoes.bytes = entity.MarshalTo(q.echoes.bytes)
		q.echoes.end()
		if err := q.findValues(i, entity); err != nil {
			return err
		}
		values := q.values
		for s, set := range q.sets {
			start, lacks := len(q.texts.bytes), false
			for k, key := range set.keys {
				v, ok := q.valueOf(values[k], key)
				switch {
				case ok:
					q.texts.bytes = state.AppendEntity(q.texts.bytes, k == 0, v)
				case values[k] != nil && string(q.literal) == "null":
					lacks = true
				default:
					return q.badKey(i, s, key, values[k])
				}
			}
			if lacks {
				q.texts.bytes = q.texts.bytes[:start]
			}
			q.lacks = append(q.lacks, lacks)
			q.texts.end()
			values = values[len(set.keys):]
		}
	}
	q.findRepeated()
	return nil
}

// findRepeated finds for each entity the first one with the same texts. Its features do not depend
// on its other members.
func (q *question) findRepeated() {
	n := len(q.entities)
	q.first, q.written = slices.Grow(q.first[:0], n)[:n], slices.Grow(q.written[:0], n)[:n]
	if n == 1 {
		q.first[0] = 0
		return
	}
	if q.byHash == nil {
		q.byHash = map[uint64]int{}
	}
	clear(q.byHash)
	for e := range q.entities {
		q.first[e] = e
		var hash maphash.Hash
		hash.SetSeed(textSeed)
		for s := range q.sets {
			_, _ = hash.Write(q.text(e, s))
		}
		sum := hash.Sum64()
		first, ok := q.byHash[sum]
		if !ok {
			q.byHash[sum] = e
		} else if q.sameTexts(first, e) {
			q.first[e] = first
		}
	}
}

// textSeed hides which texts have the same hash.
var textSeed = maphash.MakeSeed()

// text returns the text of an entity for a key set.
func (q *question) text(entity, set int) []byte {
	from, to := q.texts.bounds(entity*len(q.sets) + set)
	return q.texts.bytes[from:to]
}

// lacksKey reports whether a key of a key set is null in an entity: then it has no text.
func (q *question) lacksKey(entity, set int) bool { return q.lacks[entity*len(q.sets)+set] }

func (q *question) sameTexts(a, b int) bool {
	for s := range q.sets {
		if q.lacksKey(a, s) != q.lacksKey(b, s) || !bytes.Equal(q.text(a, s), q.text(b, s)) {
			return false
		}
	}
	return true
}

// distinct returns the number of distinct entities; each is answered once.
func (q *question) distinct() (n int) {
	for e, first := range q.first {
		if e == first {
			n++
		}
	}
	return n
}

// findValues looks up the values of an entity's keys, nil for missing ones.
func (q *question) findValues(i int, entity *fastjson.Value) (err error) {
	n := 0
	for _, set := range q.sets {
		n += len(set.keys)
	}
	q.values = slices.Grow(q.values[:0], n)[:n]
	clear(q.values)
	entity.GetObject().Visit(func(name []byte, v *fastjson.Value) {
		n := 0
		for _, set := range q.sets {
			for _, key := range set.keys {
				if key.name == string(name) {
					if q.values[n] != nil && err == nil {
						e := duplicateKey(key.name, fmt.Sprintf("entity %d", i))
						e.Entity = &i
						err = e
					}
					q.values[n] = v
				}
				n++
			}
		}
	})
	return err
}

// badKey returns the error for a value that is missing or not of its key's type.
func (q *question) badKey(entity, set int, key key, v *fastjson.Value) error {
	feature := q.features[slices.Index(q.set, set)].Name
	var e *reply.Error
	if v == nil {
		e = reply.Errorf(reply.MissingKey, "entity %d has no key %q (%s), which feature %q needs", entity, key.name, key.typ, feature)
	} else {
		e = reply.Errorf(reply.WrongType, "key %q of entity %d must be %s for feature %q; %s is not%s", key.name, entity, key.want(), feature, show(v), key.lostPlus(v))
	}
	e.Feature, e.Key, e.Entity = feature, key.name, &entity
	return e
}

// want returns the JSON that the key's values must have, for messages.
func (k key) want() string {
	switch k.typ {
	case value.String:
		return "a string"
	case value.Bool:
		return "true or false"
	case value.Decimal:
		return fmt.Sprintf("a decimal with up to %d digits after the decimal point", k.scale)
	case value.Float:
		return "a number"
	case value.Timestamp:
		return "a time (milliseconds since 1970, or RFC 3339)"
	default:
		return "an integer"
	}
}

// valueOf reads a value of a key, valid until the next; false if it is not of the key's type. It must read JSON exactly
// as events are read, or the entity would not be found. So strings with escapes are left to encoding/json, because
// fastjson differs from it for half surrogate pairs.
func (q *question) valueOf(v *fastjson.Value, k key) (val value.Value, ok bool) {
	if v == nil {
		return val, false
	}
	q.literal = v.MarshalTo(q.literal[:0])
	val = value.Value{Type: k.typ, Scale: k.scale}
	c := q.literal[0]
	switch k.typ {
	case value.String:
		ok = c == '"'
		val.Str = unquoted(q.literal)
		if ok && bytes.IndexByte(val.Str, '\\') >= 0 {
			var text string
			ok = json.Unmarshal(q.literal, &text) == nil
			val.Str = []byte(text)
		}
	case value.Bool:
		ok = c == 't' || c == 'f'
		if c == 't' {
			val.Num = 1
		}
	case value.Timestamp:
		const first, last = -62135596800000, 253402300799999 // years 1 to 9999
		val.Num, ok = parseTime(q.literal)
		ok = ok && first <= val.Num && val.Num <= last
	case value.Decimal:
		val.Num, ok = parseDecimal(unquoted(q.literal), k.scale)
	case value.Int:
		val.Num, ok = parseDecimal(q.literal, 0)
	case value.Float: // only for members: entities have no floats
		var err error
		val.Flt, err = strconv.ParseFloat(string(q.literal), 64)
		val.Flt += 0 // there is no negative zero
		ok = (c == '-' || '0' <= c && c <= '9') && err == nil
	}
	return val, ok // locations are not supported
}

// unquoted returns the content of a JSON string, and any other JSON unchanged.
func unquoted(literal []byte) []byte {
	if literal[0] == '"' {
		return literal[1 : len(literal)-1]
	}
	return literal
}

// parseTime reads a time in JSON: milliseconds since 1970, or a string in RFC 3339.
func parseTime(literal []byte) (ms int64, ok bool) {
	if literal[0] != '"' {
		return parseDecimal(literal, 0)
	}
	var t time.Time
	err := t.UnmarshalText(unquoted(literal))
	return t.UnixMilli(), err == nil
}

// parseDecimal reads a JSON number as a multiple of 10^-scale; false if that is not exact or does
// not fit.
func parseDecimal(number []byte, scale uint8) (int64, bool) {
	if !json.Valid(number) || number[0] != '-' && (number[0] < '0' || number[0] > '9') {
		return 0, false
	}
	text, shift := string(number), int(scale)
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		exponent, err := strconv.Atoi(text[e+1:])
		if err != nil {
			return 0, false
		}
		text, shift = text[:e], shift+exponent
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	shift -= len(fraction)
	if strings.Trim(digits, "-0") == "" {
		return 0, true
	}
	for ; shift < 0; shift++ {
		if digits[len(digits)-1] != '0' {
			return 0, false
		}
		digits = digits[:len(digits)-1]
	}
	const tooMany = 20 // too many digits for an int64
	n, err := strconv.ParseInt(digits+strings.Repeat("0", min(shift, tooMany)), 10, 64)
	return n, err == nil
}
