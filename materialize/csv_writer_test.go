package materialize

import (
	"encoding/csv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// CSV output equals that of encoding/csv, but for the quotes of an empty text, which is not null.
func TestCSVEqualsStandardOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("ab,\"\n\r \\.\té\u00a0"))), 1, 4).Draw(t, "row")
		var got strings.Builder
		var cells []string
		for _, text := range row {
			if text == "" {
				cells = append(cells, `""`)
				continue
			}
			var cell strings.Builder
			standard := csv.NewWriter(&cell)
			if err := standard.Write([]string{text}); err != nil {
				t.Fatal(err)
			}
			standard.Flush()
			cells = append(cells, strings.TrimSuffix(cell.String(), "\n"))
		}
		want := strings.Join(cells, ",") + "\n"
		w := &csvWriter{out: &got}
		for i, text := range row {
			w.cell(i, []byte(text))
		}
		if err := w.end(); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil || got.String() != want {
			t.Fatalf("%q was written as %q, want %q; error %v", row, got.String(), want, err)
		}
	})
}
