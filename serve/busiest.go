package serve

import (
	"context"
	"net/http"

	"github.com/weir-stream/weir/serve/access"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
)

// shown is how many of the busiest entities of a key are answered.
const shown = 20

// busiest answers with the entities that events change most now, over all processors.
func (h *handler) busiest(_ http.ResponseWriter, r *http.Request) ([]byte, *reply.Error) {
	access.LogRead(h.Logger, r)
	ctx, cancel := context.WithTimeout(r.Context(), h.Limits.Timeout)
	defer cancel()
	reported, err := h.Reader.Busiest(ctx)
	if err != nil && r.Context().Err() != nil { // the store has not failed
		return nil, errAbandoned
	}
	if err != nil {
		refusal, _ := h.refusal(&storeError{err})
		return nil, refusal
	}
	b, n := state.MergeBusiest(reported, shown), 0
	for _, k := range b.Keys {
		n += len(k.Entities)
		for i := range k.Entities {
			k.Entities[i].Entity = state.Unescape(k.Entities[i].Entity)
		}
	}
	if client := access.Client(r.Context()); client != nil && h.Access.Audit != nil {
		h.Access.Audit.Count(client.Name, n, n, false)
	}
	return reply.AppendJSON(nil, b), nil
}
