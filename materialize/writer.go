package materialize

import (
	"fmt"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// Writer writes a training set.
type Writer interface {
	// Write adds a row with one cell per column. It does not keep the cells. Errors about a cell
	// are a *cellError.
	Write(cells []Cell) error
	// Close writes the buffered rows. Without it the output is incomplete.
	Close() error
}

// cellError says that the output format cannot hold a value.
type cellError struct {
	Column string
	Err    error
}

// Error names the column.
func (e *cellError) Error() string { return fmt.Sprintf("column %s: %v", e.Column, e.Err) }

// Unwrap returns the error without its column.
func (e *cellError) Unwrap() error { return e.Err }

// Cell is what a row holds in one column.
type Cell struct {
	Value value.Value
	Items []aggregate.Item // the answer of features with lists or categories, in place of Value
	Text  []byte           // of columns that are passed on: the text as in the spine
}
