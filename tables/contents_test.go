package tables

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// defined compiles the table m of definitions.
func defined(t testing.TB, table string) *features.Table {
	t.Helper()
	file := filepath.Join(t.TempDir(), "d.yaml")
	if err := os.WriteFile(file, []byte("tables:\n  m: "+table+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := definition.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return r.Tables[0]
}

// sent is a record of a table's topic, at a time of its own. Its row is deleted without a value.
type sent struct {
	partition int32
	time      int64
	key       string // of the record; empty for none
	value     string // empty for no value at all
}

func (s *sent) record(offset int) *record.Record {
	r := &record.Record{Partition: state.Partition{Topic: "t", ID: s.partition}, Offset: int64(offset), Timestamp: s.time}
	if s.key != "" {
		r.Key = []byte(s.key)
	}
	if s.value != "" {
		r.Value = []byte(s.value)
	}
	return r
}

func take(t interface{ Fatal(...any) }, c *Contents, all []sent) {
	for i, s := range all {
		if _, err := c.Take(s.record(i)); err != nil {
			t.Fatal(err)
		}
	}
}

func valueOf(c *Contents, key string, at int64) string {
	row := c.Find(key, at)
	if row == nil {
		return ""
	}
	return string(row.Values[1].AppendText(nil))
}

var rowKeys = []string{"a", "b", `c\|d`}

// drawSent draws records of a topic. Their times may go back, and rows may say that they hold since before their record, or after it.
func drawSent(t *rapid.T, keyed bool, partitions int32) []sent {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sent {
		s := sent{partition: rapid.Int32Range(0, partitions-1).Draw(t, "partition"), time: rapid.Int64Range(0, 9).Draw(t, "time")}
		id := rapid.SampledFrom([]string{"a", "b", "c|d"}).Draw(t, "row")
		if keyed {
			s.key = rapid.SampledFrom([]string{"a", "b", "x"}).Draw(t, "key")
		}
		since := rapid.OneOf(rapid.Just(s.time), rapid.Int64Range(0, 9)).Draw(t, "since")
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return s // a tombstone
		case 1:
			s.value = "not JSON"
		case 2:
			s.value = fmt.Sprintf(`{"id":%q,"since":%d,"kind":"other"}`, id, since)
		default:
			s.value = fmt.Sprintf(`{"id":%q,"since":%d,"v":%d}`, id, since, rapid.IntRange(0, 99).Draw(t, "value"))
		}
		return s
	}), 0, 30).Draw(t, "records")
}

const modelled = `{topic: t, key: id, timestamp: since, match: kind != "other" or kind == nil, fields: {v: int}}`

// modelRow is what a plain loop over all records says about a row at a moment: of those that hold by then the last of each record key
// counts, or without keys the newest, and of these the newest.
func modelRow(all []sent, key string, keep Keep, at int64) string {
	type id struct {
		partition int32
		key       string
	}
	type found struct {
		time, from int64
		of         id
		n          int
		value      string
	}
	from, last := map[id]int64{}, map[id]found{}
	for n, s := range all {
		f, isRow := found{time: s.time, of: id{s.partition, s.key}, n: n}, false
		var row struct {
			ID, Kind string
			Since    int64
			V        int
		}
		if json.Unmarshal([]byte(s.value), &row) == nil && row.Kind != "other" {
			f.time, isRow = min(row.Since, s.time), true
			if strings.ReplaceAll(row.ID, "|", `\|`) == key {
				f.value = fmt.Sprint(row.V)
			}
		}
		switch {
		case s.key == "" && f.value == "":
			continue // it is about another row, or about none
		case keep == AsReceived:
			f.from = s.time
		default:
			f.from = f.time
		}
		if held, said := from[f.of]; said && s.key != "" {
			f.from = max(f.from, held) // what is said later holds later
		} else if !isRow {
			continue // there is nothing to delete
		}
		from[f.of] = f.from
		if keep != Newest && f.from > at || s.key == "" && last[f.of].time > f.time {
			continue
		}
		last[f.of] = f
	}
	newest := slices.SortedFunc(maps.Values(last), func(a, b found) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(b.of.partition, a.of.partition), cmp.Compare(b.n, a.n))
	})
	for _, f := range newest {
		if f.value != "" {
			return f.value
		}
	}
	return ""
}

