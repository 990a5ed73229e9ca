package backfill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/storetest/plain"
)

// keeping is a namespace whose only partition has been applied to its end by one plan after another.
type keeping struct {
	*testing.T
	store     *plain.Store
	partition state.Partition
}

const newest = 2_000_000_000_000

// keepingSome is a namespace that has applied one event under definitions with these features.
func keepingSome(t *testing.T, names ...string) *keeping {
	k := &keeping{T: t, store: plain.New(2), partition: state.Partition{Topic: "payments"}}
	plan := k.take(names...)
	at := k.partition.WithPlan(plan.Version)
	if _, err := k.store.Place(t.Context(), testkit.FirstPlacement(at, 2, 0)); err != nil {
		t.Fatal(err)
	}
	progress, err := k.store.Progress(t.Context(), []state.Partition{at})
	if err != nil {
		t.Fatal(err)
	}
	b := state.Batch{Ranges: []state.PartitionRange{{Partition: at, To: 1, Epoch: -1, Progress: progress[0]}}, EveryShard: true, Now: newest}
	if err := k.store.NewWriter().Apply(t.Context(), &b); err != nil || b.Ranges[0].Behind {
		t.Fatalf("applying a record: got error %v, range %+v; want the range not behind", err, b.Ranges[0])
	}
	return k
}

// lifetimes are definitions with these features.
func lifetimes(t *testing.T, names ...string) *features.Registry {
	text := "streams: {payment: {topic: payments, timestamp: at, fields: {user: string, a: string, b: string, c: string}}}\nfeatures:\n"
	for _, name := range names {
		text += fmt.Sprintf("  %s: COUNT_DISTINCT(lifetime, payment, user, %s)\n", name, name)
	}
	return defined.Registry(t, text)
}

// take claims the partition for definitions with these features.
func (k *keeping) take(names ...string) *state.Plan {
	k.Helper()
	plan, _, err := k.store.Bind(k.Context(), lifetimes(k.T, names...).Plan())
	if err != nil {
		k.Fatal(err)
	}
	if _, err := k.store.Register(k.Context(), state.Registration{Plan: plan}); err != nil {
		k.Fatal(err)
	}
	if _, err := k.store.Claim(k.Context(), []state.Partition{k.partition}, state.Claimant{Version: plan.Version}); err != nil {
		k.Fatal(err)
	}
	return plan
}

// files fills definitions with these features from files of payments.
func (k *keeping) files(cut state.Cut, files map[string]string, names ...string) *FromFiles {
	k.Helper()
	r := lifetimes(k.T, names...)
	f := &FromFiles{Store: k.store, Definitions: r, Cut: cut, Rate: 1, Trouble: func(err error) { k.Error(err) }}
	folder := k.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			k.Fatal(err)
		}
		file, err := ReadFile(k.Context(), Input{Name: path, Stream: r.Streams[0]}, r, &cut)
		if err != nil {
			k.Fatal(err)
		}
		f.Files = append(f.Files, file)
	}
	slices.SortFunc(f.Files, func(a, b *File) int { return strings.Compare(a.Name, b.Name) })
	return f
}

// over returns what the namespace has over the cut for definitions with these features.
func (k *keeping) over(cut state.Cut, names ...string) (fills []*state.Fill, pending []string, history *state.History) {
	k.Helper()
	b, err := Bind(k.Context(), k.store, lifetimes(k.T, names...))
	if err != nil {
		k.Fatal(err)
	}
	fills, pending, err = b.FillsOver(k.Context(), cut)
	if err != nil {
		k.Fatal(err)
	}
	return fills, pending, b.History
}

var (
	cutHere = state.Cut{Topic: "payments", Until: newest - 1000}
	past    = map[string]string{
		"a.ndjson": `{"at": 1, "user": "u", "a": "1", "b": "1", "c": "1"}`,
		"b.ndjson": `{"at": 2, "user": "u", "a": "2", "b": "2", "c": "2"}`,
	}
)

