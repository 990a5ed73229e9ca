package value

import (
	"testing"

	"pgregory.net/rapid"
)

// A text is shortened once: answers name values by the short form, and asked about, it must be the same value.
func TestShortenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(LeastMaxText, 300).Draw(t, "most")
		text := []byte(rapid.StringN(0, 400, 600).Draw(t, "text"))
		short := Shorten(nil, text, most)
		if len(short) > most || len(text) <= most && string(short) != string(text) {
			t.Fatalf("%q of at most %d bytes is %q", text, most, short)
		}
		if again := Shorten(nil, short, most); string(again) != string(short) {
			t.Fatalf("%q is shortened to %q, and that to %q", text, short, again)
		}
	})
}
