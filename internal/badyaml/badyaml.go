// Package badyaml says where a text is not YAML, and what to do.
package badyaml

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// advice maps beginnings of the library's messages to what to do about them.
var advice = []struct{ start, do string }{
	{valueInText, "check the indentation, and quote a text that contains a colon and a space"},
	{"did not find expected key", "check the indentation and the quotes"},
	{"did not find expected '-' indicator", "check the indentation and the quotes"},
	{"could not find expected ':'", colon},
	{"did not find expected ',' or", brackets},
	{"did not find expected node content", brackets},
	{"found a tab character", "indent with spaces"},
	{tokenless, "quote a text that begins with @, % or a backquote"},
	{unclosed, "a quote that opens here is not closed"},
	{"found unknown escape character", "within double quotes a backslash is written twice; single quotes leave it alone"},
	{"did not find expected alphabetic", "quote a text that begins with * or &"},
}

const (
	valueInText = "mapping values are not allowed"
	brackets    = "close the brackets or braces, and quote a text that contains any of , [ ] { }"
	colon       = "write a colon and a space after a key"
	tokenless   = "found character that cannot start any token"
	unclosed    = "found unexpected end of stream"
)

var (
	message = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)
	// fromZero matches errors of the library's parser, which counts lines from 0; its scanner counts them from 1.
	fromZero = regexp.MustCompile(`^did not find expected (',' or|key|'-' indicator|<|node content)`)
	// elsewhere matches those that come with the line where the mapping, list or text begins or ends, not with the one that
	// is wrong.
	elsewhere = regexp.MustCompile(`^(did not find expected (key|'-' indicator)|found a tab character|` + unclosed + `)`)
	// unplaced matches those that come without a line, and names what is wrong.
	unplaced = regexp.MustCompile(`^unknown anchor '(.*)' referenced|control characters are not allowed|invalid .*UTF-8`)
)

// At returns the line, from 1, at which a text is not YAML, and why, from an error that the library has for it.
func At(text []byte, err error) (line int, why string) {
	line, why = 1, err.Error()
	parts := message.FindStringSubmatch(why)
	if parts == nil {
		return line, why
	}
	why = parts[2]
	if n, err := strconv.Atoi(parts[1]); err == nil {
		line = n
		if fromZero.MatchString(why) {
			line++
		}
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	// An error at the end of the text is at its last line, not at the empty one below.
	line = max(1, min(line, 1+bytes.Count(bytes.TrimRight(text, " \t\r\n"), []byte("\n"))))
	if elsewhere.MatchString(why) {
		line = firstWrong(lines, why)
	}
	if found := unplaced.FindStringSubmatch(why); found != nil {
		line = 1 + max(0, slices.IndexFunc(lines, func(l []byte) bool { return hasUnplaced(l, found[1]) }))
	}
	if strings.HasPrefix(why, valueInText) {
		if n, found := keyless(lines, line); found {
			return n, "could not find expected ':'; " + colon
		}
	}
	if strings.HasPrefix(why, tokenless) && line <= len(lines) && bytes.HasPrefix(bytes.TrimLeft(lines[line-1], " "), []byte("\t")) {
		return line, "found a tab; indent with spaces"
	}
	for _, a := range advice {
		if strings.HasPrefix(why, a.start) {
			return line, why + "; " + a.do
		}
	}
	return line, why
}

// firstWrong returns the first line up to which the lines are wrong for the same reason as all of them.
func firstWrong(lines [][]byte, why string) int {
	return 1 + sort.Search(len(lines)-1, func(n int) bool {
		of := read(bytes.Join(lines[:n+1], nil))
		return of != nil && strings.HasSuffix(of.Error(), why)
	})
}

// keyless returns the line right above another, but for blank lines, if it has no key: YAML takes the other for
// the rest of its text.
func keyless(lines [][]byte, below int) (line int, found bool) {
	for n := min(below-1, len(lines)) - 1; n >= 0; n-- {
		text := bytes.TrimSpace(lines[n])
		if len(text) == 0 {
			continue
		}
		mapped := bytes.Contains(text, []byte(": ")) || bytes.HasSuffix(text, []byte(":"))
		return n + 1, bytes.Contains(text, []byte(":")) && !mapped
	}
	return 0, false
}

// hasUnplaced reports whether a line refers to an anchor, or, if that is empty, has bytes that YAML forbids.
func hasUnplaced(line []byte, anchor string) bool {
	if anchor != "" {
		return bytes.Contains(line, []byte("*"+anchor))
	}
	return !utf8.Valid(line) || bytes.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}

// read returns the error of the library for a text.
func read(text []byte) error {
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		err := decoder.Decode(new(yaml.Node))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
