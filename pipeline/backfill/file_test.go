package backfill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/objectstore"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

const payments = `
streams: {payment: {topic: payments, match: kind == "pay", timestamp: at, max_future: 1s, fields: {user: string, cents: int}}}
features:
  big: COUNT(30d, payment, user, where='100 / cents > 0')
`

// fileOf writes a file and reads it.
func fileOf(t *testing.T, name, text, recordTime string) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := defined.Registry(t, payments)
	f, err := ReadFile(t.Context(), Input{Name: path, Stream: r.Streams[0], RecordTime: recordTime}, r, &state.Cut{Topic: "payments", Until: 1000})
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), path, name))
	}
	return f, err
}

// A file is read to its end before anything is applied. Its events are counted, and errors state their place.
func TestReadFile(t *testing.T) {
	f, err := fileOf(t, "a.ndjson", `{"kind":"pay","at":1000,"user":"a","cents":1}
{"kind":"pay","at":999,"user":"a","cents":1}
{"kind":"other","at":3}

{"kind":"pay","at":500,"user":"a","cents":1}
{"kind":"pay","at":"x","user":"a","cents":1}
{"kind":"pay","at":7,"user":"a","cents":0}
no JSON
`, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.Rows, f.Events, f.Before, f.Earliest, f.Unusable); got != "7 6 3 7 2" {
		t.Errorf("rows, events, events before the cut, earliest time, unusable rows: %s, want 7 6 3 7 2", got)
	}
	if got := f.Reason.Error(); !strings.HasSuffix(got, "a.ndjson:6: stream payment: at: expected an RFC 3339 timestamp of the years 1 to 9999, such as 2026-01-31T23:59:59.999Z, found a string") &&
		!strings.Contains(got, "a.ndjson:6: stream payment: at: expected a timestamp") {
		t.Errorf("the first reason is %s, want that row 6 has no timestamp", got)
	}
	for want, c := range map[string][3]string{
		"a.ndjson: none of its 1 events belongs to stream payment, which takes events with match kind == \"pay\"": {"a.ndjson", `{"kind":"x"}`},
		`a.ndjson: none of its 1 events belongs to stream payment, which takes events with match kind == "pay" (it is no envelope, because of its member "more": ` +
			`an envelope has topic, key, value and perhaps timestamp, partition, offset and headers)`: {"a.ndjson", `{"topic":"payments","value":{"kind":"pay"},"more":3}`},
		"a.txt is none of .csv, .ndjson, .avro and .parquet, the first two also .gz or .zst": {"a.txt", "x"},
		`a.csv:1: field cents of payment: unknown column "cents"; known: at, kind, user`:     {"a.csv", "kind,at,user\npay,1,a\n"},
		`a.ndjson.gz: the compressed data ends early: this is not all of the file`:           {"a.ndjson.gz", "x"},
	} {
		if _, err := fileOf(t, c[0], c[1], ""); fmt.Sprint(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r := defined.Registry(t, payments)
	if _, err := ReadFile(ended, Input{Name: f.Name, Stream: r.Streams[0]}, r, &state.Cut{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: got error %v, want context.Canceled", err)
	}
}

// A cell of another type than its field matters only in events of the stream, which then cannot be used.
func TestCellsOfOtherTypes(t *testing.T) {
	f, err := fileOf(t, "a.csv", "kind,at,user,cents\npay,1,a,1\nother,n/a,a,n/a\npay,2,a,x\npay,3,a,2\n", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.Rows, f.Events, f.Before, f.Unusable); got != "4 3 2 1" {
		t.Errorf("rows, events, events before the cut, unusable rows: %s, want 4 3 2 1", got)
	}
	if want := "a.csv:4: stream payment: cents: expected a 64-bit integer, found a string"; f.Reason == nil || !strings.HasSuffix(f.Reason.Error(), want) {
		t.Errorf("the reason is %v, want %s", f.Reason, want)
	}
}

// The time of a record, if it is known, decides whether its event lies too far in the future.
func TestRecordTimes(t *testing.T) {
	const early = `{"kind":"pay","at":5000,"user":"a","cents":1,"came":%d}`
	for came, unusable := range map[int64]int64{4000: 0, 3999: 1} {
		f, err := fileOf(t, "a.ndjson", fmt.Sprintf(early, came), "came")
		if err != nil || f.Unusable != unusable {
			t.Errorf("a record of %d: %+v, error %v; want %d unusable rows", came, f, err, unusable)
		}
	}
	f, err := fileOf(t, "a.ndjson", `{"topic":"payments","key":null,"timestamp":3999,"value":{"kind":"pay","at":5000,"user":"a","cents":1}}`, "")
	if err != nil || f.Unusable != 1 {
		t.Errorf("a record with the time of its envelope: %+v, error %v; want 1 unusable row", f, err)
	}
}

// The field of a record's time is read in the unit that the stream names for it.
func TestUnitsOfRecordTimes(t *testing.T) {
	r := defined.Registry(t, `
streams: {payment: {topic: payments, timestamp: {path: at, unit: s}, max_future: 1s, fields: {user: string, came: {type: timestamp, unit: datetime}}}}
features: {count: "COUNT(30d, payment, user)"}
`)
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("at,user,came\n1700000000,u,2023-11-14 22:13:20\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, recordTime := range []string{"at", "came"} {
		f, err := ReadFile(t.Context(), Input{Name: path, Stream: r.Streams[0], RecordTime: recordTime}, r, nil)
		if err != nil || f.Events != 1 || f.Unusable != 0 {
			t.Errorf("%s: error %v, file %+v; want one usable event", recordTime, err, f)
		}
	}
}

// A file that is hashed is let go when the command is interrupted.
func TestInterruptedHash(t *testing.T) {
	f := &File{ArchivedFile: state.ArchivedFile{Name: filepath.Join(t.TempDir(), "in.csv")}}
	if err := os.WriteFile(f.Name, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.hash(ended); err != context.Canceled || f.Hash != "" {
		t.Errorf("got error %v and hash %q, want that it is canceled", err, f.Hash)
	}
}

// A file must not change after it was read or registered.
func TestChangedFiles(t *testing.T) {
	const text = `{"kind":"pay","at":5,"user":"a","cents":1}`
	f, err := fileOf(t, "a.ndjson", text, "")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := f.open(t.Context()); err != nil {
		t.Error(err)
	} else {
		r.close()
	}
	if err := os.Chtimes(f.Name, time.Time{}, time.UnixMilli(5)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.open(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "a.ndjson was changed while it was backfilled: it must stay as it is") {
		t.Errorf("a file that was changed while it was read: got error %v", err)
	}
	cut := state.Cut{Topic: "payments", Until: 1000}
	registered := f.ArchivedFile
	archives := []*state.Archive{state.NewArchive(state.Archive{Cut: cut, Files: []state.ArchivedFile{registered}}, nil)}
	if err := checkNames([]*File{f}, archives); err != nil {
		t.Error(err)
	}
	f.Hash = "other"
	if err := checkNames([]*File{f}, archives); err == nil || !strings.Contains(err.Error(), "a.ndjson was changed since it was backfilled, when it had 1 rows") {
		t.Errorf("a file that was changed since it was registered: got error %v", err)
	}
	f.Name = "b.ndjson"
	if err := checkNames([]*File{f}, archives); err != nil {
		t.Error(err)
	}
}

// An object is the same file as one on the disk with its content, and must stay as it was read.
func TestObjects(t *testing.T) {
	const text = `{"kind":"pay","at":5,"user":"a","cents":1}` + "\n"
	local, err := fileOf(t, "a.ndjson", text, "")
	if err != nil {
		t.Fatal(err)
	}
	b, r := objectstore.New(t), defined.Registry(t, payments)
	read := func(name string) *File {
		t.Helper()
		f, err := ReadFile(t.Context(), Input{Name: name, Stream: r.Streams[0]}, r, &state.Cut{Topic: "payments", Until: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := read(b.Put(t, "dir//a.ndjson", []byte(text)))
	if !f.Same(&local.ArchivedFile) || f.Name != b.URL("dir//a.ndjson") || f.Before != 1 {
		t.Errorf("got %+v, want the same as %+v", f, local)
	}
	rows, err := f.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows.close()
	b.Put(t, "dir//a.ndjson", []byte(strings.Replace(text, "5", "6", 1)))
	if _, err := f.open(t.Context()); fmt.Sprint(err) != f.Name+" was changed while it was backfilled: it must stay as it is" {
		t.Errorf("an object that was changed while it was read: got error %v", err)
	}
	if read(f.Name).Same(&f.ArchivedFile) {
		t.Error("a replaced object counts as the same file")
	}
}

// The log must go on where files end.
func TestBeginsAfter(t *testing.T) {
	cut := &state.Cut{Topic: "payments", Until: 9010}
	for name, c := range map[string]struct {
		log   fetch.Log
		first fetch.Dated
		since int64
		later bool
	}{
		"it goes further back":      {fetch.Log{Start: 5, End: 100}, fetch.Dated{Offset: 70, Timestamp: 9003}, state.MinTime, false},
		"it has everything":         {fetch.Log{Start: 0, End: 100}, fetch.Dated{Offset: 0, Timestamp: 9500}, state.MinTime, false},
		"it begins later":           {fetch.Log{Start: 5, End: 100}, fetch.Dated{Offset: 5, Timestamp: 9100}, 9101, true},
		"nothing was written since": {fetch.Log{Start: 5, End: 100}, fetch.Dated{Offset: -1}, state.MinTime, false},
	} {
		b := &fakeBrokers{logs: []fetch.Log{c.log}, dated: []fetch.Dated{c.first}}
		since, later, err := BeginsAfter(t.Context(), b, cut, make([]state.Partition, 1))
		if err != nil || since != c.since || later != c.later || b.moment != 9010 {
			t.Errorf("%s: got since %d, later %v, error %v, asked of %d; want %d, %v, none, 9010", name, since, later, err, b.moment, c.since, c.later)
		}
	}
	if matters(features.FillReach{Forever: true, After: 7}, 100) != 7 || matters(features.FillReach{Reach: 50, After: 70}, 100) != 70 || matters(features.FillReach{Reach: 10, After: 70}, 100) != 90 {
		t.Error("records are needed from another moment than the later of the cut and the reach")
	}
}

// A line of JSON is a record as in its topic, with the envelope of its format; a row of a table has columns for the paths.
func TestFormatsOfFiles(t *testing.T) {
	r := defined.Registry(t, `
streams:
  change: {topic: changes, format: debezium, timestamp: at, fields: {user: string, op: {type: string, path: __op}}}
features:
  changes: COUNT(30d, change, user, per=op)
`)
	for name, text := range map[string]string{
		"a.ndjson": `{"op":"c","after":{"at":7,"user":"u"}}` + "\n" + `{"op":"d","before":{"at":8,"user":"u"}}` + "\n",
		"b.csv":    "at,user,__op\n7,u,c\n8,u,d\n",
		"c.ndjson": `{"topic":"changes","value":{"op":"c","after":{"at":7,"user":"u"}}}` + "\n" + `{"topic":"changes","value":null}` + "\n" +
			`{"topic":"changes","value":{"op":"c","after":{"at":8,"user":"u"}}}` + "\n",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := ReadFile(t.Context(), Input{Name: path, Stream: r.Streams[0]}, r, nil)
		if err != nil || f.Events != 2 || f.Unusable != 0 || f.Earliest != 7 || f.Latest != 8 {
			t.Errorf("%s: %+v, error %v", name, f, err)
		}
	}
}
