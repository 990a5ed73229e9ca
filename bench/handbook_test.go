package bench

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
)

// BenchmarkHandbook computes the 14 features of the Fraud Detection Handbook for each of its
// transactions with Weir, on all cores and on one, DuckDB and pandas, from a compressed CSV to a CSV, each in a process of
// its own, in turn. WEIR_TEST_FDH names the folder of transactions-45d.csv.gz and WEIR_TEST_PYTHON a
// Python that has duckdb and pandas. The benchmark fails if DuckDB's values differ from Weir's.
func BenchmarkHandbook(b *testing.B) {
	python, folder := os.Getenv("WEIR_TEST_PYTHON"), os.Getenv("WEIR_TEST_FDH")
	if python == "" || folder == "" {
		b.Skip("WEIR_TEST_PYTHON names no Python that has duckdb and pandas, or WEIR_TEST_FDH no folder of the handbook's transactions")
	}
	input, output := filepath.Join(folder, "transactions-45d.csv.gz"), b.TempDir()
	binary := filepath.Join(output, "weir")
	if said, err := exec.Command("go", "build", "-o", binary, "../cmd/weir").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, said)
	}
	out := func(name string) string { return filepath.Join(output, name+".csv") }
	columns := testkit.HandbookColumns()
	weir := func(name string) []string {
		return []string{binary, "materialize", "--features", "../integration_test/testdata/fdh.yaml", "--stream", "transaction",
			"--input", input, "--output", out(name), "--columns", strings.Join(columns, ",")}
	}
	const oneCore = "Weir on one core"
	commands := []struct {
		name string
		args []string
	}{
		{"Weir", weir("Weir")},
		{oneCore, append([]string{"env", "GOMAXPROCS=1"}, weir(oneCore)...)},
		{"DuckDB", []string{python, "handbook/duck.py", input, out("DuckDB")}},
		{"pandas", []string{python, "handbook/with_pandas.py", input, out("pandas")}},
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tCPU s\tof DuckDB's\twall s\tpeak MiB")
	for b.Loop() {
		seconds := map[string][3]float64{}
		for _, c := range commands {
			cmd, began := exec.Command(c.args[0], c.args[1:]...), time.Now()
			if said, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%s: %v\n%s", c.name, err, said)
			}
			p := cmd.ProcessState
			seconds[c.name] = [3]float64{(p.UserTime() + p.SystemTime()).Seconds(), time.Since(began).Seconds(), peakMiB(p)}
		}
		for _, c := range commands {
			s := seconds[c.name]
			fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%.2f\t%.0f\n", c.name, s[0], s[0]/seconds["DuckDB"][0], s[1], s[2])
		}
		if err := table.Flush(); err != nil {
			b.Fatal(err)
		}
		compareHandbook(b, out("Weir"), out("DuckDB"), columns)
		compareHandbook(b, out(oneCore), out("DuckDB"), columns)
	}
}

// compareHandbook fails if two tables differ. Events of one customer or terminal in the same second have no order in
// SQL, where each includes the others. Such differences are only counted, and must be few.
func compareHandbook(b *testing.B, weir, duck string, columns []string) {
	got, want := handbookTable(b, weir, columns), handbookTable(b, duck, columns)
	if len(got) != len(want) || len(got) == 0 {
		b.Fatalf("Weir has %d rows, DuckDB %d", len(got), len(want))
	}
	differ := 0
	for id, row := range want {
		for i, w := range row {
			if g := got[id][i]; math.Abs(g-w) > 1e-9*max(1, math.Abs(w)) {
				differ++
			}
		}
	}
	if differ > len(got)*len(columns)/100_000 {
		b.Errorf("%d of %d values differ", differ, len(got)*len(columns))
	}
}

// handbookTable reads the columns of a CSV, by ID.
func handbookTable(b *testing.B, name string, columns []string) map[string][]float64 {
	file, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		b.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	table := map[string][]float64{}
	for _, row := range rows[1:] {
		var values []float64
		for _, c := range columns {
			v, err := strconv.ParseFloat(row[at[c]], 64)
			if err != nil {
				b.Fatal(err)
			}
			values = append(values, v)
		}
		table[row[at["TRANSACTION_ID"]]] = values
	}
	return table
}
