package source

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/weir-stream/weir/internal/testkit/objectstore"
)

// goldenFiles are the golden events in every format, by name.
func goldenFiles(t *testing.T) map[string][]byte {
	files := map[string][]byte{"in.parquet": goldenParquet(t), "in.avro": goldenAvro(t)}
	for _, name := range []string{"in.csv", "in.csv.gz", "in.csv.zst"} {
		files[name] = packed(t, name, golden)
	}
	for _, name := range []string{"in.ndjson", "in.jsonl.gz", "in.ndjson.zst"} {
		files[name] = packed(t, name, goldenLines)
	}
	return files
}

// An object gives the same events as a file with its content, also if connections break.
func TestObjects(t *testing.T) {
	b, stream := objectstore.New(t), goldenStream(t)
	for name, content := range goldenFiles(t) {
		want, err := eventsOf(t, write(t, name, content), stream)
		if err != nil || len(want) != 3 {
			t.Fatal(want, err)
		}
		object := b.Put(t, name, content)
		for _, before := range []objectstore.Handler{nil, objectstore.CutAfter(50)} {
			b.Before(before)
			if got, err := eventsOf(t, object, stream); err != nil || !cmp.Equal(got, want) {
				t.Errorf("%s, connections cut: %v (-want +got)\n%serror %v", name, before != nil, cmp.Diff(want, got), err)
			}
		}
	}
	b.Before(nil)
	for pattern, want := range map[string]int{"": 8, "*.csv*": 3, "in.csv": 1} {
		b.Put(t, "other.txt", nil)
		files, _, err := Files(t.Context(), b.URL(pattern))
		if err != nil || len(files) != want || !slices.IsSorted(files) {
			t.Errorf("%q: got %q (%v), want %d sorted", pattern, files, err, want)
		}
	}
	none := b.URL("o*") + ": there is no .csv, .ndjson, .avro or .parquet"
	if _, _, err := Files(t.Context(), b.URL("o*")); fmt.Sprint(err) != none {
		t.Errorf("got %v, want %s", err, none)
	}
}

// An object that the store no longer gives is not called a damaged file.
func TestRefusedObjects(t *testing.T) {
	b, stream := objectstore.New(t), goldenStream(t)
	b.Before(func(w http.ResponseWriter, r *http.Request, store http.Handler) {
		if r.Method == http.MethodGet {
			objectstore.Refuse(w, http.StatusForbidden, "AccessDenied", "no")
			return
		}
		store.ServeHTTP(w, r)
	})
	const denied = ": access is denied (AccessDenied: no): an object needs s3:GetObject, a folder or a pattern s3:ListBucket"
	lines := map[string]string{".csv": ":1", ".ndjson": ":1", ".zst": ":1"}
	for name, content := range goldenFiles(t) {
		object := b.Put(t, name, content)
		if _, err := eventsOf(t, object, stream); fmt.Sprint(err) != object+lines[filepath.Ext(name)]+denied {
			t.Errorf("%s: got error %v, want that access is denied", name, err)
		}
	}
}

// An object that is paused before it is read is asked about once.
func TestPausedObject(t *testing.T) {
	b, stream := objectstore.New(t), goldenStream(t)
	var asked atomic.Int64
	b.Before(func(w http.ResponseWriter, r *http.Request, store http.Handler) {
		if r.Method == http.MethodHead {
			asked.Add(1)
		}
		store.ServeHTTP(w, r)
	})
	f, err := Open(t.Context(), b.Put(t, "in.csv.gz", goldenFiles(t)["in.csv.gz"]), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Pause(); err != nil {
		t.Fatal(err)
	}
	events, err := f.Events(stream)
	if err == nil {
		err = events.Next(&Event{})
	}
	if err != nil || asked.Load() != 1 {
		t.Errorf("got error %v, and %d requests about the object, want 1", err, asked.Load())
	}
}

// Of a Parquet object only the columns that are needed are requested, in pieces that do not fill the memory.
func TestParquetObjectIsReadInParts(t *testing.T) {
	type row struct {
		At   int64  `parquet:"at"`
		Text string `parquet:"text"`
	}
	random := rand.New(rand.NewPCG(1, 2))
	rows := make([]row, 400_000)
	for i := range rows {
		rows[i] = row{random.Int64(), strings.Repeat(fmt.Sprint(random.Uint64()), 2)}
	}
	var out bytes.Buffer
	if err := parquet.Write(&out, rows, parquet.MaxRowsPerRowGroup(300_000)); err != nil {
		t.Fatal(err)
	}
	b := objectstore.New(t)
	object := b.Put(t, "a.parquet", out.Bytes())
	var requests, greatest, sum atomic.Int64
	b.Before(func(w http.ResponseWriter, r *http.Request, store http.Handler) {
		var from, to int64
		if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); n == 2 {
			requests.Add(1)
			sum.Add(to + 1 - from)
			greatest.Store(max(greatest.Load(), to+1-from))
		}
		store.ServeHTTP(w, r)
	})
	f, err := Open(t.Context(), object, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := f.Table()
	if err != nil {
		t.Fatal(err)
	}
	table.Select([]int{0})
	for i := range rows {
		cells, err := table.Next()
		if want := fmt.Sprint(rows[i].At); err != nil || string(cells[0].Text) != want {
			t.Fatalf("row %d: got %s, want %s (%v)", i, cells[0].Text, want, err)
		}
	}
	const column = 400_000 * 8
	if sum.Load() > column*5/4 || greatest.Load() > objectBuffer || requests.Load() > 20 {
		t.Errorf("too much was read: %d of %d bytes in %d requests, the greatest of %d", sum.Load(), out.Len(), requests.Load(), greatest.Load())
	}
	t.Logf("%d bytes of %d in %d requests, the greatest of %d", sum.Load(), out.Len(), requests.Load(), greatest.Load())
}
