package expr

import (
	"unicode/utf8"

	"github.com/weir-stream/weir/value"
)

// similarities compare two texts, such as names of payees:
//
//	levenshtein(a, b)    how many characters to insert, delete or replace (Levenshtein, 1966)
//	jaro_winkler(a, b)   from 0, nothing in common, to 1, equal (Winkler, 1990)
//
// Both are null if a text has more than maxCompared characters: the time that they take grows with the product of the
// lengths, and those who write events choose them.
var similarities = map[string]function{
	"levenshtein":  of("a, b", value.Int, levenshtein, value.String, value.String),
	"jaro_winkler": of("a, b", value.Float, jaroWinkler, value.String, value.String),
}

const maxCompared = 256

// characters returns those of two texts, unless one has too many.
func characters(args []*value.Value) (a, b []rune, ok bool) {
	for _, v := range args {
		if len(v.Str) > utf8.UTFMax*maxCompared || utf8.RuneCount(v.Str) > maxCompared {
			return nil, nil, false
		}
	}
	return []rune(string(args[0].Str)), []rune(string(args[1].Str)), true
}

func levenshtein(_ *frame, args []*value.Value) value.Value {
	a, b, ok := characters(args)
	if !ok {
		return value.Value{}
	}
	var row [maxCompared + 1]int // distances of what is read of a from each beginning of b
	for j := range b {
		row[j+1] = j + 1
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			change := diagonal
			if x != y {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return intOf(int64(row[len(b)]))
}

func jaroWinkler(_ *frame, args []*value.Value) value.Value {
	a, b, ok := characters(args)
	if !ok {
		return value.Value{}
	}
	similarity := jaro(a, b)
	// A common beginning of up to four characters counts a tenth each of what is missing.
	prefix := 0
	for prefix < min(4, len(a), len(b)) && a[prefix] == b[prefix] {
		prefix++
	}
	return value.Value{Type: value.Float, Flt: similarity + float64(prefix)*0.1*(1-similarity)}
}

// jaro is Jaro's similarity (1989): of characters that match not too far from each other, and of their order.
func jaro(a, b []rune) float64 {
	if len(a) == 0 && len(b) == 0 {
		return 1
	}
	reach := max(0, max(len(a), len(b))/2-1)
	var inA, inB [maxCompared]bool
	matches := 0
	for i, x := range a {
		for j := max(0, i-reach); j < min(len(b), i+reach+1); j++ {
			if !inB[j] && b[j] == x {
				inA[i], inB[j] = true, true
				matches++
				break
			}
		}
	}
	if matches == 0 {
		return 0
	}
	transposed, j := 0, 0
	for i, x := range a {
		if !inA[i] {
			continue
		}
		for !inB[j] {
			j++
		}
		if b[j] != x {
			transposed++
		}
		j++
	}
	m := float64(matches)
	return (m/float64(len(a)) + m/float64(len(b)) + (m-float64(transposed/2))/m) / 3
}
