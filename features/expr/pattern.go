package expr

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// maxPatternSteps bounds the steps of a compiled pattern. A short text may ask for many: ^\pL{1000}$ has 650,000, each of
// some ten bytes.
const maxPatternSteps = 100_000

// pattern compiles the pattern of `matches` or extract, and returns how many steps it has at most.
func pattern(text string) (re *regexp.Regexp, steps int, err error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, err
	}
	if steps = stepsOf(parsed); steps > maxPatternSteps {
		return nil, 0, fmt.Errorf("the pattern has more than %d steps: repeat less in it", maxPatternSteps)
	}
	re, err = regexp.Compile(text)
	return re, steps, err
}

// stepsOf returns how many steps a pattern compiles to at most, or some number above maxPatternSteps. A set of characters
// counts by its ranges, which a step may copy.
func stepsOf(p *syntax.Regexp) int {
	steps := 2 + len(p.Rune)/2
	for _, sub := range p.Sub {
		if steps += stepsOf(sub); steps > maxPatternSteps {
			return steps
		}
	}
	if p.Op == syntax.OpRepeat {
		steps *= 1 + max(p.Min, p.Max)
	}
	return min(steps, maxPatternSteps+1)
}