// A table holds what a plain loop over its topic finds, whatever of it compaction has removed, and in whatever order the
// partitions are read.
func TestContents(t *testing.T) {
	table := defined(t, modelled)
	rapid.Check(t, func(t *rapid.T) {
		all := drawSent(t, true, 3)
		whole := New(table)
		take(t, whole, all)
		var compacted []sent
		for i, s := range all {
			if !slices.ContainsFunc(all[i+1:], func(later sent) bool { return later.partition == s.partition && later.key == s.key }) {
				if s.value != "" {
					compacted = append(compacted, s)
				}
			}
		}
		slices.SortStableFunc(compacted, func(a, b sent) int { return -cmp.Compare(a.partition, b.partition) })
		again := New(table)
		take(t, again, compacted)
		for _, key := range rowKeys {
			want := modelRow(all, key, Newest, 0)
			if got := valueOf(whole, key, 0); got != want {
				t.Fatalf("%s: got %q, want %q", key, got, want)
			}
			if got := valueOf(again, key, 0); got != want {
				t.Fatalf("%s: got %q from the compacted topic, want %q", key, got, want)
			}
		}
		rows, bytes := whole.Rows()
		others, other := again.Rows()
		if rows != others || bytes != other || len(whole.written) != rows {
			t.Fatalf("%d rows of %d bytes, after compaction %d of %d; %d record keys", rows, bytes, others, other, len(whole.written))
		}
	})
}

// A history has the rows that hold at each moment. As received, these are what the contents were when all records up to it had been
// taken, unless the times of records go back.
func TestHistory(t *testing.T) {
	table := defined(t, modelled)
	rapid.Check(t, func(t *rapid.T) {
		keyed, inOrder := rapid.Bool().Draw(t, "keyed"), rapid.Bool().Draw(t, "in order")
		all := drawSent(t, keyed, 2)
		if inOrder {
			slices.SortStableFunc(all, func(a, b sent) int { return cmp.Compare(a.time, b.time) })
		}
		whole := New(table)
		take(t, whole, all)
		for _, keep := range []Keep{History, AsReceived} {
			history := New(table).Keeping(keep)
			take(t, history, all)
			if got, _ := history.Rows(); got != len(whole.written) {
				t.Fatalf("kept %d, a history of %d rows counts %d", keep, len(whole.written), got)
			}
			for at := int64(-1); at < 11; at++ {
				then := New(table)
				if inOrder {
					n, _ := slices.BinarySearchFunc(all, at+1, func(s sent, at int64) int { return cmp.Compare(s.time, at) })
					take(t, then, all[:n])
				}
				for _, key := range rowKeys {
					got, want := valueOf(history, key, at), modelRow(all, key, keep, at)
					if got != want {
						t.Fatalf("kept %d, %s at %d: got %q, want %q", keep, key, at, got, want)
					}
					if was := valueOf(then, key, 0); inOrder && keep == AsReceived && got != was {
						t.Fatalf("%s at %d: got %q, but then it was %q", key, at, got, was)
					}
				}
			}
		}
	})
}

