package serve

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
)

// Reader reads the state that questions are answered from.
type Reader interface {
	features.Reader
	// ReadAsIf answers all reads in one round trip as Read would if a batch had
	// just been applied, but for events that have arrived meanwhile and whose
	// identities are remembered. It changes nothing.
	ReadAsIf(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error)
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
	Values  int           // features or their members, and what they may go through, times entities of a question; 10,000
	Answer  int64         // bytes of an answer; 16 MiB
	Timeout time.Duration // from the question read to the answer; 2s
	// InFlight is how many bytes all questions may hold at once, but for short bodies
	// and answers; whoever finds no room waits in line, within Timeout. 256 MiB.
	InFlight int64
	// Concurrent is how many questions are answered at once; one more is refused
	// with 503. 500.
	Concurrent int
}

func (l Limits) orDefaults() Limits {
	return Limits{
		Body:    cmp.Or(l.Body, 1<<20),
		Values:  cmp.Or(l.Values, 10_000),
		Answer:  cmp.Or(l.Answer, 16<<20),
		Timeout: cmp.Or(l.Timeout, 2*time.Second),

		InFlight:   cmp.Or(l.InFlight, 256<<20),
		Concurrent: cmp.Or(l.Concurrent, 500),
	}
}

// Config is what a handler is made of.
type Config struct {
	// Registry is asked for at every question, so that definitions may be
	// replaced while questions are served. It never returns nil.
	Registry func() *features.Registry
	Reader   Reader
	// Replicas, where set, reads as ReadAsIf does, with nil for no batch, but from
	// replicas where they do, and says how old the state may be. Questions that wait
	// for an event, the history and the clock are left to masters.
	Replicas func(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error)
	// History reads which plans the state was written by. Answers say since when
	// their state is complete by it; nil leaves that out.
	History func(ctx context.Context) (*state.History, error)
	// Applied says whether the record at an offset of a partition is in all state
	// that reads look at; in all there is, without any reads. Questions may wait
	// for it; nil is never.
	Applied func(ctx context.Context, p state.Partition, offset int64, reads []state.Read) (bool, error)
	Checks  []Check // of /readyz, run at once
	// Definitions is what /readyz tells of them; nil leaves that out.
	Definitions func() Definitions
	Limits      Limits
	Access      Access
	// DeadLetters are the last that this process has set aside, the latest first,
	// for /v1/status; nil leaves that out.
	DeadLetters func() []DeadLetter
	// Gatherer is what /metrics and /v1/status show: prometheus.DefaultGatherer if nil.
	Gatherer prometheus.Gatherer
	// Registerer takes the handler's own metrics; nil keeps them to itself.
	Registerer prometheus.Registerer
	// TracerProvider takes spans of questions; nil makes none.
	TracerProvider trace.TracerProvider
	Logger         *slog.Logger     // slog.Default if nil
	Now            func() time.Time // time.Now if nil
}
