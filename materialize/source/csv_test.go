package source

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The records, lines and errors of a CSV equal those of encoding/csv, also if only the first cells are needed.
func TestCSVRecordsEqualStandardOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"a", "b,", ",", "\"", "\"\"", "\"x,y\"", "\n", "\r\n", "\r", " ", "é", "a,b\n", "\"a\nb\",c\n", strings.Repeat("long", partSize/3),
		})).Draw(t, "text"), "")
		records, standard := newRecords(strings.NewReader(text)), csv.NewReader(strings.NewReader(text))
		standard.FieldsPerRecord = -1
		records.most = rapid.IntRange(0, 4).Draw(t, "needed")
		for {
			want, wantErr := standard.Read()
			got, count, line, err := records.next()
			if parse, ok := errors.AsType[*csv.ParseError](wantErr); ok {
				if !errors.Is(err, parse.Err) || line != parse.StartLine {
					t.Fatalf("%q: line %d: error %v, want %v", text, line, err, wantErr)
				}
				return
			}
			if wantErr == io.EOF && err == io.EOF {
				return
			}
			if wantErr != nil || err != nil {
				t.Fatalf("%q: error %v, want %v", text, err, wantErr)
			}
			for i, cell := range got {
				row, column := standard.FieldPos(i)
				if rest := strings.SplitAfter(text, "\n")[row-1]; (cell == nil) != (want[i] == "" && !strings.HasPrefix(rest[column-1:], `"`)) {
					t.Fatalf("%q: cell %d of %q is null: %v", text, i, want, cell == nil)
				}
			}
			if wantLine, _ := standard.FieldPos(0); line != wantLine || count != len(want) || !begins(want, got, records.most) {
				t.Fatalf("%q: line %d is %q, want line %d, %q", text, line, got, wantLine, want)
			}
		}
	})
}

// begins reports whether a record begins with those cells, and whether these are as many as needed; 0 means all.
func begins(want []string, got [][]byte, most int) bool {
	if len(got) > len(want) || len(got) < len(want) && (most == 0 || len(got) < most) {
		return false
	}
	for i := range got {
		if string(got[i]) != want[i] {
			return false
		}
	}
	return true
}
