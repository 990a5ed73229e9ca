package integration_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
)

// fdhBudget bounds the CPU time that the training set may take. It takes some seconds, several times that on a machine
// whose cores are slow or shared.
const fdhBudget = time.Minute

// Weir computes the same features as the authors of the Fraud Detection Handbook computed in
// pandas, for each of its 431,773 transactions, as of that transaction.
func TestFraudDetectionHandbook(t *testing.T) {
	published := publishedFeatures(t)
	if testkit.Race { // a few blocks are enough for the race detector
		published = head(t, published, 40_000)
	}
	output := filepath.Join(t.TempDir(), "features.csv")
	cmd := exec.Command(binary, "materialize", "--features", "testdata/fdh.yaml", "--stream", "transaction",
		"--input", published, "--output", output, "--columns", strings.Join(testkit.HandbookColumns(), ","))
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); took > fdhBudget && !testkit.Race {
		t.Errorf("the command took %s of CPU time, want at most %s", took, fdhBudget)
	} else {
		t.Logf("%s of processor time\n%s", took, said)
	}
	if !bytes.Contains(said, []byte(" 0 values reached a cap")) {
		t.Errorf("a cap was reached:\n%s", said)
	}
	comparePublished(t, readTable(t, published), readTable(t, output))
}

// publishedFeatures names the file of the handbook's transactions with their features.
func publishedFeatures(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("WEIR_TEST_FDH")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "fdh")
	}
	published := filepath.Join(folder, "transactions-45d.csv.gz")
	if _, err := os.Stat(published); err != nil {
		t.Skipf("the published features are not there (WEIR_TEST_FDH says where): %v", err)
	}
	return published
}

// For the transactions of a tenth of the customers, all ways to make the training set give the same
// 14 columns to the last digit.
func TestHandbookInEveryMode(t *testing.T) {
	t.Parallel()
	all := readTable(t, publishedFeatures(t))
	some := table{columns: all.columns}
	for _, row := range all.rows {
		if strings.HasSuffix(row[all.columns["CUSTOMER_ID"]], "0") {
			some.rows = append(some.rows, row)
		}
	}
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	arrived := func(row []string) string { return strings.Replace(row[some.columns["TX_DATETIME"]], " ", "T", 1) + "Z" }
	some.write(t, file("events.csv"), "arrived", arrived, "TRANSACTION_ID", "TX_DATETIME", "CUSTOMER_ID", "TERMINAL_ID", "TX_AMOUNT", "TX_FRAUD")
	some.write(t, file("spine.csv"), "at", arrived, "TRANSACTION_ID", "CUSTOMER_ID", "TERMINAL_ID")
	columns, ties := testkit.HandbookColumns(), some.ties()
	run := func(mode string, env []string, args ...string) map[string][]string {
		t.Helper()
		output := file("of " + mode + ".csv")
		cmd := exec.Command(binary, append([]string{"materialize", "--features", "testdata/fdh.yaml", "--input", "transaction=" + file("events.csv"),
			"--output", output, "--columns", strings.Join(columns, ",")}, args...)...)
		cmd.Env = append(os.Environ(), env...)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", mode, err, said)
		}
		made, byID := readTable(t, output), map[string][]string{}
		for _, row := range made.rows {
			var cells []string
			for _, c := range columns {
				cells = append(cells, row[made.columns[c]])
			}
			byID[row[made.columns["TRANSACTION_ID"]]] = cells
		}
		return byID
	}
	want := run("events", nil, "--stream", "transaction")
	if len(want) != len(some.rows) || len(want) < 1000 {
		t.Fatalf("%d rows for %d transactions, want one for each of at least 1000", len(want), len(some.rows))
	}
	for mode, args := range map[string][]string{
		"as served":      {"--stream", "transaction", "--as", "served", "--record-time", "arrived"},
		"spine":          {"--spine", file("spine.csv"), "--features", "testdata/fdh.yaml,testdata/fdh_spine.yaml"},
		"sorted on disk": {"--stream", "transaction", "--memory", "1MiB"},
		"one core":       {"--stream", "transaction"},
		"three cores":    {"--stream", "transaction"},
	} {
		env := map[string][]string{"one core": {"GOMAXPROCS=1"}, "three cores": {"GOMAXPROCS=3"}}[mode]
		got, differences := run(mode, env, args...), 0
		for i, row := range some.rows {
			id := row[some.columns["TRANSACTION_ID"]]
			if ties[i] && mode == "spine" || slices.Equal(got[id], want[id]) {
				continue
			}
			if differences++; differences == 1 {
				t.Errorf("%s: transaction %s is %v, want %v", mode, id, got[id], want[id])
			}
		}
		if len(got) != len(want) || differences > 0 {
			t.Errorf("%s: %d of %d rows differ; got %d rows", mode, differences, len(want), len(got))
		}
	}
}

