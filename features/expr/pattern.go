package expr

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// maxPatternSteps bounds the steps of a compiled pattern. A short text may ask for many: ^\pL{1000}$ has 650,000, each of
// some ten bytes.
const maxPatternSteps = 100_000

// maxSearch bounds the steps of a pattern times the bytes of a text, since a search may take each step at each byte, some
// 10 ns. Those who write events choose the texts.
const maxSearch = 4_000_000

// maxGroups bounds the groups of a pattern of extract: at each step a search may copy where each of them is.
const maxGroups = 32

// pattern is that of `matches` or extract.
type pattern struct {
	*regexp.Regexp
	size  int   // how many steps it has at most, in which a set of characters counts by its ranges
	reads int   // the bytes of the longest text that it searches
	err   error // of a longer text
}

func compilePattern(text string) (*pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := stepsOf(parsed)
	if size > maxPatternSteps {
		return nil, fmt.Errorf("the pattern has more than %d steps: repeat less in it", maxPatternSteps)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	steps := len(program.Inst)
	p := &pattern{size: size, reads: maxSearch / steps}
	p.err = fmt.Errorf("a text is longer than the %d bytes that a pattern of %d steps searches", p.reads, steps)
	p.Regexp, err = regexp.Compile(text)
	return p, err
}

// searches reports whether the pattern searches a text, or fails.
func (p *pattern) searches(f *frame, text []byte) bool {
	if len(text) > p.reads {
		f.fail(p.err)
		return false
	}
	return true
}

// stepsOf returns how many steps a pattern compiles to at most, or some number above maxPatternSteps. A set of characters
// counts by its ranges, which a step may copy.
func stepsOf(p *syntax.Regexp) int {
	steps := 2 + len(p.Rune)/2
	if p.Op == syntax.OpLiteral {
		steps = 2 + len(p.Rune)
	}
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
