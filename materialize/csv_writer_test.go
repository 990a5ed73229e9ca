package materialize

import (
	"encoding/csv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// CSV output equals that of encoding/csv.
func TestCSVEqualsStandardOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("ab,\"\n\r \\.\té\u00a0"))), 1, 4).Draw(t, "row")
		var got, want strings.Builder
		standard := csv.NewWriter(&want)
		if err := standard.Write(row); err != nil {
			t.Fatal(err)
		}
		standard.Flush()
		w := &csvWriter{out: &got}
		for i, text := range row {
			w.cell(i, []byte(text))
		}
		if err := w.end(); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil || got.String() != want.String() {
			t.Fatalf("%q was written as %q, want %q; error %v", row, got.String(), want.String(), err)
		}
	})
}
