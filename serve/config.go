package serve

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/serve/access"
	"github.com/weir-stream/weir/serve/status"
	"github.com/weir-stream/weir/serve/tools"
	"github.com/weir-stream/weir/store"
)

// Limits bound the cost of one question. Zero means the default.
type Limits struct {
	Body    int64         // bytes of a question; 1 MiB
	Values  int           // features or their members, with multi-hop entities, times entities of a question; 10,000
	Answer  int64         // bytes of an answer; 16 MiB
	Timeout time.Duration // from reading the question to the answer; 2s
	// InFlight is how many bytes all questions may hold at once, except short bodies and answers; a question that finds
	// no free memory queues, within Timeout. 256 MiB.
	InFlight int64
	// Concurrent is how many questions are answered at the same time; further ones are refused with 503. 500.
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

// Tables are tables of which features look up rows.
type Tables interface {
	query.Tables
	// Age returns how long ago all rows of a table were known that existed then; negative if they never were.
	Age(t *features.Table, now time.Time) time.Duration
}

// Config configures a handler.
type Config struct {
	status.Process
	// Registry is called for every question, so that definitions may be replaced while questions
	// are served. It never returns nil.
	Registry func() *features.Registry
	Reader   store.Reader
	// Tables are the tables that features look up; nil if they look up none.
	Tables Tables
	// StoreName is the store's name, for spans.
	StoreName string
	// FromReplicas reads from replicas for questions, if these are fresh enough; answers then say so. Questions that
	// wait for an event, the history and the clock are read from masters.
	FromReplicas bool
	Limits       Limits
	Access       access.Rules
	Tools        tools.Config
	// Registerer receives the handler's metrics; nil keeps them private.
	Registerer prometheus.Registerer
	// TracerProvider receives spans of questions; nil makes none.
	TracerProvider trace.TracerProvider
	Logger         *slog.Logger     // slog.Default if nil
	Now            func() time.Time // time.Now if nil
}
