package materialize

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/weir-stream/weir/materialize/extsort"
)

// Entities are replayed one after another, each in its own time: events that are far ahead in the same block do not
// make another entity's events too old.
func TestEntitiesInABlock(t *testing.T) {
	event := func(day, user, id string) string {
		return `{"at":"2026-` + day + ` 10:00:00","kind":{"name":"pay"},"meta":{"id":"` + id + `"},"who":{"user":"` + user + `","device":"d"},"amount":1}` + "\n"
	}
	var in strings.Builder
	want := "meta.id,paid\n"
	for i := range 4 { // blocks of the tests have five moments
		user := fmt.Sprint("u", i)
		in.WriteString(event("01-01", user, user))
		want += user + ",1\n"
	}
	in.WriteString(event("12-01", "late", "late"))
	want += "late,1\n"
	got, _, err := materialize(t, load(t, definitions), "pay", "ndjson", in.String(), "paid")
	if err != nil || got != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
}

// Blocks are bounded by their bytes as well, so that long texts take no more memory, but each has a moment.
func TestBytesOfABlock(t *testing.T) {
	const n, size = 100, 20_000
	for limit, most := range map[int]int{1: 1, 100_000: 5, 110_000: 6, 1 << 30: n} {
		sorter := extsort.New(1 << 30)
		var batch extsort.Batch
		for i := range n {
			batch.Add(extsort.Key{Time: int64(i)}, make([]byte, size))
		}
		if err := sorter.Add(&batch); err != nil {
			t.Fatal(err)
		}
		sorted, err := sorter.Sorted()
		if err != nil {
			t.Fatal(err)
		}
		var b block
		next := 0
		for b.read(sorted, 1<<10, size, limit) != io.EOF {
			for _, key := range b.keys {
				if key.Time != int64(next) {
					t.Fatalf("moment %d comes after %d others", key.Time, next)
				}
				next++
			}
			if len(b.keys) != most && next < n || cap(b.text) > 2*(limit+size) {
				t.Errorf("limit %d: a block has %d moments, want %d, and takes %d bytes", limit, len(b.keys), most, cap(b.text))
			}
		}
		if next != n {
			t.Errorf("limit %d: %d moments, want %d", limit, next, n)
		}
	}
	for memory, want := range map[int64]int{0: DefaultMemory / 2, 1: 1 << 20, 1 << 30: 1 << 29} {
		if got := (&Replay{Memory: memory}).textBytes(); got != want {
			t.Errorf("of %d bytes of memory a block may take %d, want %d", memory, got, want)
		}
	}
}
