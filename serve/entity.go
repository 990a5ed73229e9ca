package serve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/features/kinds"
)

// identify writes the texts of all entities, one for each key set.
func (q *question) identify() error {
	for i, entity := range q.entities {
		// As sent, and first: fastjson unescapes in place what is looked at.
		q.echoes.bytes = entity.MarshalTo(q.echoes.bytes)
		q.echoes.end()
		if err := q.find(i, entity); err != nil {
			return err
		}
		values := q.values
		for s, set := range q.sets {
			for k, key := range set.keys {
				v, ok := valueOf(values[k], key)
				if !ok {
					return q.badKey(i, s, key, values[k])
				}
				q.texts.bytes = kinds.AppendEntity(q.texts.bytes, k == 0, v)
			}
			q.texts.end()
			values = values[len(set.keys):]
		}
	}
	return nil
}

// find looks up the values of an entity's keys, nil where there is none.
func (q *question) find(i int, entity *fastjson.Value) (err error) {
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

// badKey is the error for a value that is not there or not of its key's type.
func (q *question) badKey(entity, set int, key key, v *fastjson.Value) error {
	feature := q.plans[slices.Index(q.set, set)].Name
	var e *Error
	switch {
	case v == nil:
		e = errorf(MissingKey, "entity %d has no key %q (%s), which feature %q needs", entity, key.name, key.typ, feature)
	case v.Type() == fastjson.TypeNull:
		e = errorf(MissingKey, "key %q (%s) of entity %d is null, but feature %q needs it", key.name, key.typ, entity, feature)
	default:
		e = errorf(WrongType, "key %q of entity %d must be %s for feature %q; %s is not", key.name, entity, key.want(), feature, show(v))
	}
	e.Feature, e.Key, e.Entity = feature, key.name, &entity
	return e
}

// want says which JSON a value of the key is.
func (k key) want() string {
	switch k.typ {
	case kinds.String:
		return "a string"
	case kinds.Int:
		return "an integer"
	case kinds.Float:
		return "a number"
	case kinds.Decimal:
		return fmt.Sprintf("a number with up to %d digits behind the point", k.scale)
	case kinds.Bool:
		return "true or false"
	case kinds.Timestamp:
		return "a time in milliseconds"
	default:
		return "of type " + k.typ.String()
	}
}

// valueOf reads a value of a key; false if it is not of the key's type.
func valueOf(v *fastjson.Value, k key) (value kinds.Value, ok bool) {
	if v == nil {
		return value, false
	}
	value = kinds.Value{Type: k.typ, Scale: k.scale}
	t := v.Type()
	switch k.typ {
	case kinds.String:
		value.Str = v.GetStringBytes()
		return value, t == fastjson.TypeString
	case kinds.Bool:
		if t == fastjson.TypeTrue {
			value.Num = 1
		}
		return value, t == fastjson.TypeTrue || t == fastjson.TypeFalse
	}
	if t != fastjson.TypeNumber {
		return value, false
	}
	var err error
	switch text := v.String(); k.typ {
	case kinds.Int, kinds.Timestamp:
		value.Num, err = strconv.ParseInt(text, 10, 64)
	case kinds.Decimal:
		value.Num, err = parseDecimal(text, k.scale)
	case kinds.Float:
		value.Flt, err = strconv.ParseFloat(text, 64)
	default:
		return value, false
	}
	return value, err == nil
}

// parseDecimal reads a number without exponent as a multiple of 10^-scale. It
// does not round: a number with more digits names no entity.
func parseDecimal(text string, scale uint8) (int64, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	fraction = strings.TrimRight(fraction, "0")
	missing := int(scale) - len(fraction)
	if missing < 0 {
		return 0, strconv.ErrRange
	}
	return strconv.ParseInt(whole+fraction+strings.Repeat("0", missing), 10, 64)
}
