// Package reworded turns the errors of libraries into messages that say what was found and what to do.
package reworded

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// mistakes maps parts of encoding/json's messages to advice.
var mistakes = []struct{ part, advice string }{
	{"looking for beginning of object key string", "a key in double quotes is expected"},
	{"after object key:value pair", "a comma or a closing brace is expected"},
	{"after object key", "a colon is expected"},
	{"after array element", "a comma or a closing bracket is expected"},
	{"after top-level value", "there must be nothing after the first value"},
	{"in string", "a control character or an unknown escape is not allowed in text"},
	{"in numeric literal", "a number is written as 12, -0.5 or 1e3"},
	{"after decimal point", "a number is written as 12, -0.5 or 1e3"},
	{"in exponent", "a number is written as 12, -0.5 or 1e3"},
	{"in literal", "text must be in double quotes"},
	{"exceeded max depth", "values are nested too deeply"},
	{"looking for beginning of value", "a value is expected; text must be in double quotes"},
}

// JSON describes what is wrong with text that is not valid JSON, such as `'d' at byte 15: a value is expected; text
// must be in double quotes`.
func JSON(text []byte) string {
	var ignored json.RawMessage
	var syntax *json.SyntaxError
	err := json.Unmarshal(text, &ignored)
	if !errors.As(err, &syntax) || syntax.Offset < 1 {
		return "it is empty"
	}
	for _, m := range mistakes {
		if strings.Contains(syntax.Error(), m.part) {
			at := int(syntax.Offset) - 1
			found, _ := utf8.DecodeRune(text[at:])
			return fmt.Sprintf("%q at byte %d: %s", found, syntax.Offset, m.advice)
		}
	}
	return fmt.Sprintf("it ends too early, after byte %d", syntax.Offset)
}
