package integration_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/generate"
)

// sink writes records, including poison, to files, with their partitions, offsets and times. It returns the flags that
// name them.
func (s *scene) sink(records []*kgo.Record) (flags []string) {
	s.t.Helper()
	for topic, stream := range map[string]string{generate.Transactions: "payment", generate.Logins: "access"} {
		var files [2]bytes.Buffer
		for i, r := range records {
			switch {
			case r.Topic != topic:
			case bytes.HasPrefix(r.Value, []byte("{")):
				fmt.Fprintf(&files[i%2], "{\"record_time\": %d, \"partition\": %d, \"offset\": %d, %s\n", r.Timestamp.UnixMilli(), r.Partition, r.Offset, r.Value[1:])
			default:
				fmt.Fprintf(&files[i%2], "%s\n", r.Value)
			}
		}
		folder := s.t.TempDir()
		for i := range files {
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.ndjson", i)), files[i].Bytes(), 0o600); err != nil {
				s.t.Fatal(err)
			}
		}
		flags = append(flags, "--input", stream+"="+folder)
	}
	return flags
}

// columns are the paths of the events' fields.
var columns = []string{
	"event_id", "timestamp", "type", "user_id", "device_id", "ip", "card_id", "merchant_id", "amount", "status", "success", "record_time",
}

// writeFiles writes the events, unordered, with the times of their records, to files in every format, poison to lines
// of JSON. It returns the flags that name them.
func writeFiles(t *testing.T, events []generate.Event) (flags []string) {
	t.Helper()
	events = slices.Clone(events)
	rand.New(rand.NewPCG(seed, 4)).Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for topic, stream := range map[string]string{generate.Transactions: "payment", generate.Logins: "access"} {
		var lines bytes.Buffer
		var tables [2][]map[string]json.RawMessage
		for i := range events {
			e := &events[i]
			fields := map[string]json.RawMessage{}
			switch err := json.Unmarshal(e.Value, &fields); {
			case e.Topic != topic:
			case i%3 < 2 && err == nil && !e.Poison:
				fields["record_time"] = strconv.AppendInt(nil, e.Timestamp, 10)
				tables[i%3] = append(tables[i%3], fields)
			case err == nil:
				fmt.Fprintf(&lines, "{\"record_time\": %d, %s\n", e.Timestamp, e.Value[1:])
			default:
				fmt.Fprintf(&lines, "%s\n", e.Value)
			}
		}
		folder := t.TempDir()
		for name, content := range map[string][]byte{"a.ndjson.gz": gzipped(t, lines.Bytes()), "b.csv": csvOf(t, tables[0]), "c.parquet": parquetOf(t, tables[1])} {
			if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		flags = append(flags, "--input", stream+"="+folder)
	}
	return flags
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// text is a cell as text, empty for null.
func text(cell json.RawMessage) string {
	if string(cell) == "null" {
		return ""
	}
	return strings.Trim(string(cell), `"`)
}

func csvOf(t *testing.T, table []map[string]json.RawMessage) []byte {
	t.Helper()
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	rows := [][]string{columns}
	for _, fields := range table {
		var row []string
		for _, name := range columns {
			row = append(row, text(fields[name]))
		}
		rows = append(rows, row)
	}
	if err := w.WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// parquetOf has typed columns, and several row groups.
func parquetOf(t *testing.T, table []map[string]json.RawMessage) []byte {
	t.Helper()
	type row struct {
		ID         *string  `json:"event_id" parquet:"event_id,optional"`
		Timestamp  int64    `json:"timestamp" parquet:"timestamp"`
		Type       string   `json:"type" parquet:"type"`
		User       *string  `json:"user_id" parquet:"user_id,optional"`
		Device     *string  `json:"device_id" parquet:"device_id,optional"`
		IP         *string  `json:"ip" parquet:"ip,optional"`
		Card       *string  `json:"card_id" parquet:"card_id,optional"`
		Merchant   *string  `json:"merchant_id" parquet:"merchant_id,optional"`
		Amount     *float64 `json:"amount" parquet:"amount,optional"`
		Status     *string  `json:"status" parquet:"status,optional"`
		Success    *bool    `json:"success" parquet:"success,optional"`
		RecordTime int64    `json:"record_time" parquet:"record_time"`
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, parquet.MaxRowsPerRowGroup(1000))
	for _, fields := range table {
		values, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		var named row
		if err := json.Unmarshal(values, &named); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]row{named}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
