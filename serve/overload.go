package serve

import (
	"net/http"
	"time"

	"github.com/weir-stream/weir/serve/reply"
)

// enter admits a question, or refuses it if too many are being answered. It is called before the body is read;
// afterwards budgets bound memory. The caller must call leave in both cases.
func (h *handler) enter() error {
	if h.answering.Add(1) > int64(h.Limits.Concurrent) {
		return reply.Errorf(reply.Overloaded, "as many questions as this server answers at once (%d) are under way; ask again in a second, or ask another server", h.Limits.Concurrent)
	}
	return nil
}

func (h *handler) leave() { h.answering.Add(-1) }

// allowTime extends the server's deadline for writing an answer, if questions may take that long.
func (h *handler) allowTime(w http.ResponseWriter) {
	const slack = writeTimeout / 2 // for reading the question and writing the answer
	if h.Limits.Timeout > writeTimeout-slack {
		// Only a writer without a connection cannot do this, and it does not need to.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.Limits.Timeout + slack))
	}
}
