package bench

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/materialize"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/store/memory"
)

// BenchmarkReplay makes the training set of BenchmarkMonth within this process.
func BenchmarkReplay(b *testing.B) {
	input := filepath.Join(b.TempDir(), "month.csv.gz")
	writeMonth(b, input, *events)
	registry, err := definition.Load("../integration_test/testdata/fdh.yaml")
	if err != nil {
		b.Fatal(err)
	}
	stream, _ := registry.Stream("transaction")
	selection := materialize.Selection{Registry: registry, Inputs: registry.Streams, Stream: stream, Names: testkit.HandbookColumns()}
	b.ReportAllocs()
	b.ResetTimer()
	rows, began := 0, cpuSeconds()
	for b.Loop() {
		columns, err := selection.Columns()
		if err != nil {
			b.Fatal(err)
		}
		file, err := source.Open(b.Context(), input, nil, "")
		if err != nil {
			b.Fatal(err)
		}
		replay := materialize.Replay{
			Registry: registry, Stream: stream, Columns: columns, NewState: func() materialize.State { return memory.New() },
			Inputs: []materialize.Input{{Name: input, Stream: stream, Open: func(s *record.Stream) (source.Source, error) { return file.Events(s) }}},
		}
		summary, err := replay.Run(b.Context(), func(columns []materialize.Column) (materialize.Writer, error) {
			return materialize.NewCSVWriter(io.Discard, columns)
		})
		if err != nil {
			b.Fatal(err)
		}
		file.Close()
		rows += summary.Rows
	}
	b.ReportMetric((cpuSeconds()-began)/float64(rows)*1e6, "cpu-µs/row")
}
