// Package tools answers what people ask beside questions about features: authors, what a file of definitions would answer;
// operators, what dead letters hold and which keys of state are the longest. Each answer reads a bounded part of Kafka or of
// the store, one at a time, and writes nothing.
package tools

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/operate/lists"
	"github.com/weir-stream/weir/operate/preview"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/tables"
)

// Limit is how long a process reads for one answer.
const Limit = 10 * time.Second

// Config says how a process reads Kafka and the store for people.
type Config struct {
	// Preview asks features of definitions on the records since a moment; nil without the role
	// processor.
	Preview func(ctx context.Context, r *features.Registry, list []*features.Feature, since time.Time) (*preview.Report, error)
	// DeadLetters returns at most the given number of the newest dead letters, latest first, of one reason or of all if
	// it is empty; nil without the role processor.
	DeadLetters func(ctx context.Context, reason string, most int) ([]DeadLetter, error)
	// LongestKeys returns the longest keys of the store, at most so many, of those that it looks at
	// while its patience lasts. An error with keys is that of a part of the store. It is required.
	LongestKeys func(ctx context.Context, most int, patience time.Duration) (state.LongKeys, error)
	// ListContents returns what a list has, and WriteList changes one, all or nothing. Both are required where
	// definitions have lists.
	ListContents func(list *features.Table) (*tables.Contents, error)
	WriteList    func(ctx context.Context, list *features.Table, changes []lists.Written) error
}

// Tools answers. Its fields besides Config are required.
type Tools struct {
	Config
	// Registry is that of the definitions in use.
	Registry func() *features.Registry
	Now      func() time.Time
	MaxBody  int64 // bytes
	Logger   *slog.Logger

	previewing, reading, walking, listing sync.Mutex
}

// elsewhere says where to ask what this process cannot answer.
const elsewhere = "this process does not read Kafka; ask one with the role processor"
