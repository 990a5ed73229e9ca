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

// entities are those of a question.
type entities struct {
	sent []*fastjson.Value
	// echoes are the entities as sent. texts are their texts: the text of entity e for set s is at e*sets+s.
	echoes, texts spans
	sets          int    // the number of key sets
	lacks         []bool // like texts: a key is null, so there is nothing to ask
	// first is, by entity, the first entity with the same texts, which may be itself. Only that one is answered.
	first []int

	values  []*fastjson.Value // of one entity, by set and key
	literal []byte            // one value as sent
	byHash  map[uint64]int    // the first entity with texts of a hash
}

func (e *entities) emptied() entities {
	return entities{
		sent: emptied(e.sent), echoes: e.echoes.emptied(), texts: e.texts.emptied(), lacks: e.lacks[:0], first: e.first[:0],
		values: emptied(e.values), literal: e.literal[:0], byHash: e.byHash,
	}
}

// name makes the texts of all entities, one for each key set.
func (e *entities) name(s *selection) error {
	e.sets = len(s.sets)
	for i, entity := range e.sent {
		// First keep the entity as sent, because fastjson unescapes in place what is read.
		e.echoes.bytes = entity.MarshalTo(e.echoes.bytes)
		e.echoes.end()
		if err := e.findValues(i, entity, s.sets); err != nil {
			return err
		}
		values := e.values
		for n, set := range s.sets {
			start, lacks := len(e.texts.bytes), false
			for k, key := range set.keys {
				v, ok := values[k], false
				if v != nil {
					e.literal = v.MarshalTo(e.literal[:0])
					var val value.Value
					if val, ok = valueOf(e.literal, key); ok {
						e.texts.bytes = state.AppendEntity(e.texts.bytes, k == 0, val)
					}
				}
				switch {
				case ok:
				case v != nil && reply.Given(v) == nil:
					lacks = true
				default:
					return key.bad(i, s.features[slices.Index(s.set, n)].Name, v)
				}
			}
			if lacks {
				e.texts.bytes = e.texts.bytes[:start]
			}
			e.lacks = append(e.lacks, lacks)
			e.texts.end()
			values = values[len(set.keys):]
		}
	}
	e.findRepeated()
	return nil
}

// findRepeated finds for each entity the first one with the same texts. Its features do not depend
// on its other members.
func (e *entities) findRepeated() {
	n := len(e.sent)
	e.first = slices.Grow(e.first[:0], n)[:n]
	if n == 1 {
		e.first[0] = 0
		return
	}
	if e.byHash == nil {
		e.byHash = map[uint64]int{}
	}
	clear(e.byHash)
	for i := range e.sent {
		e.first[i] = i
		var hash maphash.Hash
		hash.SetSeed(textSeed)
		for s := range e.sets {
			_, _ = hash.Write(e.text(i, s))
		}
		sum := hash.Sum64()
		first, ok := e.byHash[sum]
		if !ok {
			e.byHash[sum] = i
		} else if e.sameTexts(first, i) {
			e.first[i] = first
		}
	}
}

// distinguish makes each entity one of its own, also those with the same texts.
func (e *entities) distinguish() {
	for i := range e.first {
		e.first[i] = i
	}
}

// textSeed hides which texts have the same hash.
var textSeed = maphash.MakeSeed()

// text returns the text of an entity for a key set.
func (e *entities) text(entity, set int) []byte {
	from, to := e.texts.bounds(entity*e.sets + set)
	return e.texts.bytes[from:to]
}

// lacksKey reports whether a key of a key set is null in an entity: then it has no text.
func (e *entities) lacksKey(entity, set int) bool { return e.lacks[entity*e.sets+set] }

func (e *entities) sameTexts(a, b int) bool {
	for s := range e.sets {
		if e.lacksKey(a, s) != e.lacksKey(b, s) || !bytes.Equal(e.text(a, s), e.text(b, s)) {
			return false
		}
	}
	return true
}

// distinct returns the number of distinct entities; each is answered once.
func (e *entities) distinct() (n int) {
	for i, first := range e.first {
		if i == first {
			n++
		}
	}
	return n
}

// findValues looks up the values of an entity's keys, nil for missing ones.
func (e *entities) findValues(i int, entity *fastjson.Value, sets []*keySet) (err error) {
	n := 0
	for _, set := range sets {
		n += len(set.keys)
	}
	e.values = slices.Grow(e.values[:0], n)[:n]
	clear(e.values)
	entity.GetObject().Visit(func(name []byte, v *fastjson.Value) {
		n := 0
		for _, set := range sets {
			for _, key := range set.keys {
				if key.name == string(name) {
					if e.values[n] != nil && err == nil {
						err = reply.Duplicate(key.name, fmt.Sprintf("entity %d", i)).InEntity(i)
					}
					e.values[n] = v
				}
				n++
			}
		}
	})
	return err
}

// bad returns the error for a value that an entity lacks, or that is not of the key's type.
func (k key) bad(entity int, feature string, v *fastjson.Value) error {
	var e *reply.Error
	if v == nil {
		e = reply.Errorf(reply.MissingKey, "entity %d has no key %q (%s), which feature %q needs", entity, k.name, k.typ, feature)
	} else {
		e = reply.Errorf(reply.WrongType, "key %q of entity %d must be %s for feature %q; %s is not%s", k.name, entity, k.want(), feature, reply.Show(v), k.lostPlus(v))
	}
	return e.About(feature).At(k.name).InEntity(entity)
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

// valueOf reads a value of a key, which may point into the literal; false if it is not of the key's type. It must read JSON exactly
// as events are read, or the entity would not be found. So strings with escapes are left to encoding/json, because
// fastjson differs from it for half surrogate pairs.
func valueOf(literal []byte, k key) (val value.Value, ok bool) {
	val = value.Value{Type: k.typ, Scale: k.scale}
	c := literal[0]
	switch k.typ {
	case value.String:
		ok = c == '"'
		val.Str = unquoted(literal)
		if ok && bytes.IndexByte(val.Str, '\\') >= 0 {
			var text string
			ok = json.Unmarshal(literal, &text) == nil
			val.Str = []byte(text)
		}
	case value.Bool:
		ok = c == 't' || c == 'f'
		if c == 't' {
			val.Num = 1
		}
	case value.Timestamp:
		const first, last = -62135596800000, 253402300799999 // years 1 to 9999
		val.Num, ok = parseTime(literal)
		ok = ok && first <= val.Num && val.Num <= last
	case value.Decimal:
		val.Num, ok = parseDecimal(unquoted(literal), k.scale)
	case value.Int:
		val.Num, ok = parseDecimal(literal, 0)
	case value.Float: // only for members: entities have no floats
		var err error
		val.Flt, err = strconv.ParseFloat(string(literal), 64)
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
