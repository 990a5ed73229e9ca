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

// AppendNDJSON appends the event as a line of JSON: {"topic", "key", "value",
// "timestamp"}, the last that of the record in milliseconds. The value stands as it is where it is JSON, and as a string where it is
// poison that is not.
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

// jsonText is a text as a JSON string.
func jsonText(text []byte) []byte {
	s, _ := json.Marshal(string(text)) // a string always can be
	return s
}
