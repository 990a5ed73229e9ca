// Package featuretest runs tests of definitions: files *_test.yaml beside them, which
// say what happens, what is asked, and what is to be answered. It answers with the code
// that answers in production, over state in memory.
package featuretest

import (
	"slices"
	"time"
)

// Result is what became of the tests of a file.
type Result struct {
	File  string
	Tests []TestResult
	// Definitions are those that the tests are about; of their features Untested are
	// those that no test of the file asks for.
	Definitions string
	Untested    []string
}

// TestResult is what became of a test.
type TestResult struct {
	Name     string
	Line     int // from 1
	Values   int // answers that were compared
	Failures []Failure
	Took     time.Duration
}

// Failure is one thing that is not as a test says.
type Failure struct {
	Line    int    // of what was expected
	Message string // a line, and perhaps more that are indented
}

// Failed is the number of tests that failed.
func (r *Result) Failed() (n int) {
	for _, t := range r.Tests {
		if len(t.Failures) > 0 {
			n++
		}
	}
	return n
}

// untested are the features of the same definitions that none of the files asks for, each
// list behind the last file that is about its definitions.
func untested(results []*Result) (lists map[int][]string) {
	lists = map[int][]string{}
	last := map[string]int{}
	for i, r := range results {
		left := r.Untested
		if before, ok := last[r.Definitions]; ok {
			left = slices.DeleteFunc(slices.Clone(left), func(name string) bool { return !slices.Contains(lists[before], name) })
			delete(lists, before)
		}
		lists[i], last[r.Definitions] = left, i
	}
	return lists
}
