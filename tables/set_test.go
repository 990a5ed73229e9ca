package tables

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
)

// Definitions that are loaded again with the same meaning are answered from the tables that are read, whether or not they were
// taken; so are those before them.
func TestTablesOfTheSameMeaning(t *testing.T) {
	first, again, third, other := defined(t, modelled), defined(t, modelled), defined(t, modelled), defined(t, `{topic: u, key: id, fields: {v: int}}`)
	s := new(Set)
	if _, err := s.Contents(first); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("without tables: %v", err)
	}
	contents := New(first)
	s.Take([]*features.Table{first})[0].Whole(contents, time.Now())
	answer := func(when string, all ...*features.Table) {
		t.Helper()
		for i, table := range all {
			if c, err := s.Contents(table); c != contents || err != nil || s.Age(table, time.Now()) < 0 {
				t.Errorf("%s, table %d: %v, and %v old", when, i, err, s.Age(table, time.Now()))
			}
		}
		if _, err := s.Contents(other); !errors.Is(err, state.ErrUnavailable) {
			t.Errorf("%s, another table: %v", when, err)
		}
	}
	answer("loaded again", first, again)
	s.Take([]*features.Table{third})
	answer("taken again", first, again, third)
}
