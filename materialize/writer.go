package materialize

import (
	"fmt"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// Writer is where a training set goes.
type Writer interface {
	// Write adds a row, a cell for each column. It keeps nothing of them. What is wrong
	// with a cell is a *CellError.
	Write(cells []Cell) error
	// Close writes what is held back. What was written before is no training set
	// without it.
	Close() error
}

// CellError is that a file of the writer's format cannot hold a value.
type CellError struct {
	Column string
	Err    error
}

// Error names the column.
func (e *CellError) Error() string { return fmt.Sprintf("column %s: %v", e.Column, e.Err) }

// Unwrap returns the error without its column.
func (e *CellError) Unwrap() error { return e.Err }

// Cell is what a row holds in one column.
type Cell struct {
	Value value.Value
	Items []aggregate.Item // of features that answer with a list or by category, in the place of Value
	Text  []byte           // of what is passed on: as it stands in the spine
}
