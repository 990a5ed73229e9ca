package extsort

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// add adds an item in a batch of its own.
func add(s *Sorter, key Key, data []byte) error {
	var b Batch
	b.Add(key, data)
	return s.Add(&b)
}

type added struct {
	Key
	text string
}

func drain(t *testing.T, it *Iterator) (got []added) {
	t.Helper()
	for {
		key, data, err := it.Next()
		if err == io.EOF {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, added{key, string(data)})
	}
}

// Items come out in the order of their keys, and in insertion order for equal keys: from memory,
// from runs on disk, and from more runs than are merged at a time.
func TestSorted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, c := range []struct {
		memory int64
		fanIn  int
		n      int
	}{{1 << 20, fanIn, 5000}, {4000, fanIn, 5000}, {400, 3, 3000}, {1, 2, 300}, {1 << 20, fanIn, 0}} {
		random := rand.New(rand.NewPCG(1, uint64(c.memory)))
		s := New(c.memory)
		s.fanIn = c.fanIn
		var want []added
		var batch Batch
		for i := range c.n {
			a := added{Key{Time: random.Int64N(500) - 250, Order: uint8(random.IntN(3))}, strings.Repeat("x", random.IntN(40)) + fmt.Sprint(i)}
			want = append(want, a)
			if batch.Add(a.Key, []byte(a.text)); random.IntN(3) > 0 && i < c.n-1 {
				continue
			}
			if err := s.Add(&batch); err != nil {
				t.Fatal(err)
			}
			batch.Reset()
		}
		slices.SortStableFunc(want, func(a, b added) int { return a.Compare(b.Key) })
		it, err := s.Sorted()
		if err != nil {
			t.Fatal(err)
		}
		if got := drain(t, it); !slices.Equal(got, want) {
			t.Errorf("%+v: the items are out of order", c)
		}
		var size int64
		for _, a := range want {
			size += int64(len(a.text))
		}
		if s.Bytes() < size || s.Bytes() > size+20*int64(c.n) {
			t.Errorf("%+v: %d bytes of items with %d", c, s.Bytes(), size)
		}
		if s.Len() != c.n || (s.Spilled() > 0) != (c.memory < 1<<20) {
			t.Errorf("%+v: unexpected number of items, %d, or of spilled bytes, %d", c, s.Len(), s.Spilled())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left behind: %v, %v", left, err)
	}
}

// Items in order form a single run on disk, however many there are: nothing is merged. In memory they take several
// blocks, each of which is let go once it is read.
func TestOrderedItemsAreOneRun(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for memory, runs := range map[int64]int{20_000: 1, 1 << 30: 0} {
		s := New(memory)
		const n = 3000
		for i := range n {
			if err := add(s, Key{Time: int64(i / 2)}, fmt.Appendf(nil, "%d%1000d", i, 0)); err != nil {
				t.Fatal(err)
			}
		}
		it, err := s.Sorted()
		if err != nil {
			t.Fatal(err)
		}
		if len(s.runs) != runs {
			t.Errorf("%d runs, want %d", len(s.runs), runs)
		}
		got := drain(t, it)
		if len(got) != n {
			t.Errorf("%d items, want %d", len(got), n)
		}
		for i, item := range got {
			if !strings.HasPrefix(item.text, fmt.Sprint(i, " ")) || item.Time != int64(i/2) {
				t.Fatalf("item %d is %.10s at %d", i, item.text, item.Time)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// If the disk is full, the error says what to do.
func TestFullDisk(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	err := add(New(1), Key{}, []byte("x"))
	if err == nil || !strings.Contains(err.Error(), "sort on disk (TMPDIR says where): ") {
		t.Error(err)
	}
}
