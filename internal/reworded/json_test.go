package reworded_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/reworded"
)

func TestJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": transaction}`: "'a' at byte 9: text must be in double quotes",
		`{"a": device}`:      "'d' at byte 7: a value is expected; text must be in double quotes",
		`{a: 1}`:             "'a' at byte 2: a key in double quotes is expected",
		`{"a" 1}`:            "'1' at byte 6: a colon is expected",
		`{"a": 1 "b": 2}`:    "'\"' at byte 9: a comma or a closing brace is expected",
		`[1 2]`:              "'2' at byte 4: a comma or a closing bracket is expected",
		`{} é`:               "'é' at byte 4: there must be nothing after the first value",
		`["\q"]`:             "'q' at byte 4: a control character or an unknown escape is not allowed in text",
		"[\"\n\"]":           "'\\n' at byte 3: a control character or an unknown escape is not allowed in text",
		`[-x]`:               "'x' at byte 3: a number is written as 12, -0.5 or 1e3",
		`[1.x]`:              "'x' at byte 4: a number is written as 12, -0.5 or 1e3",
		`[1ex]`:              "'x' at byte 4: a number is written as 12, -0.5 or 1e3",
		`{"a": [1`:           "it ends too early, after byte 8",
		``:                   "it is empty",

		strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001): "'[' at byte 10001: values are nested too deeply",
	} {
		if json.Valid([]byte(text)) {
			t.Errorf("%s is valid", text)
		}
		if got := reworded.JSON([]byte(text)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}
