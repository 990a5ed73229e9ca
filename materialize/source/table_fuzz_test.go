package source

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// FuzzTables reads any bytes as a table, CSV and lines of JSON: each row has a cell for each column, or there is an error
// that says where.
func FuzzTables(f *testing.F) {
	f.Add([]byte("a,b\n1,\"x\"\"y\"\n,\n"))
	f.Add([]byte("{\"a\": 1, \"b\": {\"c\": [null, \"x\"]}}\n\n{\"a\": 1e400, \"b\": true}\n"))
	f.Add([]byte("\xef\xbb\xbfa\n\"x\ny\"\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for name, open := range map[string]func(string, io.Reader) (Table, error){"csv": NewCSV, "jsonl": newJSONTable} {
			table, err := open("in", bytes.NewReader(content))
			for rows := 0; err == nil; rows++ {
				if rows > len(content) {
					t.Fatalf("%s: more rows than bytes", name)
				}
				var cells []Cell
				if cells, err = table.Next(); err == nil && len(cells) != len(table.Columns()) {
					t.Fatalf("%s: %d cells for the columns %q", name, len(cells), table.Columns())
				}
			}
			if err != io.EOF && !bytes.HasPrefix([]byte(err.Error()), []byte("in:")) {
				t.Fatalf("%s: the error names no place: %v", name, err)
			}
		}
	})
}

// FuzzParquet reads any bytes as a Parquet file. A few bytes may stand for millions of rows without values.
func FuzzParquet(f *testing.F) {
	for _, name := range []string{"hive.parquet", "rare.parquet"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Fuzz(func(_ *testing.T, content []byte) {
		table, err := newParquet("in.parquet", bytes.NewReader(content), int64(len(content)))
		for rows := 0; err == nil && rows < 2000; rows++ {
			_, err = table.Next()
		}
	})
}
