package spelling

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Counted returns a number with its noun, which is in the plural if needed, and the same for all numbers if it ends in s.
func Counted(n int, noun string) string {
	if n != 1 && noun[len(noun)-1] != 's' {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Moment returns a moment in ms since 1970, in UTC.
func Moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z") }

// Visible returns a text on one line, quoted if a terminal would not show all of it.
func Visible(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return text
	}
	return strconv.Quote(text)
}

// Unknown returns the message for an unknown name, with a suggestion or the known names.
func Unknown(what, name string, known []string) string {
	return UnknownIn("", what, name, known)
}

// UnknownIn is Unknown with the place that lacks the name, such as " in x".
func UnknownIn(in, what, name string, known []string) string {
	message := fmt.Sprintf("unknown %s %q%s", what, name, in)
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", message, near)
	}
	if len(known) == 0 || len(known) > 30 {
		return message
	}
	return message + "; known: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// Nearest returns the known name that a misspelt one most likely stands for, empty if none is close
// enough. A name of which every letter differs is not.
func Nearest(name string, known []string) string {
	best, least := "", min(max(2, len(name)/4)+1, len(name))
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := Distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// Alternatives lists names for a message: a, b or c.
func Alternatives(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
