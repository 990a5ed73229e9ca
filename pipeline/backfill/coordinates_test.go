package backfill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

var inSink = &Coordinates{Topic: "kafka.topic", Partition: "kafka.partition", Offset: "kafka.offset"}

// locatedFile writes a file whose rows have coordinates, and reads it.
func locatedFile(t *testing.T, name, text string, c *Coordinates) (*File, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := defined.Registry(t, payments)
	f, err := ReadFile(t.Context(), Input{Name: path, Stream: r.Streams[0], Coordinates: c}, r, nil)
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), path, name))
	}
	return f, err
}

// The coordinates of all rows count, also of other streams' and unusable rows.
func TestOffsetsOfRows(t *testing.T) {
	const lines = `{"kind":"pay","at":1000,"user":"a","cents":1,"kafka":{"topic":"payments","partition":0,"offset":"7"}}
{"kind":"other","kafka":{"topic":"payments","partition":0,"offset":9}}
{"kind":"pay","at":2000,"user":"a","cents":1,"kafka":{"topic":"payments","partition":3,"offset":0}}
{"kind":"pay","at":"x","user":"a","cents":1,"kafka":{"topic":"payments","partition":3,"offset":1}}
no JSON
`
	f, err := locatedFile(t, "a.ndjson", lines, inSink)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.Rows, f.Before, f.Unusable, f.Earliest, f.Latest, *f.Spans[0], *f.Spans[3], len(f.Spans)); got != "5 2 2 1000 2000 {7 9 2} {0 1 2} 2" {
		t.Errorf("rows, rows before the cut, unusable rows, earliest and latest time, spans: %s, want 5 2 2 1000 2000 {7 9 2} {0 1 2} 2", got)
	}
	if got := strings.Join(SpansOf([]*File{f}).Gaps(), "; "); got != "partition 0: 2 rows for the 3 offsets from 7 to 9" {
		t.Errorf("the gaps are %q, want one in partition 0", got)
	}
	again, err := locatedFile(t, "copy.ndjson", lines, inSink)
	if err != nil {
		t.Fatal(err)
	}
	if got := SpansOf([]*File{f, again}); *got[0] != *f.Spans[0] || *got[3] != *f.Spans[3] {
		t.Errorf("with the same rows again, as for another stream, the spans are %v and %v, want no more rows", *got[0], *got[3])
	}
	f, err = locatedFile(t, "a.csv", "kind,at,user,cents,p,o\npay,1,a,1,2,5\npay,2,a,1,2,6\n", &Coordinates{Partition: "p", Offset: "o"})
	if err != nil || f.Before != 2 || *f.Spans[2] != (Span{5, 6, 2}) {
		t.Errorf("a table: got %+v, error %v; want 2 rows at the offsets 5 to 6 of partition 2", f, err)
	}
}

// A row without valid coordinates is reported with its line.
func TestRowsWithoutCoordinates(t *testing.T) {
	row := func(coordinates string) string {
		return `{"kind":"pay","at":1,"user":"a","cents":1,"kafka":` + coordinates + "}\n"
	}
	good := row(`{"topic":"payments","partition":0,"offset":0}`)
	for coordinates, want := range map[string]string{
		`{"topic":"payments","partition":0}`:                     `kafka.offset: the row does not say it, so it is unknown which record it was`,
		`{"topic":"payments","partition":null,"offset":0}`:       `kafka.partition: the row does not say it, so it is unknown which record it was`,
		`{"partition":0,"offset":0}`:                             `kafka.topic: the row does not say it, so it is unknown which record it was`,
		`7`:                                                      `kafka: expected an object, found 7`,
		`{"topic":"logins","partition":0,"offset":0}`:            `kafka.topic: the record is of topic "logins", and the stream's is "payments"`,
		`{"topic":5,"partition":0,"offset":0}`:                   `kafka.topic: expected a string, found 5`,
		`{"topic":"payments","partition":0,"offset":-1}`:         `kafka.offset: expected a whole number from 0 to 9223372036854775807, found -1`,
		`{"topic":"payments","partition":0,"offset":"x"}`:        `kafka.offset: expected a 64-bit integer, found a string`,
		`{"topic":"payments","partition":1.5,"offset":0}`:        `kafka.partition: expected a 64-bit integer, found 1.5`,
		`{"topic":"payments","partition":4294967296,"offset":0}`: `kafka.partition: expected a whole number from 0 to 2147483647, found 4294967296`,
	} {
		if _, err := locatedFile(t, "a.ndjson", good+row(coordinates), inSink); fmt.Sprint(err) != "a.ndjson:2: "+want {
			t.Errorf("%s\n got %v\nwant a.ndjson:2: %s", coordinates, err, want)
		}
	}
	_, err := locatedFile(t, "a.csv", "kind,at,user,cents,p\npay,1,a,1,0\n", &Coordinates{Partition: "p", Offset: "o"})
	if err == nil || !strings.Contains(err.Error(), `field record offset of payment: unknown column "o"`) {
		t.Errorf("without the column of offsets: got error %v", err)
	}
}

// logs are those of a topic's partitions.
type logs []fetch.Log

func (l logs) Logs(context.Context, []state.Partition) ([]fetch.Log, error) { return l, nil }
func (l logs) Since(context.Context, []state.Partition, []fetch.Log, int64) []fetch.Dated {
	return make([]fetch.Dated, len(l))
}

// The cut is after the last record of each partition, where the log must continue.
func TestCutByOffsets(t *testing.T) {
	id := state.LogID{Cluster: "c", Topic: "t"}
	brokers := logs{{ID: id, Start: 5, End: 100, Stable: 100}, {ID: id, Start: 0, End: 50, Stable: 50}}
	partitions := []state.Partition{{Topic: "payments", ID: 0}, {Topic: "payments", ID: 1}}
	cut := func(spans ...Spans) (state.Cut, error) {
		var files []*File
		for i, p := range spans {
			files = append(files, &File{ArchivedFile: state.ArchivedFile{Hash: fmt.Sprint(i)}, Spans: p, Latest: int64(1000 * (i + 1))})
		}
		return CutByOffsets(t.Context(), brokers, "payments", files, partitions)
	}
	got, err := cut(Spans{0: {0, 8, 9}}, Spans{0: {9, 19, 11}})
	if want := (state.Cut{Topic: "payments", Until: 2001, Ends: "0:20", Log: id.Tag()}); err != nil || got != want {
		t.Errorf("got %+v, error %v; want %+v", got, err, want)
	}
	for want, spans := range map[string]Spans{
		"the files of topic payments have no record":                                                                        {},
		"the files have records of partition 2, and topic payments has the partitions 0 to 1":                               {0: {0, 9, 10}, 2: {0, 9, 10}},
		"the files have records of partition 0 twice: 11 rows for the 10 offsets from 0 to 9":                               {0: {0, 9, 11}},
		"the files have records of partition 1 up to offset 50, and its log ends at 50: they are of another log":            {0: {0, 9, 10}, 1: {0, 50, 51}},
		"the log of partition 0 begins at offset 5, and the files end before offset 4: give files with the records between": {0: {0, 3, 4}},
		"the log of partition 0 begins at offset 5, and the files end before offset 0: give files with the records between": {1: {0, 3, 4}},
	} {
		if _, err := cut(spans); fmt.Sprint(err) != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	brokers[1].Err = errors.New("no leader")
	if _, err := cut(Spans{0: {0, 9, 10}}); fmt.Sprint(err) != "no leader" {
		t.Errorf("without a leader: got error %v, want that of the brokers", err)
	}
}