// Definitions lose features while files are applied. A fill that was therefore given up is not waited for if another
// fill has its columns.
func TestFromFilesWhileDefinitionsChange(t *testing.T) {
	k := keepingSome(t, "a", "b", "c")
	f := k.files(cutHere, past, "a")
	if err := f.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, pending, _ := k.over(cutHere, "a", "b", "c"); !slices.Equal(pending, []string{"a", "b", "c"}) {
		t.Errorf("before processors apply the files, the backfill waits for %v, want a, b and c", pending)
	}
	for _, names := range [][]string{{"a", "b", "c"}, {"a", "b"}, {"a"}} {
		k.take(names...)
	}
	fills, pending, _ := k.over(cutHere, "a")
	if len(fills) != 1 || len(pending) > 0 {
		t.Fatalf("got %d fills, and the backfill waits for %v; want 1 fill and nothing to wait for", len(fills), pending)
	}
	if _, pending, _ := k.over(cutHere, "a", "c"); !slices.Equal(pending, []string{"c"}) {
		t.Errorf("with another feature defined, the backfill waits for %v, want c", pending)
	}
	synctest.Test(t, func(t *testing.T) {
		if err := f.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if _, _, history := k.over(cutHere, "a"); !slices.ContainsFunc(history.Fills, func(e state.FillEpoch) bool { return e.Fill.ID == fills[0].ID && e.Archived }) {
		t.Errorf("no fill %s with all rows of the files among %+v", fills[0].ID, history.Fills)
	}
}

// A part of a fill is filled with it while no plan keeps the part alone.
func TestPartsAreFilledOnce(t *testing.T) {
	k := keepingSome(t, "a", "b")
	if err := k.files(cutHere, past, "a", "b").Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.take("a", "b")
	less, _, err := k.store.Bind(t.Context(), lifetimes(t, "a").Plan())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.store.Register(t.Context(), state.Registration{Plan: less}); err != nil { // it claims nothing
		t.Fatal(err)
	}
	if fills, pending, _ := k.over(cutHere, "a", "b"); len(fills) != 1 || fills[0].In(less) != state.KeptPart || len(pending) > 0 {
		t.Errorf("got the fills %+v, and the backfill waits for %v; want one fill that is kept in part, and nothing to wait for", fills, pending)
	}
}

// Features that cannot be filled, or not completely, are reported by name.
func TestFromFilesReports(t *testing.T) {
	k := keepingSome(t, "a")
	f := k.files(cutHere, past, "a")
	since := int64(1)
	f.Since = &since
	if err := f.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.take("a")
	run := func(f *FromFiles) (err error) {
		synctest.Test(t, func(t *testing.T) { err = f.Run(t.Context()) })
		return err
	}
	some := *f
	some.Files = f.Files[:1]
	missing, is := errors.AsType[*missingFilesError](run(&some))
	if !is || !slices.Equal(missing.Names, []string{f.Files[1].Name}) || !strings.HasSuffix(missing.Error(), "give them too: "+f.Files[1].Name) {
		t.Errorf("without a registered file: got %v, want an error that names it", missing)
	}
	if err := run(f); err != nil {
		t.Error(err)
	}
	later := int64(2)
	f.Since = &later
	if err, is := errors.AsType[*LaterSinceError](f.Register(t.Context())); !is || err.Registered != 1 || err.Stated != 2 {
		t.Errorf("with a later since: got error %v, want one with 1 registered and 2 stated", err)
	}
	other := k.files(state.Cut{Topic: "payments", Until: newest - 5}, past, "a")
	if err := other.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := run(f); !errors.Is(err, errOtherCut) {
		t.Errorf("after files of another cut: got error %v, want %v", err, errOtherCut)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := other.Run(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: got error %v, want context.Canceled", err)
	}
}

// Files of several streams have all events only since the last of these begins. A stream without events before the cut
// begins there.
func TestBeginOfFiles(t *testing.T) {
	file := func(stream string, earliest int64) *File {
		return &File{ArchivedFile: state.ArchivedFile{Stream: stream}, Earliest: earliest}
	}
	for want, files := range map[int64][]*File{
		3:   {file("login", 5), file("login", 3), file("login", state.MaxTime)},
		7:   {file("login", 3), file("payment", 8), file("payment", 7)},
		100: {file("login", 3), file("payment", state.MaxTime)},
	} {
		f := FromFiles{Cut: state.Cut{Until: 100}, Files: files}
		for range 100 { // in whatever order the streams are looked at
			if got := f.begin(); got != want {
				t.Fatalf("files begin at %d, want %d", got, want)
			}
		}
	}
}

// All rows before the cut count for a lifetime, also those before 1970.
func TestFromFilesBefore1970(t *testing.T) {
	k := keepingSome(t, "a")
	f := k.files(cutHere, map[string]string{"a.ndjson": `{"at": -1, "user": "u", "a": "1"}` + "\n" + `{"at": 1, "user": "u", "a": "2"}`}, "a")
	if err := f.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.take("a")
	synctest.Test(t, func(t *testing.T) {
		if err := f.Run(t.Context()); err != nil {
			t.Error(err)
		}
	})
	b, err := Bind(t.Context(), k.store, lifetimes(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	over := slices.IndexFunc(b.Registry.Series, func(s *state.Series) bool { return s.Cut != nil })
	read, err := k.store.Read(t.Context(), []state.Read{{Series: b.Registry.Series[over], Entity: "u"}})
	if err != nil || len(read[0].Members) != 2 {
		t.Errorf("got %+v, error %v; want two values", read, err)
	}
}

// An event counts once that a file has twice, also if the backfill is interrupted between the two rows. Another file is like
// another partition.
func TestFromFilesWithRepeatedEvents(t *testing.T) {
	r := defined.Registry(t, `
streams: {payment: {topic: payments, timestamp: at, id: id, dedup: 1m, fields: {user: string, n: {type: int, required: true}}}}
features: {pays: 'COUNT(lifetime, payment, user)'}
`)
	f := &File{ArchivedFile: state.ArchivedFile{Name: filepath.Join(t.TempDir(), "a.ndjson"), Stream: "payment"}, input: Input{Stream: r.Streams[0]}}
	f.input.Name = f.Name
	rows := []struct {
		text   string
		counts bool
	}{
		{`{"at": 1000, "id": "a", "user": "u", "n": "bad"}`, false},
		{`{"at": 1000, "id": "a", "user": "u", "n": 1}`, true},
		{`{"at": 61000, "id": "a", "user": "u", "n": 1}`, false},
		{`{"at": 61000, "id": "b", "user": "u", "n": 1}`, true},
		{`{"at": 121000, "id": "a", "user": "u", "n": 1}`, false}, // at most a minute after the second
		{`{"at": 121002, "id": "b", "user": "u", "n": 1}`, true},
		{`{"at": 1, "user": "u", "n": 1}`, true},
		{`{"at": 1, "id": "", "user": "u", "n": 1}`, true},
	}
	var text strings.Builder
	for _, row := range rows {
		text.WriteString(row.text + "\n")
	}
	if err := os.WriteFile(f.Name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := ReadFile(t.Context(), f.input, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	for skip := range rows {
		a := &applying{FromFiles: &FromFiles{Cut: state.Cut{Topic: "payments", Until: newest}}, registry: r, fill: r.FillOf(map[*state.Series]bool{r.Series[0]: true}), moment: state.MinTime}
		a.begin(int64(skip))
		if err := a.file(t.Context(), read, 0, int64(skip)); err != nil {
			t.Fatal(err)
		}
		var got, want []int64
		for i := range a.batch.Updates {
			got = append(got, a.batch.Updates[i].Offset)
		}
		for i, row := range rows {
			if i >= skip && row.counts {
				want = append(want, int64(i))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("from row %d on, the rows %v count, want %v", skip, got, want)
		}
	}
}

// The time of the log goes on at each record of a file in envelopes, as in the log: also at one that no stream takes, and at one
// that cannot be used.
func TestTimeOfTheLogInFiles(t *testing.T) {
	r := defined.Registry(t, `
streams: {payment: {topic: payments, match: kind == "pay", timestamp: at, id: id, dedup: 1m, fields: {user: string, n: {type: int, required: true}}}}
features: {pays: 'COUNT(lifetime, payment, user)'}
`)
	for between, want := range map[string]int{
		`{"kind": "pay", "at": 200000, "id": "b", "user": "u", "n": 1}`:     3,
		`{"kind": "other", "at": 200000, "id": "b", "user": "u", "n": 1}`:   2,
		`{"kind": "pay", "at": 200000, "id": "b", "user": "u", "n": "bad"}`: 2,
	} {
		name := filepath.Join(t.TempDir(), "a.ndjson")
		var text strings.Builder
		for i, record := range []string{`{"kind": "pay", "at": 1000, "id": "a", "user": "u", "n": 1}`, between, `{"kind": "pay", "at": 30000, "id": "a", "user": "u", "n": 1}`} {
			fmt.Fprintf(&text, "{\"topic\": \"payments\", \"key\": null, \"timestamp\": %d, \"value\": %s}\n", []int{1000, 200000, 30000}[i], record)
		}
		if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := ReadFile(t.Context(), Input{Name: name, Stream: r.Streams[0]}, r, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := &applying{FromFiles: &FromFiles{Cut: state.Cut{Topic: "payments", Until: newest}}, registry: r, fill: r.FillOf(map[*state.Series]bool{r.Series[0]: true}), moment: state.MinTime}
		a.begin(0)
		if err := a.file(t.Context(), f, 0, 0); err != nil {
			t.Fatal(err)
		}
		if got := len(a.batch.Updates); got != want {
			t.Errorf("with %s between two records with the ID a, %d count, want %d", between, got, want)
		}
	}
}
