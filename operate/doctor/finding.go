// Package doctor checks Kafka, Redis and the definitions, and says what to do about each problem.
package doctor

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-stream/weir/internal/reworded"
)

// Verdict is the severity of a finding.
type Verdict string

// The verdicts: WARN works until something happens, such as a crash; FAIL does not work, or loses events.
const (
	OK   Verdict = "OK"
	Warn Verdict = "WARN"
	Fail Verdict = "FAIL"
)

// Finding is the result of one check.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	Subject string  `json:"subject"` // such as "redis localhost:6379"
	Found   string  `json:"found"`
	Do      string  `json:"do,omitempty"` // empty if there is nothing to do
}

// Findings are the results of all checks, in order.
type Findings []Finding

func (f *Findings) ok(subject, format string, args ...any) {
	*f = append(*f, Finding{OK, subject, fmt.Sprintf(format, args...), ""})
}

func (f *Findings) add(verdict Verdict, subject, found, do string) {
	*f = append(*f, Finding{verdict, subject, found, do})
}

// unreached adds a finding about a server that could not be asked.
func (f *Findings) unreached(verdict Verdict, subject string, err error, do string) {
	f.add(verdict, subject, reworded.Connection(err).Error(), do)
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

// WriteText writes a line for each finding, what to do below it, and totals.
func (f Findings) WriteText(text *strings.Builder) {
	width := 0
	for i := range f {
		width = max(width, len(f[i].Subject))
	}
	for i := range f {
		fmt.Fprintf(text, "%-4s  %-*s  %s\n", f[i].Verdict, width, f[i].Subject, f[i].Found)
		if f[i].Do != "" {
			fmt.Fprintf(text, "%s-> %s\n", strings.Repeat(" ", width+8), f[i].Do)
		}
	}
	fmt.Fprintf(text, "\n%d OK, %d WARN, %d FAIL\n", f.Count(OK), f.Count(Warn), f.Count(Fail))
}

// MarshalJSON makes an object of the findings and their number by verdict.
func (f Findings) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Findings []Finding `json:"findings"`
		OK       int       `json:"ok"`
		Warn     int       `json:"warn"`
		Fail     int       `json:"fail"`
	}{append([]Finding{}, f...), f.Count(OK), f.Count(Warn), f.Count(Fail)})
}
