package expr

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/value"
)

// plainDistance is the distance of Levenshtein by its definition.
func plainDistance(a, b []rune) int {
	row := make([]int, len(b)+1) // distances of what is read of a from each beginning of b
	for j := range row {
		row[j] = j
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
	return row[len(b)]
}

// plainJaroWinkler is the similarity by its definition, which looks for each character in all of its reach.
func plainJaroWinkler(a, b []rune) float64 {
	if len(a) == 0 && len(b) == 0 {
		return 1
	}
	reach := max(0, max(len(a), len(b))/2-1)
	inA, inB := make([]bool, len(a)), make([]bool, len(b))
	for i, x := range a {
		for j := max(0, i-reach); j < min(len(b), i+reach+1); j++ {
			if !inB[j] && b[j] == x {
				inA[i], inB[j] = true, true
				break
			}
		}
	}
	matching := func(s []rune, in []bool) (found []rune) {
		for i, c := range s {
			if in[i] {
				found = append(found, c)
			}
		}
		return found
	}
	ofA, ofB := matching(a, inA), matching(b, inB)
	if len(ofA) == 0 {
		return 0
	}
	transposed := 0
	for i := range ofA {
		if ofA[i] != ofB[i] {
			transposed++
		}
	}
	m := float64(len(ofA))
	similarity := (m/float64(len(a)) + m/float64(len(b)) + (m-float64(transposed/2))/m) / 3
	prefix := 0
	for prefix < min(4, len(a), len(b)) && a[prefix] == b[prefix] {
		prefix++
	}
	return similarity + float64(prefix)*0.1*(1-similarity)
}

// Similarities of texts of all lengths and alphabets are what their definitions say, to the bit.
func TestSimilarities(t *testing.T) {
	check := func(a, b string) {
		t.Helper()
		args := []*value.Value{{Type: value.String, Str: []byte(a)}, {Type: value.String, Str: []byte(b)}}
		if got, want := levenshtein(nil, args), plainDistance([]rune(a), []rune(b)); got.Type != value.Int || got.Num != int64(want) {
			t.Fatalf("levenshtein(%q, %q) = %s, want %d", a, b, typed(got), want)
		}
		got, want := jaroWinkler(nil, args), plainJaroWinkler([]rune(a), []rune(b))
		if got.Type != value.Float || math.Float64bits(got.Flt) != math.Float64bits(want) {
			t.Fatalf("jaro_winkler(%q, %q) = %s, want %v", a, b, typed(got), want)
		}
	}
	random := rand.New(rand.NewPCG(5, 6))
	alphabets := [][]rune{[]rune("ab"), []rune("abcdefghijklmnopqrstuvwxyz "), []rune("aä"), []rune("aeäöüßé\x00\x7f\u0080"), []rune("абвгдежзиклмн о"), {}, {}, {}}
	for i := range 0x10000 - 0xe000 {
		alphabets[5] = append(alphabets[5], rune(0x4e00+i))    // more than a text has
		alphabets[6] = append(alphabets[6], rune(i)<<9%0xd800) // equal in their low bits
		alphabets[7] = append(alphabets[7], rune(i)%0x200)
	}
	made := func(alphabet []rune, length int) []rune {
		s := make([]rune, length)
		for i := range s {
			s[i] = alphabet[random.IntN(len(alphabet))]
		}
		return s
	}
	lengths := []int{0, 1, 2, 3, 15, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, maxCompared}
	for _, alphabet := range alphabets {
		for _, m := range lengths {
			for _, n := range lengths {
				a, b := made(alphabet, m), made(alphabet, n)
				check(string(a), string(b))
				if m == n {
					check(string(a), string(a))
				}
			}
		}
		for range 300 {
			a := made(alphabet, random.IntN(maxCompared+1))
			b := slices.Clone(a) // with some changes
			for range random.IntN(8) {
				at := random.IntN(len(b) + 1)
				switch c := made(alphabet, 1)[0]; {
				case at < len(b) && random.IntN(3) == 0:
					b[at] = c
				case at < len(b) && random.IntN(2) == 0:
					b = slices.Delete(b, at, at+1)
				case len(b) < maxCompared:
					b = slices.Insert(b, at, c)
				}
			}
			check(string(a), string(b))
			check(string(b), string(made(alphabets[random.IntN(len(alphabets))], random.IntN(30))))
		}
	}
	check("a\xff\xfeb", "a\ufffd\ufffdb") // not UTF-8
}

// A text of more characters than are compared has no similarity, whatever bytes they have.
func TestSimilaritiesOfLongTexts(t *testing.T) {
	for _, c := range []string{"a", "ä", "世", "\U0001f600"} {
		for n, want := range map[int]string{maxCompared: "int 256", maxCompared + 1: "null"} {
			long, short := value.Value{Type: value.String, Str: []byte(strings.Repeat(c, n))}, value.Value{Type: value.String, Str: []byte("")}
			for _, args := range [][]*value.Value{{&long, &short}, {&short, &long}} {
				if got := levenshtein(nil, args); typed(got) != want {
					t.Errorf("levenshtein of %d %s = %s, want %s", n, c, typed(got), want)
				}
				if got := jaroWinkler(nil, args); got.IsNull() != (n > maxCompared) {
					t.Errorf("jaro_winkler of %d %s = %s", n, c, typed(got))
				}
			}
		}
	}
}

// Each event of a window may be compared with the event in hand.
func TestSimilaritiesAllocateNothing(t *testing.T) {
	for _, name := range []string{"levenshtein", "jaro_winkler"} {
		e, err := Compile(name+"(status, other)", exprFields, value.Null)
		if err != nil {
			t.Fatal(err)
		}
		values := exprValues()
		values[0], values[1] = textOf([]byte(strings.Repeat("ab", 100))), textOf([]byte(strings.Repeat("äöü", 70)))
		if n := testing.AllocsPerRun(100, func() { _, _ = e.Eval(values) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

func BenchmarkSimilarity(b *testing.B) {
	random := rand.New(rand.NewPCG(7, 8))
	text := func(from rune, n int) []byte {
		s := make([]rune, n)
		for i := range s {
			s[i] = from + random.Int32N(26)
		}
		return []byte(string(s))
	}
	for _, name := range []string{"levenshtein", "jaro_winkler"} {
		e, err := Compile(name+"(status, other)", exprFields, value.Null)
		if err != nil {
			b.Fatal(err)
		}
		for _, of := range []struct {
			script string
			from   rune
		}{{"ASCII", 'a'}, {"Cyrillic", 'а'}} {
			for _, n := range []int{8, 15, 64, 254} {
				b.Run(fmt.Sprintf("%s/%s/%d", name, of.script, n), func(b *testing.B) {
					values := exprValues()
					values[0], values[1] = textOf(text(of.from, n)), textOf(text(of.from, n))
					b.ReportAllocs()
					for b.Loop() {
						if v, err := e.Eval(values); v.IsNull() || err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