// Of records without a key, as of files, the newest counts, in a history and now, in whatever order rows and their
// removals stand. What does not say since when has always held.
func TestFilesInAnyOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "entries.ndjson")
	list := features.NewList("cards", "lists", value.String)
	list.MaxRows, list.MaxBytes = 9, 1<<20
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			value, who string
			removed    bool
		}
		entries := make([]entry, 10) // the position is the second
		var lines []string
		for second := range entries {
			e := entry{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "value"), fmt.Sprint("w", second), rapid.Bool().Draw(t, "removed")}
			entries[second] = e
			since := ""
			if second > 0 {
				since = fmt.Sprintf(`,"since":"1970-01-01T00:00:%02dZ"`, second)
			}
			lines = append(lines, fmt.Sprintf(`{"value":%q,"who":%q,"removed":%t%s}`, e.value, e.who, e.removed, since))
		}
		text := strings.Join(rapid.Permutation(lines).Draw(t, "file"), "\n")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		history, err := ReadFile(t.Context(), list, file, History)
		if err != nil {
			t.Fatal(err)
		}
		newest, err := ReadFile(t.Context(), list, file, Newest)
		if err != nil {
			t.Fatal(err)
		}
		who := func(c *Contents, key string, at int64) string {
			row := c.Find(key, at)
			if row == nil {
				return ""
			}
			return string(row.Values[features.ListWho].Str)
		}
		for _, key := range []string{"a", "b"} {
			want := ""
			for second, e := range entries {
				if e.value == key {
					if want = e.who; e.removed {
						want = ""
					}
				}
				at := 1000 * int64(second)
				if second == 0 {
					at = -1e12
				}
				if got := who(history, key, at); got != want {
					t.Fatalf("%s in second %d: got %q, want %q", key, second, got, want)
				}
			}
			if got := who(newest, key, 0); got != want {
				t.Fatalf("%s now: got %q, want %q", key, got, want)
			}
		}
	})
}

// A row that was written after its own timestamp could not be looked up before.
func TestRowsWrittenLate(t *testing.T) {
	table := defined(t, "{topic: t, key: id, timestamp: at, fields: {v: int}}")
	for keep, want := range map[Keep]string{History: " 1 1  2", AsReceived: "    2"} {
		c := New(table).Keeping(keep)
		take(t, c, []sent{
			{time: 5_000_000_000_300, key: "a", value: `{"id":"a","at":5000000000100,"v":1}`},
			{time: 5_000_000_000_300, key: "b", value: `{"id":"b","at":5000000000300,"v":2}`},
		})
		var got []string
		for _, at := range []int64{5_000_000_000_099, 5_000_000_000_100, 5_000_000_000_299} {
			got = append(got, valueOf(c, "a", at))
		}
		got = append(got, valueOf(c, "b", 5_000_000_000_299), valueOf(c, "b", 5_000_000_000_300))
		if got := strings.Join(got, " "); got != want {
			t.Errorf("kept %d: got %q, want %q", keep, got, want)
		}
	}
}

