package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
)

// tableLagging is how old a table may be before /readyz warns of it.
const tableLagging = 30 * time.Second

// lookedUp returns the tables of which a process looks up rows. One that does not answer questions only enriches events.
func lookedUp(r *features.Registry, answers bool) []*features.Table {
	if answers {
		return r.Tables
	}
	var enriching []*features.Feature
	for _, e := range r.Enrichments {
		enriching = append(enriching, e.Service.Features...)
	}
	return features.TablesOf(enriching)
}

// tablesReady returns which tables the process waits for. Once it has had all of them, one that is new, too large or not up to
// date does not make it unready: what does not depend on that is answered as before.
func (n *Node) tablesReady(context.Context) error {
	var awaited, wrong []string
	for _, h := range n.tables.All() {
		rows, _, age, why := h.State(time.Now())
		switch {
		case age < 0 && n.tables.Awaited([]*features.Table{h.Table}) != nil:
			awaited = append(awaited, fmt.Sprintf("waiting for table %s: %v", h.Table.Name, why))
		case age < 0:
			wrong = append(wrong, fmt.Sprintf("table %s cannot answer: %v", h.Table.Name, why))
		case age > tableLagging:
			wrong = append(wrong, fmt.Sprintf("table %s, of %d rows, is %s old: %v", h.Table.Name, rows, age.Round(time.Second), why))
		}
	}
	switch {
	case awaited == nil:
		n.hadTables.Store(true)
	case !n.hadTables.Load():
		return fmt.Errorf("%s", strings.Join(awaited, "; "))
	}
	if all := append(awaited, wrong...); all != nil {
		return lagging(strings.Join(all, "; "))
	}
	return nil
}

// lagging is a problem with tables that does not keep the process from answering.
type lagging string

func (l lagging) Error() string { return string(l) }

// Degraded reports that the process works.
func (lagging) Degraded() bool { return true }
