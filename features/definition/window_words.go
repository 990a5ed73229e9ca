package definition

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/internal/spelling"
)

// windowWords is a window as written: a duration, lifetime, or words by their keys. In one line
// these are {calendar: day, tz: Asia/Shanghai} or, as YAML requires quotes around a colon and a
// space, calendar day tz Asia/Shanghai. A duration or lifetime before other words needs no key: 7d
// last 10.
type windowWords struct {
	whole word
	keys  map[string]word
}

// typeKeys are the keys of window types, windowKeys all keys; windowOptions are keys that only some
// types take.
var (
	typeKeys      = []string{"rolling", "calendar", "tumbling", "fixed", "session"}
	windowKeys    = append(slices.Clip(typeKeys), "last", "tz", "starts", "max_length")
	windowOptions = map[string][]string{"tz": {"calendar", "rolling"}, "starts": {"calendar"}, "max_length": {"fixed", "session"}}
)

const noWindow = "window must not be empty; write one such as 7d or {rolling: 7d}"

// windowNode reads the window of a feature in the long form.
func (l windows) windowNode(n node) windowWords {
	if n.Kind != yaml.MappingNode {
		w, ok := l.scalar(n, "window")
		if !ok {
			return windowWords{}
		}
		return l.windowText(w)
	}
	if len(n.Content) == 0 {
		l.report(n.location(), noWindow)
	}
	w := windowWords{keys: map[string]word{}}
	for key, value := range l.keyed(n, "window", windowKeys...) {
		if text, ok := l.scalar(value, key); ok {
			w.whole.location, w.keys[key] = n.location(), text
		}
	}
	return w
}

// windowText reads a window that is written in one line.
func (l windows) windowText(w word) windowWords {
	words := windowWords{whole: w, keys: map[string]word{}}
	var parts []word
	if inner, ok := strings.CutPrefix(w.text, "{"); ok && strings.HasSuffix(inner, "}") {
		parts = split(w.part(1, strings.TrimSuffix(inner, "}")), ",:")
	} else if parts = split(w, " \t\r\n"); len(parts) == 0 || !slices.Contains(windowKeys, parts[0].text) {
		if len(parts) < 2 || !slices.Contains(windowKeys, parts[1].text) {
			words.keys["rolling"] = w
			return words
		}
		words.keys["rolling"], parts = parts[0], parts[1:] // 7d last 10
	}
	if len(parts) == 0 {
		l.report(w.location, noWindow)
	}
	for pair := range slices.Chunk(parts, 2) {
		key := pair[0]
		_, twice := words.keys[key.text]
		switch {
		case !slices.Contains(windowKeys, key.text):
			l.report(key.location, "%s", spelling.UnknownIn(" in window", "key", key.text, windowKeys))
		case len(pair) < 2:
			l.report(key.location, "%s must be followed by its value, such as {rolling: 7d} or calendar day tz Asia/Shanghai", key.text)
		case twice:
			l.report(key.location, "%s is given twice", key.text)
		default:
			words.keys[key.text] = pair[1]
			continue
		}
		return windowWords{}
	}
	return words
}

// split returns the words between separators, with surrounding spaces removed.
func split(w word, marks string) []word {
	var words []word
	for offset := 0; offset <= len(w.text); {
		n := strings.IndexAny(w.text[offset:], marks)
		if n < 0 {
			n = len(w.text) - offset
		}
		text := w.text[offset : offset+n]
		start := offset + len(text) - len(strings.TrimLeft(text, " \t\r\n"))
		if text = strings.TrimSpace(text); text != "" {
			words = append(words, w.part(start, text))
		}
		offset += n + 1
	}
	return words
}
