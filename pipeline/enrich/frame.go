package enrich

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
)

// Registry registers schemas.
type Registry interface {
	// Register returns the ID of a subject's schema. If it fails it must be called again; it takes
	// only a moment.
	Register(ctx context.Context, subject, schema string) (id int32, err error)
}

// frameBytes is the length of what Confluent's wire format puts before a value: a zero byte, and the
// ID of the schema in four bytes.
const frameBytes = 5

// frame puts the IDs of their schemas into the answered events, in Confluent's wire format. Ranges with events whose
// schema cannot be registered are left out of the batch, and nothing of them is written.
func (e *Enricher) frame(ctx context.Context, b *Batch) {
	failures := map[int]error{}
	for _, n := range e.due {
		if n.stream.schema == "" || failures[n.Range] != nil {
			continue
		}
		id, err := e.schemas.Register(ctx, n.stream.subject, n.stream.schema)
		if err != nil {
			failures[n.Range] = err
			b.Fail(n.Range, fmt.Errorf("write enriched events to %s: %w", n.stream.topic, err))
			continue
		}
		binary.BigEndian.PutUint32(n.value[1:], uint32(id))
	}
	e.due = slices.DeleteFunc(e.due, func(n *Event) bool { return failures[n.Range] != nil })
}
