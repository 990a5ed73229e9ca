package deadletter

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"

	"github.com/weir-stream/weir/internal/spelling"
)

// Letters are a list of dead letters.
type Letters []*Letter

// WriteText writes a table of the letters, and their number by reason below it.
func (letters Letters) WriteText(out *strings.Builder) {
	if len(letters) > 0 {
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "DEAD LETTER\tSOURCE\tSET ASIDE\tREASON\tSTREAM\tREPLAYED\tMESSAGE")
		for _, l := range letters {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.At, l.Source, spelling.Moment(l.SetAside), l.Reason,
				cmp.Or(l.Stream, "-"), l.replayed(), spelling.Visible(l.Message))
		}
		_ = table.Flush() // a Builder takes all
		out.WriteByte('\n')
	}
	reasons, replayed := count(letters)
	fmt.Fprintf(out, "%s%s, %d of them replayed", spelling.Counted(len(letters), "dead letter"), list(reasons), replayed)
	unknown := 0
	for _, l := range letters {
		if !l.Sealed {
			unknown++
		}
	}
	if unknown > 0 {
		fmt.Fprintf(out, "; of %d it is unknown, as this namespace has not sealed them", unknown)
	}
	out.WriteByte('\n')
}

// replayed says whether a letter was replayed.
func (l *Letter) replayed() string {
	if !l.Sealed {
		return "unknown"
	}
	return yes(l.Replayed)
}

// count counts letters by reason, and those replayed.
func count(letters []*Letter) (reasons map[string]int, replayed int) {
	reasons = map[string]int{}
	for _, l := range letters {
		reasons[l.Reason]++
		if l.Replayed {
			replayed++
		}
	}
	return reasons, replayed
}

// list is ": 3 wrong_type, 1 missing_field", the most frequent first; empty for
// none.
func list(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	text := ""
	for i, name := range names {
		text += map[bool]string{true: ": ", false: ", "}[i == 0] + strconv.Itoa(counts[name]) + " " + name
	}
	return text
}

type headerJSON struct {
	Key         string  `json:"key"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

// MarshalJSON writes the letter, its bytes as text where they are UTF-8; key, value and headers only where it has them.
func (l *Letter) MarshalJSON() ([]byte, error) {
	type facts Letter
	j := struct {
		*facts
		Key         *string      `json:"key,omitempty"`
		KeyBase64   []byte       `json:"key_base64,omitempty"`
		Value       *string      `json:"value,omitempty"`
		ValueBase64 []byte       `json:"value_base64,omitempty"`
		Headers     []headerJSON `json:"headers,omitempty"`
	}{facts: (*facts)(l)}
	j.Key, j.KeyBase64 = textOrBytes(l.Key)
	j.Value, j.ValueBase64 = textOrBytes(l.Value)
	for _, h := range l.Headers {
		header := headerJSON{Key: h.Key}
		header.Value, header.ValueBase64 = textOrBytes(h.Value)
		j.Headers = append(j.Headers, header)
	}
	return json.Marshal(j)
}

func textOrBytes(b []byte) (*string, []byte) {
	if b == nil || !utf8.Valid(b) {
		return nil, b
	}
	text := string(b)
	return &text, nil
}

// MarshalJSON makes an object of the letters and their number by reason.
func (letters Letters) MarshalJSON() ([]byte, error) {
	reasons, replayed := count(letters)
	return json.Marshal(struct {
		Letters  []*Letter      `json:"letters"`
		Reasons  map[string]int `json:"reasons"`
		Replayed int            `json:"replayed"`
	}{append([]*Letter{}, letters...), reasons, replayed})
}

// WriteText writes a letter with the original record: printable bytes unchanged, everything else in hexadecimal.
func (l *Letter) WriteText(out *strings.Builder) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "dead letter\t%s, set aside %s\n", l.At, spelling.Moment(l.SetAside))
	fmt.Fprintf(w, "source\t%s, of %s\n", l.Source, spelling.Moment(l.Timestamp))
	fmt.Fprintf(w, "namespace\t%s\n", cmp.Or(l.Namespace, "none"))
	fmt.Fprintf(w, "stream\t%s\n", cmp.Or(l.Stream, "none"))
	fmt.Fprintf(w, "reason\t%s: %s\n", l.Reason, spelling.Visible(l.Message))
	fmt.Fprintf(w, "replayed\t%s; %s before\n", yes(l.Replayed), spelling.Counted(l.Replays, "time"))
	fmt.Fprintf(w, "key\t%s\n", quoted(l.Key))
	for _, h := range l.Headers {
		fmt.Fprintf(w, "header\t%s: %s\n", spelling.Visible(h.Key), quoted(h.Value))
	}
	size, text := spelling.Counted(len(l.Value), "byte"), string(l.Value)+"\n"
	switch {
	case l.Value == nil:
		size, text = "none", ""
	case !isPrintable(l.Value):
		text = hex.Dump(l.Value)
	}
	fmt.Fprintf(w, "value\t%s\n", size)
	_ = w.Flush() // a Builder takes all
	out.WriteString(text)
}

// isPrintable reports whether bytes may be written to a terminal unchanged.
func isPrintable(b []byte) bool {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 || !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			return false
		}
		b = b[size:]
	}
	return true
}

// quoted returns a key or the value of a header.
func quoted(b []byte) string {
	if b == nil {
		return "none"
	}
	return strconv.Quote(string(b))
}

// WriteText writes how many letters were, or would be, replayed and skipped.
func (s Summary) WriteText(out *strings.Builder, would bool) {
	n := 0
	for _, of := range s.Replayed {
		n += of
	}
	verb := "replayed "
	if would {
		verb = "would replay "
	}
	out.WriteString(verb + spelling.Counted(n, "event") + list(s.Replayed) + "\n")
	for _, why := range allWhys() {
		if of := s.Passed[why]; of > 0 {
			fmt.Fprintf(out, "skipped %s %s\n", spelling.Counted(of, "dead letter"), why)
		}
	}
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
