package bench

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	besideDuckDB(b, python, filepath.Join(folder, "transactions-45d.csv.gz"), "pandas")
}

// BenchmarkMonth does the same with -events made-up transactions of a month, and without pandas, which takes 20 times as
// long.
func BenchmarkMonth(b *testing.B) {
	python := os.Getenv("WEIR_TEST_PYTHON")
	if python == "" {
		b.Skip("WEIR_TEST_PYTHON names no Python that has duckdb")
	}
	input := filepath.Join(b.TempDir(), "month.csv.gz")
	writeMonth(b, input, *events)
	besideDuckDB(b, python, input)
}

// writeMonth writes transactions of 30 days in the handbook's columns: 50 for each customer and 200 at each terminal.
func writeMonth(b *testing.B, name string, n int) {
	file, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	packed, _ := gzip.NewWriterLevel(file, gzip.BestSpeed)
	out, random := bufio.NewWriter(packed), rand.New(rand.NewPCG(7, 8))
	fmt.Fprintln(out, "TRANSACTION_ID,TX_DATETIME,CUSTOMER_ID,TERMINAL_ID,TX_AMOUNT,TX_FRAUD")
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for id := range n {
		at := began.Add(time.Duration(float64(id) / float64(n) * float64(30*24*time.Hour))).Format(time.DateTime)
		fmt.Fprintf(out, "%d,%s,%d,%d,%.2f,%d\n", id, at, random.IntN(n/50+1), random.IntN(n/200+1), 1+random.ExpFloat64()*60, random.IntN(120)/119)
	}
	for _, end := range []func() error{out.Flush, packed.Close, file.Close} {
		if err := end(); err != nil {
			b.Fatal(err)
		}
	}
}

// besideDuckDB computes the features of a file's transactions with Weir, DuckDB and the other programs in bench/handbook that are
// named.
func besideDuckDB(b *testing.B, python, input string, others ...string) {
	output := b.TempDir()
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
	type command struct {
		name string
		args []string
	}
	commands := []command{
		{"Weir", weir("Weir")},
		{oneCore, append([]string{"env", "GOMAXPROCS=1"}, weir(oneCore)...)},
		{"DuckDB", []string{python, "handbook/duck.py", input, out("DuckDB")}},
	}
	for _, other := range others {
		commands = append(commands, command{other, []string{python, "handbook/with_" + other + ".py", input, out(other)}})
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
		want := handbookTable(b, out("DuckDB"), columns)
		for _, name := range []string{"Weir", oneCore} {
			compareHandbook(b, handbookTable(b, out(name), columns), want)
		}
	}
}

// handbookRow is the 14 features of a transaction.
type handbookRow [14]float64

// compareHandbook fails if two tables differ. Events of one customer or terminal in the same second have no order in
// SQL, where each includes the others. Such differences are only counted, and must be few.
func compareHandbook(b *testing.B, got, want []handbookRow) {
	if len(got) != len(want) || len(got) == 0 {
		b.Fatalf("Weir has %d rows, DuckDB %d", len(got), len(want))
	}
	differ, values := 0, len(want)*len(want[0])
	for id := range want {
		for i, w := range want[id] {
			if g := got[id][i]; math.Abs(g-w) > 1e-9*max(1, math.Abs(w)) {
				differ++
			}
		}
	}
	if differ > values/100_000 {
		b.Errorf("%d of %d values differ", differ, values)
	}
}

// handbookTable reads the columns of a CSV whose rows are numbered from 0, in any order.
func handbookTable(b *testing.B, name string, columns []string) (table []handbookRow) {
	file, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	rows := csv.NewReader(file)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		b.Fatal(err)
	}
	id, at := slices.Index(header, "TRANSACTION_ID"), make([]int, len(columns))
	for i, name := range columns {
		at[i] = slices.Index(header, name)
	}
	read := 0
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		n, err := strconv.Atoi(row[id])
		if err != nil {
			b.Fatal(err)
		}
		if n >= len(table) {
			table = append(table, make([]handbookRow, n+1-len(table))...)
		}
		for i := range columns {
			if table[n][i], err = strconv.ParseFloat(row[at[i]], 64); err != nil {
				b.Fatal(err)
			}
		}
		read++
	}
	if read != len(table) {
		b.Fatalf("%s has %d rows with IDs up to %d", name, read, len(table)-1)
	}
	return table
}
