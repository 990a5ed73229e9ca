package definition

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
)

func line(text string) word {
	return word{text: text, location: location{file: "f", line: 1, column: 1}, inner: true}
}

func TestParseCall(t *testing.T) {
	c, err := parseCall(line(` sum ( 7d ,tx,amount , user, where = 'a == "b"', description="it's \"金\"\n", keep=1d ) `))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.function.text}
	for _, a := range c.arguments {
		got = append(got, a.text)
	}
	for _, o := range c.options {
		got = append(got, o.name.text+"="+o.value.text)
	}
	want := []string{"sum", "7d", "tx", "amount", "user", `where=a == "b"`, "description=it's \"金\"\n", "keep=1d"}
	if strings.Join(got, "·") != strings.Join(want, "·") {
		t.Errorf("got %q, want %q", got, want)
	}
	if at := c.options[2].value.location.column; at != 83 {
		t.Errorf("the last value is at column %d, want 83", at)
	}
}

func TestQuoteRoundTrip(t *testing.T) {
	for _, text := range []string{"", "plain", `a "b"`, "it's", "a\nb", `back\slash`, `'"\`, "金额", "\x00\u2028"} {
		c, err := parseCall(line("F(a=" + quote(text) + ")"))
		if err != nil || c.options[0].value.text != text {
			t.Errorf("%q is written %s and read back as %+v (%v)", text, quote(text), c.options, err)
		}
	}
}

// FuzzOneLine: no text breaks the parser, its locations lie within the text, and each feature is the same as the one
// that its canonical form defines.
func FuzzOneLine(f *testing.F) {
	for _, seed := range []string{
		"COUNT(7d, tx, user)", `SUM(1d, tx, amount, user, where="ok == true", keep=1d)`,
		"COUNT_DISTINCT(30d, tx, device, user, method=last_seen, max=3)", "COUNT(lifetime, tx, ip_b, user, where='ip != \"\\\\\"')",
		"F(", "F(a=", "F('", `F("\`, "F(a, b=c, d)", "F()(", "",
	} {
		f.Add(seed)
	}
	streams, err := parse(testStreams(f) + "  f: COUNT(7d, tx, user)\n")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseCall(line(text)); err != nil {
			bad, ok := errors.AsType[*syntaxError](err)
			if !ok || bad.offset < 0 || bad.offset > len(text) || bad.message == "" {
				t.Fatalf("unexpected error %#v", err)
			}
		}
		l := newLoader()
		l.streams.registry.Streams = streams.Streams
		w := line(text)
		feature := l.define(&writtenFeature{name: line("f"), location: w.location}, func(d *writtenFeature) aggregate.Function { return l.oneLine(d, w) })
		for _, finding := range l.findings {
			if finding.Column < 1 || finding.Column > len([]rune(text))+1 {
				t.Fatalf("%s lies outside of %q", finding, text)
			}
		}
		if feature != nil {
			l.streams.registry.Features = []*features.Feature{feature}
			checkRoundTrip(t, l.streams.registry)
		}
	})
}

// A no-break space is no space between words: it is what a value begins with.
func TestNoBreakSpaces(t *testing.T) {
	for _, space := range []string{"\u00a0", "\u3000", "\u00a0\u00a0"} {
		_, err := parseCall(line("COUNT(1h, tx, user, where=" + space + "'amount > 3')"))
		if want := "put the value of where in quotes"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want that it says %q", space, err, want)
		}
	}
}
