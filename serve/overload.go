package serve

import (
	"net/http"
	"sync"
	"time"

	"github.com/weir-stream/weir/serve/reply"
)

// gate admits a bounded number of requests at once, so that one client cannot take the room of the others: it may hold
// up to four times as many places as are free. Alone it gets four fifths of all; of several that want all, each gets as
// much as the others, and some room is always left for one more.
type gate struct {
	mu    sync.Mutex
	most  int
	total int
	by    map[string]int // of clients with a name
}

// share is how many places a client may hold for each that is free.
const share = 4

func newGate(most int) *gate { return &gate{most: most, by: map[string]int{}} }

// enter admits a client, unless no place is left (full) or the client has its share of them. Without a name there is
// nobody to share with. The caller must call leave once if it is admitted.
func (g *gate) enter(client string) (admitted, full bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	free := g.most - g.total
	if free <= 0 {
		return false, true
	}
	if client != "" {
		if g.by[client] >= share*free {
			return false, false
		}
		g.by[client]++
	}
	g.total++
	return true, false
}

func (g *gate) leave(client string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total--
	if client == "" {
		return
	}
	if g.by[client]--; g.by[client] == 0 {
		delete(g.by, client)
	}
}

// unread is how many questions may be received for each that may be answered at once: a client that sends its body slowly
// costs little, and must not keep others from being answered.
const unread = 4

// enter admits a question by a gate, or refuses it.
func (h *handler) enter(g *gate, client string) error {
	admitted, full := g.enter(client)
	switch {
	case admitted:
		return nil
	case full:
		return reply.Errorf(reply.Overloaded, "as many questions as this server answers at once (%d) are under way; ask again in a second, or ask another server", h.Limits.Concurrent)
	default:
		return reply.Errorf(reply.Overloaded, "as many questions of this client are under way as leave room for those of others; ask again in a second, or ask another server")
	}
}

// allowTime extends the server's deadline for writing an answer, if questions may take that long.
func (h *handler) allowTime(w http.ResponseWriter) {
	const slack = writeTimeout / 2 // for reading the question and writing the answer
	if h.Limits.Timeout > writeTimeout-slack {
		// Only a writer without a connection cannot do this, and it does not need to.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.Limits.Timeout + slack))
	}
}
