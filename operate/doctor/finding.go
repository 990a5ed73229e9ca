// Package doctor looks at what Weir runs on, and says what to do about what is
// not well.
package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Verdict is how something was found.
type Verdict string

// The verdicts: what is WARN works, until something happens; what is FAIL does
// not work, or loses events.
const (
	OK   Verdict = "OK"
	Warn Verdict = "WARN"
	Fail Verdict = "FAIL"
)

// Finding is one thing that was looked at.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	Subject string  `json:"subject"` // such as "redis localhost:6379"
	Found   string  `json:"found"`
	Do      string  `json:"do,omitempty"` // empty where nothing is to be done
}

// Findings are all that was looked at, in order.
type Findings []Finding

func (f *Findings) ok(subject, format string, args ...any) {
	*f = append(*f, Finding{OK, subject, fmt.Sprintf(format, args...), ""})
}

func (f *Findings) add(verdict Verdict, subject, found, do string) {
	*f = append(*f, Finding{verdict, subject, found, do})
}

// Count counts the findings of a verdict.
func (f Findings) Count(v Verdict) (n int) {
	for i := range f {
		if f[i].Verdict == v {
			n++
		}
	}
	return n
}

// WriteText writes a line for each finding, what to do below it, and the sum.
func (f Findings) WriteText(out io.Writer) error {
	width := 0
	for i := range f {
		width = max(width, len(f[i].Subject))
	}
	var text strings.Builder
	for i := range f {
		fmt.Fprintf(&text, "%-4s  %-*s  %s\n", f[i].Verdict, width, f[i].Subject, f[i].Found)
		if f[i].Do != "" {
			fmt.Fprintf(&text, "%s-> %s\n", strings.Repeat(" ", width+8), f[i].Do)
		}
	}
	fmt.Fprintf(&text, "\n%d OK, %d WARN, %d FAIL\n", f.Count(OK), f.Count(Warn), f.Count(Fail))
	_, err := io.WriteString(out, text.String())
	return err
}

// WriteJSON writes one JSON object.
func (f Findings) WriteJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Findings Findings `json:"findings"`
		OK       int      `json:"ok"`
		Warn     int      `json:"warn"`
		Fail     int      `json:"fail"`
	}{append(Findings{}, f...), f.Count(OK), f.Count(Warn), f.Count(Fail)})
}
