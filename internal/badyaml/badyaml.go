// Package badyaml says where a text is not YAML, and what to do.
package badyaml

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// advice maps beginnings of the library's messages to what to do about them.
var advice = []struct{ start, do string }{
	{"mapping values are not allowed", "check the indentation, and quote a text that contains a colon and a space"},
	{"did not find expected key", "check the indentation and the quotes"},
	{"did not find expected '-' indicator", "check the indentation and the quotes"},
	{"could not find expected ':'", "write a colon and a space after a key"},
	{"found a tab character", "indent with spaces"},
	{tokenless, "quote a text that begins with @, % or a backquote"},
}

const tokenless = "found character that cannot start any token"

var (
	message = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)
	// fromZero matches errors of the library's parser, which counts lines from 0; its scanner counts them from 1.
	fromZero = regexp.MustCompile(`^did not find expected (',' or|key|'-' indicator|<|node content)`)
	// atStart matches those that come with the line where the mapping, list or text begins, not with the one that is wrong.
	atStart = regexp.MustCompile(`^(did not find expected (key|'-' indicator)|found a tab character)`)
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
	if atStart.MatchString(why) {
		line = firstWrong(lines, err)
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

// firstWrong returns the first line up to which the lines have the same error as all of them.
func firstWrong(lines [][]byte, err error) int {
	return 1 + sort.Search(len(lines)-1, func(n int) bool {
		of := read(bytes.Join(lines[:n+1], nil))
		return of != nil && of.Error() == err.Error()
	})
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
