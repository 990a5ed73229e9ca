package generate

import (
	"encoding/json"
	"strconv"
)

// object is a JSON object whose members keep their order.
type object []member

// member is a name and a value in JSON.
type member struct{ name, value string }

// set replaces a member's value, and reports whether the member exists.
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

// quoted returns a JSON string; the text must need no escapes.
func quoted(text []byte) string { return `"` + string(text) + `"` }

// numbered returns a number with at least that many digits, after a letter if that is not 0.
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

// AppendNDJSON appends the event as a line of JSON: {"topic", "key", "value", "timestamp"}, with
// the record's timestamp in milliseconds. A value that is valid JSON is written as it is, any other
// as a string.
func AppendNDJSON(dst []byte, e Event) []byte {
	value := e.Value
	if !json.Valid(value) {
		value = jsonText(value)
	}
	dst = append(append(dst, `{"topic":`...), jsonText([]byte(e.Topic))...)
	dst = append(append(dst, `,"key":`...), jsonText(e.Key)...)
	dst = append(append(dst, `,"value":`...), value...)
	dst = strconv.AppendInt(append(dst, `,"timestamp":`...), e.Timestamp, 10)
	return append(dst, '}', '\n')
}

// jsonText returns text as a JSON string.
func jsonText(text []byte) []byte {
	s, _ := json.Marshal(string(text)) // cannot fail for a string
	return s
}
