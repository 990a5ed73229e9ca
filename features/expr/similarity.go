package expr

import (
	"math/rand/v2"
	"unicode/utf8"

	"github.com/weir-stream/weir/value"
)

// similarities compare two texts, such as names of payees:
//
//	levenshtein(a, b)    how many characters to insert, delete or replace (Levenshtein, 1966)
//	jaro_winkler(a, b)   from 0, nothing in common, to 1, equal (Winkler, 1990)
//
// Both are null if a text has more than maxCompared characters: those who write events choose the lengths.
var similarities = map[string]function{
	"levenshtein":  of("a, b", value.Int, levenshtein, value.String, value.String),
	"jaro_winkler": of("a, b", value.Float, jaroWinkler, value.String, value.String),
}

const maxCompared = 256

// characters returns the characters of a text, in memory; ok is false if there is not enough for them.
func characters(memory []rune, text []byte) (_ []rune, ok bool) {
	n := 0
	for i := 0; i < len(text); n++ {
		if n == len(memory) {
			return nil, false
		}
		c, size := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRune(text[i:])
		}
		memory[n] = c
		i += size
	}
	return memory[:n], true
}

// The numbers of characters in two texts that are compared, see number.
const (
	absent  = utf8.RuneSelf + maxCompared // a character that the second text does not have
	numbers = absent + 1
)

// number replaces the characters of two texts by small numbers, which are equal where the characters are; those of a that
// b does not have may all be absent. ASCII stays as it is.
func number(a, b []rune) {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			numberOthers(a, b)
			return
		}
	}
	for i, c := range a {
		if c >= utf8.RuneSelf {
			a[i] = absent
		}
	}
}

// anyOdd makes it unknown to those who write events which characters have the same place in a table.
var anyOdd = rand.Uint32() | 1

// numberOthers is number if b has characters that are not ASCII. It is a function of its own for the memory of the table.
//
//go:noinline
func numberOthers(a, b []rune) {
	var table [2 * maxCompared]struct{ char, number rune } // at most half full
	place := func(c rune) uint32 {
		// Some factors alone would give many neighbours in an alphabet the same place.
		at := uint32(c) * anyOdd
		at = (at ^ at>>15) * 0x2c1b3c6d >> 16 % uint32(len(table))
		for table[at].char != 0 && table[at].char != c {
			at = (at + 1) % uint32(len(table))
		}
		return at
	}
	next := rune(utf8.RuneSelf)
	for i, c := range b {
		if c < utf8.RuneSelf {
			continue
		}
		at := place(c)
		if table[at].char == 0 {
			table[at].char, table[at].number = c, next
			next++
		}
		b[i] = table[at].number
	}
	for i, c := range a {
		if c < utf8.RuneSelf {
			continue
		}
		a[i] = absent
		if at := place(c); table[at].char != 0 {
			a[i] = table[at].number
		}
	}
}

// compared returns the numbered characters of two texts, in memory; ok is false if one has too many.
func compared(memory *[2][maxCompared]rune, args []*value.Value) (a, b []rune, ok bool) {
	a, okA := characters(memory[0][:], args[0].Str)
	b, okB := characters(memory[1][:], args[1].Str)
	number(a, b)
	return a, b, okA && okB
}

func levenshtein(_ *frame, args []*value.Value) value.Value {
	var memory [2][maxCompared]rune
	a, b, ok := compared(&memory, args)
	if !ok {
		return value.Value{}
	}
	return intOf(int64(distance(a, b)))
}

// distance is the distance of Levenshtein between texts of numbered characters, by the algorithm of Myers (A Fast
// Bit-Vector Algorithm for Approximate String Matching Based on Dynamic Programming, Journal of the ACM 46, 1999) for the
// distance of whole texts, in the form for blocks of Hyyrö (A Bit-Vector Algorithm for Computing Levenshtein and Damerau
// Edit Distances, Nordic Journal of Computing 10, 2003).
//
// Of the table of distances between the beginnings of b, its rows, and those of a, its columns, it computes 64 rows of a
// column at once, as their differences, which are 1, 0 or -1. Each block of rows goes through all columns, and leaves to
// the next one how its last row goes on.
func distance(a, b []rune) int {
	var (
		along [maxCompared]uint8 // by column: whether the last row is 1 greater than in the one before, in bit 0; less, in bit 1
		has   [numbers]uint64    // by character: the rows of the block that have it
	)
	for i := range a {
		along[i] = 1 // in the row of the empty text
	}
	for first := 0; first < len(b); first += 64 {
		rows := b[first:min(first+64, len(b))]
		for j, c := range rows {
			has[c] |= 1 << uint(j)
		}
		last := uint(len(rows)-1) % 64
		more, less := ^uint64(0), uint64(0) // which rows of the column are 1 greater than the row above, and which are less
		for i, c := range a {
			plus, minus := uint64(along[i]&1), uint64(along[i]>>1)
			same := has[c]
			diagonal := same | less
			same |= minus
			equal := (same&more + more) ^ more | same
			right, left := less|^(equal|more), equal&more // which are 1 greater than in the column before, and which are less
			along[i] = uint8(right>>last&1 | left>>last&1<<1)
			right, left = right<<1|plus, left<<1|minus
			more, less = left|^(diagonal|right), right&diagonal
		}
		for _, c := range rows {
			has[c] = 0
		}
	}
	d := len(b)
	for _, by := range along[:len(a)] {
		d += int(by&1) - int(by>>1)
	}
	return d
}

func jaroWinkler(_ *frame, args []*value.Value) value.Value {
	var memory [2][maxCompared]rune
	a, b, ok := compared(&memory, args)
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

// jaro is Jaro's similarity (1989) of texts of numbered characters: of those that match not too far from each other, and of
// their order. A character matches the first one in reach that has no match yet: as the reach moves on, that is a queue
// for each.
func jaro(a, b []rune) float64 {
	if len(a) == 0 && len(b) == 0 {
		return 1
	}
	reach := max(0, max(len(a), len(b))/2-1)
	var (
		inA, inB [maxCompared]bool
		first    [numbers]uint16     // by character: its first place in b that may yet match, from 1; 0 for none
		next     [maxCompared]uint16 // by place in b: the next place of the same character
	)
	for j := len(b) - 1; j >= 0; j-- {
		next[j], first[b[j]] = first[b[j]], uint16(j+1)
	}
	matches := 0
	for i, x := range a {
		j := int(first[x]) - 1
		for 0 <= j && j < i-reach {
			j = int(next[j]) - 1
		}
		if 0 <= j && j <= i+reach {
			inA[i], inB[j] = true, true
			matches++
			j = int(next[j]) - 1
		}
		first[x] = uint16(j + 1)
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
