package access

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Audit counts requests by client, for one log line for each client and minute. It records names of clients and
// numbers, never the entities asked about. It is safe for concurrent use, and its zero value is ready.
type Audit struct {
	mu      sync.Mutex
	clients map[string]*usage
	since   time.Time // zero before the first Log
}

// usage counts what a client asked for.
type usage struct{ questions, refused, entities, values int }

const (
	// auditInterval is the time that one line covers.
	auditInterval = time.Minute
	// maxClients bounds the distinguished names: an issuer may have any number.
	maxClients   = 1000
	otherClients = "(others)"
)

// Count counts a question with the number of its entities and values; a refused question has none.
func (a *Audit) Count(client string, entities, values int, refused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.clients[client]
	if u == nil && len(a.clients) >= maxClients {
		client = otherClients
		u = a.clients[client]
	}
	if a.clients == nil {
		a.clients = map[string]*usage{}
	}
	if u == nil {
		u = &usage{}
		a.clients[client] = u
	}
	u.questions++
	if refused {
		u.refused++
		return
	}
	u.entities += entities
	u.values += values
}

// LogRead logs that somebody asks for records, or for entities that clients do not know, with what is asked for.
func LogRead(log *slog.Logger, r *http.Request, what ...slog.Attr) {
	logRequest(log, r, "an operator reads", what)
}

// LogChange logs that somebody changes something, with what.
func LogChange(log *slog.Logger, r *http.Request, what ...slog.Attr) {
	logRequest(log, r, "an operator changes a list", what)
}

func logRequest(log *slog.Logger, r *http.Request, message string, what []slog.Attr) {
	name := ""
	if client := Client(r.Context()); client != nil {
		name = client.Name
	}
	attrs := append([]slog.Attr{slog.String("client", name), slog.String("from", r.RemoteAddr), slog.String("path", r.URL.Path)}, what...)
	log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelInfo, message, attrs...)
}

// Log logs the counts if a minute has passed since the last time. Call it regularly.
func (a *Audit) Log(log *slog.Logger, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		a.since = now
	}
	if now.Sub(a.since) >= auditInterval {
		a.flush(log, now)
	}
}

// Flush logs the remaining counts before a process ends.
func (a *Audit) Flush(log *slog.Logger, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flush(log, now)
}

func (a *Audit) flush(log *slog.Logger, now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(a.clients)) {
		u := a.clients[name]
		log.Info("a client asked", "client", name, "questions", u.questions, "refused", u.refused,
			"entities", u.entities, "values", u.values, "over", now.Sub(a.since).Round(time.Second))
	}
	clear(a.clients)
	a.since = now
}
