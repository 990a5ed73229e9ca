package value

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// spaces are often none, and often more than is kept.
var spaces = rapid.OneOf(rapid.Just(""), rapid.Just(strings.Repeat(" ", 400)), rapid.StringMatching("[ \t\u00a0]{0,9}"))

// White space hides nothing of a text that is shortened.
func TestHeadOfShortened(t *testing.T) {
	long := strings.Repeat(" ", 300)
	for text, want := range map[string]string{
		long + "10.1.2.3":            "10.1.2.3",
		"\t" + long + "10.1.2.3, 5":  "10.1.2.3, 5",
		"10.1.2.3" + long:            "10.1.2.3" + long[:MaxText-hashText-len("10.1.2.3")],
		"10.1.2.3":                   "10.1.2.3",
		" 10.1.2.3~":                 " 10.1.2.3~",
		long:                         "",
		"":                           "",
		strings.Repeat("~", MaxText): strings.Repeat("~", MaxText-hashText),
	} {
		if got := string(Head(Shorten(nil, []byte(text), MaxText))); got != want {
			t.Errorf("%q begins with %q, want %q", text, got, want)
		}
	}
}

// A text is shortened once: answers name values by the short form, and asked about, it must be the same value.
func TestShortenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(LeastMaxText, 300).Draw(t, "most")
		text := []byte(spaces.Draw(t, "before") + rapid.StringN(0, 400, 600).Draw(t, "text"))
		short := Shorten(nil, text, most)
		if len(short) > most || len(text) <= most && string(short) != string(text) {
			t.Fatalf("%q of at most %d bytes is %q", text, most, short)
		}
		if again := Shorten(nil, short, most); string(again) != string(short) {
			t.Fatalf("%q is shortened to %q, and that to %q", text, short, again)
		}
	})
}

// A text is the same value as any short form of it, and as no other text.
func TestSameText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(spaces.Draw(t, "before") + rapid.StringN(0, 400, 600).Draw(t, "text"))
		short := Shorten(nil, text, rapid.IntRange(LeastMaxText, 300).Draw(t, "most"))
		other := slices.Clone(text)
		if len(text) > 0 {
			other[rapid.IntRange(0, len(text)-1).Draw(t, "at")] ^= 1
		}
		for _, c := range []struct {
			a, b []byte
			want bool
		}{
			{text, short, true}, {short, text, true}, {text, text, true}, {short, short, true},
			{other, short, len(text) == 0}, {short, other, len(text) == 0}, {other, text, len(text) == 0},
			{append(slices.Clone(text), '~'), short, false}, {short, append(slices.Clone(text), 'x'), false},
		} {
			if got := SameText(c.a, c.b); got != c.want {
				t.Fatalf("%q and %q are the same: %t", c.a, c.b, got)
			}
			sought := Sought{Text: c.a}
			for range 2 {
				if got := sought.Is(c.b); got != c.want {
					t.Fatalf("%q is %q: %t", c.a, c.b, got)
				}
			}
		}
	})
}

// A short form has the hash and the length that Shorten gives it.
func TestNotTheSameText(t *testing.T) {
	text := []byte(strings.Repeat("ä", 200))
	short := Shorten(nil, text, MaxText)
	for name, other := range map[string][]byte{
		"no mark":                     []byte(strings.Replace(string(short), "~", "-", 1)),
		"another hash":                append(slices.Clone(short[:len(short)-1]), '-'),
		"half a character":            append(slices.Clone(text[:101]), short[len(short)-hashText:]...),
		"only the beginning":          text[:200],
		"nothing":                     nil,
		"a short form of itself":      Shorten(nil, short, LeastMaxText),
		"less than a hash":            short[len(short)-hashText+1:],
		"of a text that begins alike": Shorten(nil, append(slices.Clone(text), 'x'), MaxText),
	} {
		if SameText(text, other) || SameText(other, text) {
			t.Errorf("%s: %q is the same", name, other)
		}
	}
}

func TestSameTextTakesNoMemory(t *testing.T) {
	text := []byte(strings.Repeat("m", 300))
	short := Shorten(nil, text, MaxText)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = SameText(text, short), SameText(short, text[:299])
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
