package generate

import (
	"encoding/json"
	"strconv"
)

// object is a JSON object whose members keep their order.
type object []member

// member is a name and a value in JSON.
type member struct{ name, value string }

// set gives a member another value, and says whether there is one.
func (o object) set(name, value string) bool {
	for i := range o {
		if o[i].name == name {
			o[i].value = value
			return true
		}
	}
	return false
}

func (o object) json() []byte {
	dst := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '"')
		dst = append(dst, m.name...)
		dst = append(dst, '"', ':')
		dst = append(dst, m.value...)
	}
	return append(dst, '}')
}

// quoted is a JSON string of text that needs no escapes.
func quoted(text []byte) string { return `"` + string(text) + `"` }

// numbered is a number with at least so many digits, behind a letter if that
// is not 0.
func numbered(letter byte, digits, n int) []byte {
	var dst []byte
	if letter != 0 {
		dst = append(dst, letter)
	}
	text := strconv.Itoa(n)
	for range digits - len(text) {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}

// AppendNDJSON appends the event as a line of JSON: {"topic", "key", "value"},
// all of them strings, since a value may be poison and no JSON itself.
func AppendNDJSON(dst []byte, e Event) []byte {
	for i, part := range []string{`{"topic":`, e.Topic, `,"key":`, string(e.Key), `,"value":`, string(e.Value)} {
		if i%2 == 0 {
			dst = append(dst, part...)
			continue
		}
		text, _ := json.Marshal(part) // a string always can be
		dst = append(dst, text...)
	}
	return append(dst, '}', '\n')
}