// write writes some columns to a CSV, and one more that is computed from each row.
func (t *table) write(tb testing.TB, name, more string, of func([]string) string, columns ...string) {
	tb.Helper()
	file, err := os.Create(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	out := csv.NewWriter(file)
	rows := [][]string{append(slices.Clone(columns), more)}
	for _, row := range t.rows {
		var cells []string
		for _, c := range columns {
			cells = append(cells, row[t.columns[c]])
		}
		rows = append(rows, append(cells, of(row)))
	}
	if err := out.WriteAll(rows); err != nil {
		tb.Fatal(err)
	}
}

// head copies the first rows of a compressed CSV to a new file, and returns its name.
func head(t *testing.T, name string, rows int) (copied string) {
	t.Helper()
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	unpacked, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	copied = filepath.Join(t.TempDir(), "head.csv.gz")
	out, err := os.Create(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	packed := gzip.NewWriter(out)
	lines := bufio.NewScanner(unpacked)
	for n := 0; n <= rows && lines.Scan(); n++ { // the first line holds the column names
		if _, err := packed.Write(append(lines.Bytes(), '\n')); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(lines.Err(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return copied
}

// table holds the rows of a CSV by ID.
type table struct {
	columns map[string]int
	rows    [][]string
}

func readTable(t *testing.T, name string) table {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var in io.Reader = file
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	read := table{columns: map[string]int{}, rows: rows[1:]}
	for i, name := range rows[0] {
		read.columns[name] = i
	}
	return read
}

// ties reports which rows share their time and their customer or terminal with another row.
func (t *table) ties() []bool {
	keys := func(row []string) [2]string {
		at := row[t.columns["TX_DATETIME"]]
		return [2]string{"customer " + row[t.columns["CUSTOMER_ID"]] + at, "terminal " + row[t.columns["TERMINAL_ID"]] + at}
	}
	seen := map[string]int{}
	for _, row := range t.rows {
		for _, key := range keys(row) {
			seen[key]++
		}
	}
	ties := make([]bool, len(t.rows))
	for i, row := range t.rows {
		of := keys(row)
		ties[i] = seen[of[0]] > 1 || seen[of[1]] > 1
	}
	return ties
}

// comparePublished compares like check.py beside the data. It skips rows that share their time and
// their customer or terminal with another row: the authors' sort leaves their order open.
func comparePublished(t *testing.T, want, got table) {
	t.Helper()
	byID := map[string][]string{}
	for _, row := range got.rows {
		byID[row[got.columns["TRANSACTION_ID"]]] = row
	}
	if len(byID) != len(want.rows) || len(got.rows) != len(want.rows) {
		t.Fatalf("%d rows for %d transactions, want %d", len(got.rows), len(byID), len(want.rows))
	}
	ties := want.ties()
	differences, tied := map[string]int{}, 0
	for i, row := range want.rows {
		if ties[i] {
			tied++
			continue
		}
		id := row[want.columns["TRANSACTION_ID"]]
		for _, column := range testkit.HandbookColumns() {
			e, err1 := strconv.ParseFloat(row[want.columns[column]], 64)
			g, err2 := strconv.ParseFloat(byID[id][got.columns[column]], 64)
			if err1 != nil || err2 != nil || math.Abs(g-e) > 1e-6*max(1, math.Abs(e)) {
				if differences[column]++; differences[column] == 1 {
					t.Errorf("%s of transaction %s is %g (%v), the published value is %g", column, id, g, err2, e)
				}
			}
		}
	}
	if tied > 100 || len(differences) > 0 {
		t.Errorf("%d rows are tied, want at most 100; differences, want none: %v", tied, differences)
	}
}
