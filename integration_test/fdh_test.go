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
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
)

// fdhBudget bounds the CPU time that the training set may take.
const fdhBudget = 15 * time.Second

// Weir computes the same features as the authors of the Fraud Detection Handbook computed in
// pandas, for each of its 431,773 transactions, as of that transaction.
func TestFraudDetectionHandbook(t *testing.T) {
	folder := os.Getenv("WEIR_FDH")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "fdh")
	}
	published := filepath.Join(folder, "transactions-45d.csv.gz")
	if _, err := os.Stat(published); err != nil {
		t.Skipf("the published features are not there (WEIR_FDH says where): %v", err)
	}
	if testkit.Race { // the detector finds nothing in a single goroutine
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
		t.Errorf("it took %s of processor time; the budget is %s", took, fdhBudget)
	} else {
		t.Logf("%s of processor time\n%s", took, said)
	}
	if !bytes.Contains(said, []byte(" 0 values reached a cap")) {
		t.Errorf("a cap was reached:\n%s", said)
	}
	comparePublished(t, readTable(t, published), readTable(t, output))
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

// comparePublished compares like check.py beside the data. It skips rows that share their time and
// their customer or terminal with another row: the authors' sort leaves their order open.
func comparePublished(t *testing.T, want, got table) {
	t.Helper()
	byID := map[string][]string{}
	for _, row := range got.rows {
		byID[row[got.columns["TRANSACTION_ID"]]] = row
	}
	if len(byID) != len(want.rows) || len(got.rows) != len(want.rows) {
		t.Fatalf("%d rows of %d transactions; want %d", len(got.rows), len(byID), len(want.rows))
	}
	ties := func(row []string) [2]string {
		at := row[want.columns["TX_DATETIME"]]
		return [2]string{"customer " + row[want.columns["CUSTOMER_ID"]] + at, "terminal " + row[want.columns["TERMINAL_ID"]] + at}
	}
	seen := map[string]int{}
	for _, row := range want.rows {
		for _, tie := range ties(row) {
			seen[tie]++
		}
	}
	differences, tied := map[string]int{}, 0
	for _, row := range want.rows {
		if tie := ties(row); seen[tie[0]] > 1 || seen[tie[1]] > 1 {
			tied++
			continue
		}
		id := row[want.columns["TRANSACTION_ID"]]
		for _, column := range testkit.HandbookColumns() {
			e, err1 := strconv.ParseFloat(row[want.columns[column]], 64)
			g, err2 := strconv.ParseFloat(byID[id][got.columns[column]], 64)
			if err1 != nil || err2 != nil || math.Abs(g-e) > 1e-6*max(1, math.Abs(e)) {
				if differences[column]++; differences[column] == 1 {
					t.Errorf("%s of transaction %s is %g, %v; published is %g", column, id, g, err2, e)
				}
			}
		}
	}
	if tied > 100 || len(differences) > 0 {
		t.Errorf("%d rows tied, differences: %v", tied, differences)
	}
}
