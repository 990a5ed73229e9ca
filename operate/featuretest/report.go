package featuretest

import (
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-stream/weir/internal/spelling"
)

// WriteText writes results as text: each test, and the reasons of failed ones.
func WriteText(b *strings.Builder, results []*Result) {
	tests, failed, values, unusable := 0, 0, 0, 0
	left := untested(results)
	for i, r := range results {
		fmt.Fprintf(b, "%s\n", r.File)
		if r.Err != nil {
			unusable++
			fmt.Fprintf(b, "  FAIL no test was run\n")
		}
		for _, t := range r.Tests {
			tests++
			values += t.Values
			mark := "ok  "
			if len(t.Failures) > 0 {
				mark = "FAIL"
				failed++
			}
			fmt.Fprintf(b, "  %s %s\n", mark, t.Name)
			for _, f := range t.Failures {
				fmt.Fprintf(b, "       %s\n", indented(r, f))
			}
		}
		if len(left[i]) > 0 {
			fmt.Fprintf(b, "  not asked about in any test of %s: %s\n", r.Definitions, strings.Join(left[i], ", "))
		}
	}
	fmt.Fprintf(b, "%s, %d failed, %s compared", spelling.Counted(tests, "test"), failed, spelling.Counted(values, "value"))
	if unusable > 0 {
		fmt.Fprintf(b, "; the tests of %s were not run", spelling.Counted(unusable, "file"))
	}
	b.WriteByte('\n')
}

// indented returns a failure with its location.
func indented(r *Result, f Failure) string {
	return fmt.Sprintf("%s:%d: %s", filepath.Base(r.File), f.Line, strings.ReplaceAll(f.Message, "\n", "\n         "))
}

// The elements of JUnit's reports, as CI systems read them.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Error   *junitFailure `xml:"error,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// newJUnitFailure makes a failure of a text; its first line is the message.
func newJUnitFailure(text string) *junitFailure {
	first, _, _ := strings.Cut(text, "\n")
	return &junitFailure{Message: first, Text: text}
}

// WriteJUnit writes results in JUnit's format: a suite for each file. A file whose tests could not be run has one test,
// which is an error.
func WriteJUnit(w io.Writer, results []*Result) error {
	var all junitSuites
	for _, r := range results {
		suite := junitSuite{Name: r.File, Tests: len(r.Tests), Failures: r.Failed()}
		var took time.Duration
		for _, t := range r.Tests {
			took += t.Took
			c := junitCase{Name: t.Name, Class: r.File, File: r.File, Line: t.Line, Time: seconds(t.Took)}
			if len(t.Failures) > 0 {
				var texts []string
				for _, f := range t.Failures {
					texts = append(texts, indented(r, f))
				}
				c.Failure = newJUnitFailure(strings.Join(texts, "\n"))
			}
			suite.Cases = append(suite.Cases, c)
		}
		if r.Err != nil {
			suite.Tests, suite.Errors = 1, 1
			suite.Cases = []junitCase{{Name: filepath.Base(r.File), Class: r.File, File: r.File, Line: 1, Time: seconds(0), Error: newJUnitFailure(r.Err.Error())}}
		}
		suite.Time = seconds(took)
		all.Tests, all.Failures, all.Errors = all.Tests+suite.Tests, all.Failures+suite.Failures, all.Errors+suite.Errors
		all.Suites = append(all.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
