package serve

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
)

// Reader reads the state that questions are answered from.
type Reader interface {
	// Read answers all reads in one round trip; the slices are in the order of
	// the reads.
	Read(ctx context.Context, reads []kinds.Read) ([]kinds.Slice, error)
	// Clock is the greatest timestamp of a record applied, in milliseconds; 0
	// if there is none. It is asked for only when a question's moment lies far
	// back.
	Clock(ctx context.Context) (int64, error)
}

// Check is one condition of being ready to answer.
type Check struct {
	Name  string
	Check func(context.Context) error
}

// Limits bound what one question may cost. A zero stands for the default.
type Limits struct {
	Body    int64         // bytes of a question; 1 MiB
	Values  int           // features times entities of a question; 10,000
	Timeout time.Duration // from the question read to the answer; 2s
}

func (l Limits) orDefaults() Limits {
	return Limits{
		Body:    cmp.Or(l.Body, 1<<20),
		Values:  cmp.Or(l.Values, 10_000),
		Timeout: cmp.Or(l.Timeout, 2*time.Second),
	}
}

// Config is what a handler is made of.
type Config struct {
	// Registry is asked for at every question, so that definitions may be
	// replaced while questions are served. It never returns nil.
	Registry func() *features.Registry
	Reader   Reader
	Checks   []Check // of /readyz, run at once
	Limits   Limits
	// Gatherer is what /metrics shows: prometheus.DefaultGatherer if nil.
	Gatherer prometheus.Gatherer
	// Registerer takes the handler's own metrics; nil keeps them to itself.
	Registerer prometheus.Registerer
	Logger     *slog.Logger     // slog.Default if nil
	Now        func() time.Time // time.Now if nil
}
