package reply

import (
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/internal/spelling"
)

// At says which key of a question or of an entity an error is about, and returns the error.
func (e *Error) At(key string) *Error {
	e.Key = key
	return e
}

// Unlike says which key is not among the known ones, and which of them was perhaps meant, and returns the error.
func (e *Error) Unlike(key string, known []string) *Error {
	e.Key, e.Nearest = key, spelling.Nearest(key, known)
	return e
}

// About says which feature an error is about, and returns the error.
func (e *Error) About(feature string) *Error {
	e.Feature = feature
	return e
}

// InEntity says which of a question's entities an error is about, by its index, and returns the error.
func (e *Error) InEntity(i int) *Error {
	e.Entity = &i
	return e
}

// InEvent says which of a question's pending events an error is about, by its index, and returns the error.
func (e *Error) InEvent(i int) *Error {
	e.Event = &i
	return e
}

// Duplicate returns the error for a key that appears twice.
func Duplicate(key, where string) *Error {
	return Errorf(DuplicateKey, "key %s appears twice in %s", Quote(key), where).At(key)
}

// NoKey returns the error for a key that an object cannot have. There are at least two that it can.
func NoKey(what, key string, known []string) *Error {
	last := len(known) - 1
	return Errorf(UnknownKey, "%s has no key %s; its keys are %s and %s", what, Quote(key), strings.Join(known[:last], ", "), known[last]).Unlike(key, known)
}

// LostPlus refuses a text in the query of a URL whose first byte is a + before a digit, as of a phone number: it means a space
// there, and nothing would be found. It is nil if there is none; isText reports whether a parameter is a text.
func LostPlus(query string, isText func(parameter string) bool) *Error {
	for pair := range strings.SplitSeq(query, "&") {
		name, text, _ := strings.Cut(pair, "=")
		if len(text) < 2 || text[0] != '+' || text[1] < '0' || text[1] > '9' {
			continue
		}
		if name, err := url.QueryUnescape(name); err == nil && isText(name) {
			return Errorf(MalformedQuery, "parameter %s begins with a space: in a URL + is written %%2B, and a space %%20", Quote(name)).At(name)
		}
	}
	return nil
}

// Given returns nil for null, which many clients write for absent values.
func Given(v *fastjson.Value) *fastjson.Value {
	if v != nil && v.Type() == fastjson.TypeNull {
		return nil
	}
	return v
}

// Fields finds the values of an object's keys, each at its key's index; nil for missing ones and null. what names the
// object in errors.
func Fields(object *fastjson.Object, what string, keys []string, values []*fastjson.Value) (e *Error) {
	object.Visit(func(k []byte, v *fastjson.Value) {
		i := slices.IndexFunc(keys, func(key string) bool { return key == string(k) })
		switch {
		case e != nil:
		case i < 0:
			e = NoKey(what, string(k), keys)
		case values[i] != nil:
			e = Duplicate(string(k), what)
		default:
			values[i] = v
		}
	})
	for i, v := range values {
		values[i] = Given(v)
	}
	return e
}

// Wrong returns the error for a part of a question that has another type than wanted.
func Wrong(key, want string, v *fastjson.Value) *Error {
	return Errorf(WrongType, "%s must be %s; %s is not", key, want, Show(v)).At(key)
}

// WrongItem is Wrong for an item of a list or an object.
func WrongItem(key, want string, v *fastjson.Value) *Error {
	e := Wrong(key, want, v)
	e.Message += " one"
	return e
}

// TooMany returns the error for a question that asks for more values than are answered at once.
func TooMany(what string, entities, most int) *Error {
	return Errorf(TooManyValues, "%s for %d entities are more than the %d values that one question may ask for", what, entities, most)
}

// Show formats a value that a client sent.
func Show(v *fastjson.Value) string {
	switch v.Type() {
	case fastjson.TypeObject:
		return "an object"
	case fastjson.TypeArray:
		return "a list"
	case fastjson.TypeString:
		return Quote(string(v.GetStringBytes()))
	default:
		short, dots := Shorten(v.String()) // a number, true, false or null
		return short + dots
	}
}
