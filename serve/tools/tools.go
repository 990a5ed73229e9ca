// Package tools answers what people ask beside questions about features: authors, what a file of definitions would answer;
// operators, what dead letters hold. Each answer reads a bounded part of Kafka, one at a time, and writes nothing.
package tools

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/operate/preview"
)

// Limit is how long a process reads Kafka for one answer.
const Limit = 10 * time.Second

// Config says how a process reads Kafka for people. The zero value is a process that does not.
type Config struct {
	// Preview asks features of definitions on the records since a moment; nil without the role
	// processor.
	Preview func(ctx context.Context, r *features.Registry, list []*features.Feature, since time.Time) (*preview.Report, error)
	// DeadLetters returns the newest ones, latest first: those of a reason unless it is empty, at
	// most so many; nil without the role processor.
	DeadLetters func(ctx context.Context, reason string, most int) ([]DeadLetter, error)
}

// Tools answers. Its fields besides Config are required.
type Tools struct {
	Config
	// Files are the definitions in use.
	Files   func() features.Files
	Now     func() time.Time
	MaxBody int64 // bytes
	Logger  *slog.Logger

	previewing, reading sync.Mutex
}

// elsewhere says where to ask what this process cannot answer.
const elsewhere = "this process does not read Kafka; ask one with the role processor"
