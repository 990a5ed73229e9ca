package serve

import (
	"time"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/state"
)

// refreshAge is the age at which a question reads the history again; others meanwhile use the old one.
const refreshAge = 200 * time.Millisecond

// completeness is the completeness of a feature according to a history.
type completeness struct {
	history *state.History
	of      *query.Completeness
}

// completeness returns the feature's completeness; nil means no history.
func (p *preparedFeature) completeness(history *state.History) *query.Completeness {
	c := p.complete.Load()
	if c == nil || c.history != history {
		c = &completeness{history, query.CompletenessOf(p.Feature, history)}
		p.complete.Store(c)
	}
	return c.of
}

// complete finds the completeness of the answers; nil means no history.
func (f *found) complete(q *asked, history *state.History) {
	f.reading.SetRemaining(history.Remaining(q.now))
	f.since = f.since[:0]
	for _, p := range q.features {
		f.since = append(f.since, p.completeness(history))
	}
}