// Of records without a key, as of files, the newest counts, wherever it stands.
func TestNewestOfAFile(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	timed := defined(t, "{file: f.csv, key: id, timestamp: {path: since, unit: datetime}, fields: {v: int}}")
	rows := write("rows.csv", "id,v,since,more\na,2,2026-02-01 00:00:00,x\na,1,2026-01-01 00:00:00,x\nb,3,2026-01-01 00:00:00,\nb,4,2026-01-01 00:00:00,\n")
	for keep, want := range map[Keep]string{Newest: "2 2 2 4", History: " 1 2 4", AsReceived: " 1 2 4"} {
		c, err := ReadFile(t.Context(), timed, rows, keep)
		if err != nil {
			t.Fatal(err)
		}
		const january, february = 1767225600000, 1769904000000
		if got := valueOf(c, "a", january-1) + " " + valueOf(c, "a", february-1) + " " + valueOf(c, "a", february) + " " + valueOf(c, "b", january); got != want {
			t.Errorf("kept %d: got %q, want %q", keep, got, want)
		}
	}
	plain := defined(t, "{file: f.csv, key: id, max_rows: 2, fields: {v: int}}")
	for name, want := range map[string]string{
		write("a.ndjson", "{\"id\":\"a\",\"v\":1}\n{\"id\":\"a\",\"v\":2}\n{\"id\":\"b\",\"v\":null}\n"): "",
		write("empty.ndjson", ""):                                  "",
		write("b.ndjson", "{\"id\":\"a\",\"v\":1}\n{\"v\":2}\n"):   "b.ndjson:2: id: the field id is required",
		write("c.csv", "id,v\na,1\n,2\n"):                          "c.csv:3: id: the field id is required",
		write("d.csv", "id,w\na,1\n"):                              `d.csv:1: field v of m: unknown column "v"; known: id, w`,
		write("e.csv", "id,v\na,1\nb,much\n"):                      "e.csv:3: v: expected a 64-bit integer, found a string",
		write("f.csv", "id,v\na,1\nb,2\na,3\n"):                    "",
		write("g.csv", "id,v\na,1\nb,2\nc,3\n"):                    "table m has more than 2 rows, its max_rows: the table is too large",
		write("h.ndjson", `{"topic":"o","value":{"id":"a"}}`+"\n"): "h.ndjson:1: the envelope is of topic o, not of m",
		filepath.Join(folder, "none.csv"):                          "none.csv: no such file or directory",
		write("i.ndjson", `{"topic":"m","value":{"id":"a"}}`+"\n"): "",
	} {
		c, err := ReadFile(t.Context(), plain, name, Newest)
		if err == nil {
			err = errors.New("")
		} else if c != nil {
			t.Errorf("%s: contents beside the error %v", name, err)
		}
		if got := strings.ReplaceAll(err.Error(), folder+"/", ""); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// A file has the records of a table's topic, with their keys, in envelopes; else, of a list, its entries, from when on they hold.
func TestRecordsOfAFile(t *testing.T) {
	folder := t.TempDir()
	table := defined(t, "{topic: t, key: id, fields: {v: int}}")
	list := features.NewList("cards", "lists", value.String)
	list.MaxRows, list.MaxBytes = 9, 1<<20
	const at = `"timestamp":`
	for n, c := range []struct {
		table     *features.Table
		name      string
		text      string
		key, want string // the value, or who wrote it, at 500, 1500 and 2500 ms
	}{
		{table, "topic.ndjson", `{"topic":"t","key":"k",` + at + `1000,"value":{"id":"a","v":1}}
{"topic":"t","key":"k",` + at + `2000,"value":null}`, "a", " 1 "},
		{table, "keys.ndjson", `{"topic":"t","key":{"id":1},` + at + `1000,"value":{"id":"a","v":1}}
{"topic":"t","key":{"id":1},` + at + `2000,"value":{"id":"b","v":1}}`, "a", " 1 "},
		{table, "keyless.ndjson", `{"topic":"t","key":null,` + at + `2000,"value":{"id":"a","v":2}}
{"topic":"t",` + at + `1000,"value":{"id":"a","v":1}}`, "a", " 1 2"},
		{list, "topic.ndjson", `{"topic":"lists","key":"cards/c",` + at + `1000,"value":{"list":"cards","value":"c","who":"w"}}
{"topic":"lists","key":"others/c",` + at + `1500,"value":{"list":"others","value":"c","who":"o"}}
{"topic":"lists","key":"cards/c",` + at + `2000,"value":{"list":"cards","value":"c","removed":true}}`, "c", " w "},
		{list, "values.ndjson", `{"value":"c","who":"w"}`, "c", "w w w"},
		{list, "entries.ndjson", `{"value":"c","who":"w","since":"1970-01-01T00:00:01Z"}
{"value":"c","who":"x","since":"1970-01-01T00:00:02Z","removed":true}
{"value":"c","who":"o","since":"1970-01-01T00:00:01.2Z","list":"others"}`, "c", " w "},
		{list, "entries.ndjson", `{"value":"c","who":"x","since":"1970-01-01T00:00:02Z","removed":true}
{"value":"c","who":"w","since":"1970-01-01T00:00:01Z"}`, "c", " w "},
		{list, "entries.csv", "value,until,who,why,since\nc,,w,,1970-01-01 00:00:01\nc,,x,,1970-01-01T00:00:02Z\n", "c", " w x"},
		{list, "entries.csv", "value,until,who,why,since\nc,,w,,\nc,,x,,1970-01-01T00:00:02Z\n", "c", "w w x"},
		{list, "entries.csv", "list,value,until,who,why,removed\ncards,c,,w,,\nothers,c,,o,,\n", "c", "w w w"},
		{list, "entries.csv", "value,until,who,why,removed,since\nc,,w,,false,1970-01-01 00:00:01\nc,,x,,TRUE,1970-01-01 00:00:02\n", "c", " w "},
	} {
		file := filepath.Join(folder, fmt.Sprint(n)+c.name)
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		contents, err := ReadFile(t.Context(), c.table, file, History)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		var got []string
		for _, at := range []int64{500, 1500, 2500} {
			said := ""
			if row := contents.Find(c.key, at); row != nil {
				field := 1
				if c.table.List {
					field = features.ListWho
				}
				said = string(row.Values[field].AppendText(nil))
			}
			got = append(got, said)
		}
		if is := strings.Join(got, " "); is != c.want {
			t.Errorf("%s: got %q, want %q", c.text, is, c.want)
		}
	}
}

// Definitions take the names of files and objects that can be read as tables, and no others; they leave an object's as it is.
func TestNamesOfFiles(t *testing.T) {
	for _, place := range []string{"", "folder/", "/", "s3://bucket/", "s3://bucket/folder/", "s3:///", "gs://bucket/"} {
		for _, format := range []string{".csv", ".ndjson", ".jsonl", ".avro", ".parquet", ".txt", ""} {
			for _, compression := range []string{"", ".gz", ".zst", ".bz2"} {
				name := place + "rows" + format + compression
				r, err := definition.LoadFiles(features.Files{Definitions: []features.File{{Path: "d.yaml", Text: "tables: {m: {file: '" + name + "', key: id, fields: {v: int}}}"}}})
				_, refused := source.Open(t.Context(), filepath.Base(name), nil, "")
				named := !strings.Contains(place, "://") || source.IsObject(name) && !strings.HasPrefix(place, "s3:///")
				if want := errors.Is(refused, fs.ErrNotExist) && named; (err == nil) != want {
					t.Errorf("%s: got error %v; can be read: %t", name, err, want)
				}
				if err == nil && r.Tables[0].File != name {
					t.Errorf("%s became %s", name, r.Tables[0].File)
				}
			}
		}
	}
}

// Other definitions' tables have the contents of those in use that are the same, as they become.
func TestTablesOfOthers(t *testing.T) {
	const text = "{topic: t, key: id, fields: {v: int}}"
	inUse, same, other := defined(t, text), defined(t, text), defined(t, "{topic: t, key: id, fields: {v: string}}")
	c := New(inUse)
	of := Fixed(c).For([]*features.Table{same, other}, errors.New("it is another one"))
	take(t, c, []sent{{key: "a", value: `{"id":"a","v":7}`}})
	if row, err := of.Find(same, "a", 0); err != nil || row == nil || row.Values[same.Rows.FieldIndex("v")].Num != 7 {
		t.Errorf("the same table has row %v, error %v", row, err)
	}
	if row, err := of.Find(other, "a", 0); fmt.Sprint(err) != "table m cannot answer: it is another one" || !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("another table has row %v, error %v", row, err)
	}
}

// A table is too large with more rows or bytes than it may have; one that is replaced makes room.
func TestBounds(t *testing.T) {
	table := defined(t, "{topic: t, key: id, max_rows: 3, max_mib: 1, fields: {v: string}}")
	row := func(id string, length int) sent {
		return sent{key: id, value: fmt.Sprintf(`{"id":%q,"v":%q}`, id, strings.Repeat("x", length))}
	}
	c := New(table)
	take(t, c, []sent{row("a", 1), row("b", 1), row("c", 1), row("a", 1), {key: "a"}, row("d", 1)})
	if _, err := c.Take((&sent{key: "e", value: `{"id":"e"}`}).record(0)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a row too many: got %v", err)
	}
	c = New(table)
	take(t, c, []sent{row("a", 600_000), row("a", 600_000), row("a", 600_000)})
	if _, err := c.Take(new(row("b", 600_000)).record(0)); !errors.Is(err, ErrTooLarge) || err.Error() != "the rows of table m take more than 1 MiB, its max_mib: the table is too large" {
		t.Errorf("too many bytes: got %v", err)
	}
	c = New(table).Keeping(History)
	take(t, c, []sent{row("a", 1), row("b", 1), row("a", 2), row("c", 1), {key: "a"}, row("d", 1), row("d", 300_000)})
	const earlier = "the rows of table m, with their earlier versions, take more than 1 MiB, its max_mib: the table is too large"
	if _, err := c.Take(new(row("d", 1_000_000)).record(0)); !errors.Is(err, ErrTooLarge) || err.Error() != earlier {
		t.Errorf("too many bytes of a history: got %v", err)
	}
	if _, err := c.Take(new(row("e", 1)).record(0)); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "more than 3 rows") {
		t.Errorf("a row too many in a history: got %v", err)
	}
}

