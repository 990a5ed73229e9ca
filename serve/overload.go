package serve

import (
	"net/http"
	"time"

	"github.com/weir-stream/weir/serve/reply"
)

// enter counts a question in, or refuses it because of those that are being
// answered already. It comes before the body is read; what is held of the body and
// from then on, budgets bound. Call leave either way.
func (h *handler) enter() error {
	if h.answering.Add(1) > int64(h.limits.Concurrent) {
		return reply.Errorf(reply.Overloaded, "as many questions as this server answers at once (%d) are under way; ask again in a second, or ask another server", h.limits.Concurrent)
	}
	return nil
}

func (h *handler) leave() { h.answering.Add(-1) }

// allowTime lets an answer be written later than the server would, where
// questions may take that long.
func (h *handler) allowTime(w http.ResponseWriter) {
	const slack = writeTimeout / 2 // for reading the question and writing the answer
	if h.limits.Timeout > writeTimeout-slack {
		// Only a writer that is no connection's cannot do it, and needs not.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.limits.Timeout + slack))
	}
}
