// Package featuretest runs tests of definitions: files *_test.yaml beside them, which
// list events, questions and the answers expected. The code that answers in production
// answers them, over state in memory.
package featuretest

import (
	"slices"
	"time"
)

// Result is the result of the tests in a file.
type Result struct {
	File  string
	Tests []TestResult
	// Definitions are the definitions under test; Untested are their features that no test of the
	// file asks for.
	Definitions string
	Untested    []string
	// Err says why the file's tests could not be run, so that there are none; nil if they were.
	Err error
}

// TestResult is the result of one test.
type TestResult struct {
	Name     string
	Line     int // from 1
	Values   int // answers that were compared
	Failures []Failure
	Took     time.Duration
}

// Failure is one difference from what a test expects.
type Failure struct {
	Line    int    // of the expectation
	Message string // one line, perhaps with further indented lines
}

// Failed returns the number of tests that failed.
func (r *Result) Failed() (n int) {
	for _, t := range r.Tests {
		if len(t.Failures) > 0 {
			n++
		}
	}
	return n
}

// untested returns the features that none of the files with the same definitions asks for, listed after the last file
// with those definitions.
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