// The deletes of Debezium, also of tables without a primary key, whose records have no key, delete rows.
func TestDebezium(t *testing.T) {
	table := defined(t, "{topic: t, format: debezium, key: id, fields: {v: int}}")
	for _, key := range []string{"", `{"id":"a"}`} {
		c := New(table)
		change := func(text string) {
			t.Helper()
			if bad, err := c.Take((&sent{key: key, value: text}).record(0)); bad != nil || err != nil {
				t.Fatal(bad, err)
			}
		}
		for _, step := range []struct{ text, want string }{
			{`{"op":"r","after":{"id":"a","v":1}}`, "1"},
			{`{"op":"u","before":{"id":"a"},"after":{"id":"a","v":2}}`, "2"},
			{`{"op":"d","before":{"id":"a","v":2},"after":null}`, ""},
			{`{"op":"c","after":{"id":"a","v":3}}`, "3"},
		} {
			if change(step.text); valueOf(c, "a", 0) != step.want {
				t.Errorf("key %q, after %s: got %q", key, step.text, valueOf(c, "a", 0))
			}
		}
	}
}

// A record that cannot be read takes the place of the row that its key had, since nobody knows what it says.
func TestBadRow(t *testing.T) {
	c := New(defined(t, "{topic: t, key: id, fields: {v: int}}"))
	take(t, c, []sent{{key: "a", value: `{"id":"a","v":1}`}})
	bad, err := c.Take((&sent{key: "a", value: `{"id":"a","v":"x"}`}).record(7))
	if err != nil || bad == nil || bad.Reason != record.WrongType || c.Find("a", 0) != nil {
		t.Errorf("got %v, %v and %v", bad, err, c.Find("a", 0))
	}
	if rows := slices.Collect(maps.Keys(c.rows)); len(rows) > 0 {
		t.Errorf("rows %v are left", rows)
	}
}

// Rows without keys in Kafka that come and go leave nothing behind in a table from a topic, whose removals come after them.
func TestRemovedRowsTakeNoMemory(t *testing.T) {
	c := New(defined(t, `{topic: t, format: debezium, key: id, fields: {v: int}}`))
	for n := range 100 {
		for i, change := range []string{
			fmt.Sprintf(`{"op":"c","ts_ms":%d,"before":null,"after":{"id":"k%d","v":1}}`, n, n),
			fmt.Sprintf(`{"op":"d","ts_ms":%d,"before":{"id":"k%d","v":1},"after":null}`, n, n),
		} {
			if bad, err := c.Take((&sent{time: int64(n), value: change}).record(2*n + i)); bad != nil || err != nil {
				t.Fatal(bad, err)
			}
			if rows, bytes := c.Rows(); rows != 1-i || (bytes > 0) != (i == 0) {
				t.Fatalf("after change %d of row %d there are %d rows of %d bytes", i, n, rows, bytes)
			}
		}
	}
}
