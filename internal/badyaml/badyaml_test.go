package badyaml

import (
	"errors"
	"fmt"
	"testing"
)

func TestAt(t *testing.T) {
	const indented = "did not find expected key; check the indentation and the quotes"
	for _, c := range []struct{ text, want string }{
		{"a: b: c", "1: mapping values are not allowed in this context; check the indentation, and quote a text that contains a colon and a space"},
		{"a:\n  b: c\n   d: e\n", "3: mapping values are not allowed in this context; check the indentation, and quote a text that contains a colon and a space"},
		{"a:\n  b: c\n  d: e\n f: g\n  h: i\n", "4: " + indented},
		{"a:\n  b:\n    - c\n   d: e\n", "4: " + indented},
		{"# text\n\na:\n  b: {c: d,\n    e: f}\n  g: \"h\n    i\"\n j: k\nl: m\n", "8: " + indented},
		{"a: 'it's'\nb: c\n", "1: " + indented},
		{"a:\n  - b\n  - c\n  d: e\n", "4: did not find expected '-' indicator; check the indentation and the quotes"},
		{"a: 1\n---\nb:\n  c: d\n e: f\n", "5: " + indented},
		{"a:\n\tb: c\n", "2: found a tab; indent with spaces"},
		{"a:\n  b: c\n  \td: e\n", "3: found a tab character that violates indentation; indent with spaces"},
		{"a: b\nc: @d\n", "2: found character that cannot start any token; quote a text that begins with @, % or a backquote"},
		{"a: b\nc:d\n", "2: could not find expected ':'; write a colon and a space after a key"},
		{"a:\n  b:c\n\n  e: f\ng: h\n", "2: could not find expected ':'; write a colon and a space after a key"},
		{"a: b\n  c: d\n", "2: mapping values are not allowed in this context; check the indentation, and quote a text that contains a colon and a space"},
		{"a:\n  b: {c: d(e, f=[g])}\nh: i\n", "2: did not find expected ',' or '}'; close the brackets or braces, and quote a text that contains any of , [ ] { }"},
		{"a: b\nc: \"d\ne: f\ng: h\n", "2: found unexpected end of stream; a quote that opens here is not closed"},
		{"\n\na:\n  b: [", "4: did not find expected node content; close the brackets or braces, and quote a text that contains any of , [ ] { }"},
		{"a:\n  b: {\n\n\n", "2: did not find expected node content; close the brackets or braces, and quote a text that contains any of , [ ] { }"},
		{"a: [b,,c]\nd: e\n", "1: did not find expected node content; close the brackets or braces, and quote a text that contains any of , [ ] { }"},
		{"a: b\nc: *D(e)\n", "2: did not find expected alphabetic or numeric character; quote a text that begins with * or &"},
		{"a: b\nc: \"\\d\"\n", "2: found unknown escape character; within double quotes a backslash is written twice; single quotes leave it alone"},
		{"a: b\nc: *d\n", "2: unknown anchor 'd' referenced"},
		{"a: b\nc: d\n# \xff\n", "3: invalid leading UTF-8 octet"},
		{"a: b\nc: \x01\n", "2: control characters are not allowed"},
	} {
		line, why := At([]byte(c.text), read([]byte(c.text)))
		if got := fmt.Sprintf("%d: %s", line, why); got != c.want {
			t.Errorf("%q\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
	if line, why := At(nil, errors.New("odd")); line != 1 || why != "odd" {
		t.Errorf("another error: %d: %s", line, why)
	}
}
