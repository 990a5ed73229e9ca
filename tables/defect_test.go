package tables

import (
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// brokenFormat fails for each record, as a defect of Weir would.
type brokenFormat struct{ record.Format }

func (f brokenFormat) NewScanner(tree *record.Node) record.Scanner {
	return brokenScanner{f.Format.NewScanner(tree)}
}

type brokenScanner struct{ record.Scanner }

func (brokenScanner) Scan(*record.Record, []record.Datum) error { panic("broken") }

// A defect that a row brings to light makes that row a bad record, and ends no process.
func TestRowThatShowsADefect(t *testing.T) {
	list := features.NewList("blocked", "lists", value.String)
	list.MaxRows, list.MaxBytes = 10, 1<<20
	list.Rows.Format = brokenFormat{list.Rows.Format}
	bad, err := New(list).Take(&record.Record{Key: []byte("k"), Value: []byte("{}"), Partition: state.Partition{Topic: "lists"}})
	if err != nil || bad == nil || bad.Reason != record.Defect {
		t.Errorf("the row is bad because of %v, error %v; want a defect", bad, err)
	}
}
