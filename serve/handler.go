package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-stream/weir/serve/access"
	"github.com/weir-stream/weir/serve/catalogue"
	"github.com/weir-stream/weir/serve/page"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/serve/status"
	"github.com/weir-stream/weir/serve/tools"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

type handler struct {
	Config  // with defaults
	metrics *metrics
	tracing tracing
	history *store.Histories
	budgets *budgets
	served  atomic.Pointer[served]
	// receiving admits questions until they are read, and answering until they are answered.
	receiving, answering *gate
	// failureLogged is when a failure of the store was last logged, and damageLogged when damaged state was, in
	// milliseconds.
	failureLogged, damageLogged atomic.Int64
}

// New makes the handler of all paths. It panics if its metrics are already registered.
func New(c Config) http.Handler {
	if c.Gatherer == nil {
		c.Gatherer = prometheus.DefaultGatherer
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.Limits = c.Limits.orDefaults()
	h := &handler{Config: c, metrics: newMetrics(c.Registerer), tracing: newTracing(c.TracerProvider, c.StoreName)}
	h.budgets = newBudgets(h.Limits.InFlight)
	h.receiving, h.answering = newGate(unread*h.Limits.Concurrent), newGate(h.Limits.Concurrent)
	h.history = store.NewHistories(refreshAge, h.tracing.historyReader(c.Reader), c.Now)

	toolbox := &tools.Tools{
		Config: c.Tools, Registry: c.Registry, Now: c.Now, MaxBody: h.Limits.Body, Logger: c.Logger,
	}
	mux := http.NewServeMux()
	methods := map[string][]string{} // by path
	for _, route := range []struct {
		method, path string
		handler      http.Handler
	}{
		{"POST", "/v1/query", h.question(h.readBody, rows)},
		{"GET", "/v1/features/{name}", h.question(h.readQuery, row)},
		{"GET", "/v1/timeline/{name}", h.question(h.readTimeline, points)},
		{"POST", "/get-online-features", h.question(h.readBody, feastColumns)},
		{"GET", "/v1/features", reply.Answer(h.catalogue)},
		{"GET", "/v1/busiest", reply.Answer(h.busiest)},
		{"GET", "/v1/definitions", reply.Answer(h.definitions)},
		{"POST", "/v1/preview", reply.Answer(toolbox.AnswerPreview)},
		{"GET", "/v1/dead-letters", reply.Answer(toolbox.AnswerDeadLetters)},
		{"GET", "/v1/lists/{name}", reply.Answer(toolbox.AnswerList)},
		{"POST", "/v1/lists/{name}", reply.Answer(toolbox.ChangeList)},
		{"GET", "/v1/greatest-keys", reply.Answer(toolbox.AnswerGreatestKeys)},
		{"GET", "/v1/status", c.StatusHandler(c.Now, c.Logger)},
		{"GET", "/{$}", page.File("index.html")},
		{"GET", "/page/{file}", http.HandlerFunc(page.Files)},
		{"GET", "/healthz", http.HandlerFunc(status.Health)},
		{"GET", "/readyz", c.ReadyHandler(h.Limits.Timeout, access.Stranger)},
		{"GET", "/openapi.yaml", http.HandlerFunc(h.openAPI)},
		{"GET", "/metrics", promhttp.HandlerFor(c.Gatherer, promhttp.HandlerOpts{})},
	} {
		mux.Handle(route.method+" "+route.path, route.handler)
		methods[route.path] = append(methods[route.path], route.method)
	}
	for path, taken := range methods {
		takes := strings.Join(taken, " and ")
		allow := strings.ReplaceAll(strings.Join(taken, ", "), "GET", "GET, HEAD")
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", allow)
			reply.Fail(w, reply.Errorf(reply.MethodNotAllowed, "%s takes %s, not %s", r.URL.Path, takes, r.Method))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply.Fail(w, reply.Errorf(reply.UnknownPath, "there is no path %s", reply.Quote(r.URL.Path)))
	})
	return h.guard(refuseUncleanPaths(refuseOtherSites(h.Access.Admit(mux, h.metrics.unauthorized))))
}

// refuseOtherSites refuses what a browser sends for the page of another site, except GET: without tokens the browser is
// all that stands between such a page and this server.
func refuseOtherSites(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if protection.Check(r) != nil {
			reply.Fail(w, reply.Errorf(reply.Forbidden, "the page of another site sent this request; only pages of this server may"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseUncleanPaths refuses the paths that ServeMux would redirect to cleaner ones: clients do not repeat a body after
// a redirect, and the redirect is not JSON.
func refuseUncleanPaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := r.URL.EscapedPath()
		clean := path.Clean("/" + sent)
		if sent == clean || sent == clean+"/" && clean != "/" {
			next.ServeHTTP(w, r)
			return
		}
		e := reply.Errorf(reply.UnknownPath, "there is no path %s; did you mean %s?", reply.Quote(sent), reply.Quote(clean))
		e.Nearest = clean
		reply.Fail(w, e)
	})
}

// guard turns a panic into a response. Responses are written whole, so none has begun by then.
func (h *handler) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				h.metrics.panics.Inc()
				h.Logger.Error("a request failed", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				reply.Fail(w, reply.Defect())
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// codec reads questions and writes their answers in one format.
type codec struct {
	read     func(*handler, *request) error       // makes the parts from the body; nil if the URL is the whole question
	addReads func(*found, *asked)                 // lists what the answers need of the state
	encode   func(*answer, context.Context) error // computes the answers and writes them
	fail     func(http.ResponseWriter, *reply.Error)
}

var (
	rows   = codec{(*handler).readJSON, (*found).addReads, (*answer).encode, reply.Fail}
	row    = codec{nil, (*found).addReads, (*answer).encode, reply.Fail}
	points = codec{nil, (*found).addPoints, (*answer).encodePoints, reply.Fail}
)

// question answers questions in the format of a codec. read takes them from a request: a body as it is, a URL into
// the parts.
func (h *handler) question(read func(q *question, w http.ResponseWriter, r *http.Request) error, in codec) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, outcome := h.Now(), failed
		h.metrics.inFlight.Inc()
		defer func() {
			h.metrics.inFlight.Dec()
			h.metrics.seconds.WithLabelValues(outcome).Observe(h.Now().Sub(began).Seconds())
		}()
		ctx, span := h.tracing.question(r)
		defer span.End()
		q := newQuestion(began, h.budgets)
		q.request.view.client = access.Client(ctx)
		h.allowTime(w)
		name := ""
		if client := q.request.view.client; client != nil {
			name = client.Name
		}
		written := false
		defer func() {
			q.held.releaseAll()
			if written { // last of all: another goroutine may use the question at once
				q.free(h.Reader)
			}
		}()
		err := h.enter(h.receiving, name)
		if err == nil {
			err = read(q, w, r)
			h.receiving.leave(name)
		}
		if err == nil {
			err = h.enter(h.answering, name)
		}
		if err == nil {
			defer h.answering.leave(name)
			err = h.work(ctx, q, in)
		}
		if err == nil {
			outcome = answered
			h.audit(q, false)
			h.damaged(&q.answer)
			h.metrics.unavailable.Add(float64(q.answer.unavailable))
			ended(span, nil)
			reply.Whole(w, r, q.answer.out)
			written = true
			return
		}
		if hungUp(r, err) {
			outcome = abandoned
			ended(span, errAbandoned)
			in.fail(w, errAbandoned)
			return
		}
		var refusal *reply.Error
		refusal, outcome = h.refusal(err)
		h.audit(q, true)
		ended(span, refusal)
		in.fail(w, refusal)
	})
}

// work answers the question that was received and leaves the response in q.answer, holding no other memory.
func (h *handler) work(ctx context.Context, q *question, in codec) error {
	ctx, cancel := context.WithTimeout(ctx, h.Limits.Timeout)
	defer cancel()
	if err := q.held.hold(ctx, parsing, parsedSize*int64(len(q.request.body))); err != nil {
		return err
	}
	q.held.release(receiving)
	if in.read != nil {
		if err := in.read(h, &q.request); err != nil {
			return err
		}
	}
	err := h.answer(ctx, q, in)
	q.held.release(parsing)
	q.held.release(reading)
	return q.held.attribute(err, h.Limits.Timeout)
}

// errAbandoned is the error for a client that hung up.
var errAbandoned = reply.HungUp()

// hungUp reports whether the client hung up before it was answered: then neither the store nor the question has failed.
func hungUp(r *http.Request, err error) bool {
	var refusal *reply.Error
	if errors.As(err, &refusal) { // it has been found whether or not the client still reads
		return refusal.Code == reply.Abandoned
	}
	return r.Context().Err() != nil
}

// refusal returns the error for the client, and the outcome.
func (h *handler) refusal(err error) (*reply.Error, string) {
	var refusal *reply.Error
	if errors.As(err, &refusal) {
		if refusal.Code == reply.Overloaded {
			return refusal, overloaded
		}
		return refusal, refused
	}
	var store *storeError
	if !errors.As(err, &store) {
		h.Logger.Error("a question failed", "error", err)
		return reply.Defect(), failed
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) && errors.Is(err, state.ErrUnavailable): // it may not even have been asked
		refusal = reply.Errorf(reply.StoreUnavailable, "the store has not answered lately")
	case errors.Is(err, context.DeadlineExceeded):
		refusal = reply.Errorf(reply.StoreUnavailable, "the store did not answer within %v", h.Limits.Timeout)
	default:
		refusal = reply.Errorf(reply.StoreUnavailable, "the store cannot be read; the server's log has the details")
	}
	// A store that is down fails every question: it is logged once a second.
	if h.logDue(&h.failureLogged) {
		h.Logger.Error("the store cannot be read", "error", err)
	}
	return refusal, unavailable
}

// damaged counts answers that damaged state prevented, and logs one each second.
func (h *handler) damaged(by *answer) {
	if by.damaged == 0 {
		return
	}
	h.metrics.damaged.Add(float64(by.damaged))
	if h.logDue(&h.damageLogged) {
		h.Logger.Error("state is damaged: an entity has no answer", "error", by.damage)
		store.DebugKey(h.Logger, by.damage)
	}
}

// logDue reports whether another log line is due: at most one a second. last is when the last one was written, in
// milliseconds.
func (h *handler) logDue(last *atomic.Int64) bool {
	now, before := h.Now().UnixMilli(), last.Load()
	return now-before >= 1000 && last.CompareAndSwap(before, now)
}

// audit counts a question for its client.
func (h *handler) audit(q *question, refused bool) {
	client, asked := q.request.view.client, &q.asked
	switch {
	case h.Access.Audit == nil || client == nil:
	case refused: // it may have been decoded in part only
		h.Access.Audit.Count(client.Name, 0, 0, true)
	default:
		h.Access.Audit.Count(client.Name, len(asked.entities.sent), len(asked.entities.sent)*asked.answers(), false)
	}
}

// catalogueWait is how long the catalogue waits for the store. Without the store it does not state how complete
// features are.
const catalogueWait = 500 * time.Millisecond

// catalogue describes what the client may ask for.
func (h *handler) catalogue(_ http.ResponseWriter, r *http.Request) ([]byte, *reply.Error) {
	x := h.index()
	described := x.described
	client := access.Client(r.Context())
	if client != nil && !client.Scopes.Everything() {
		described = described.Of(client.Scopes.Service)
	}
	if client != nil && !client.Scopes.Lists() {
		described.Lists = []catalogue.List{}
	}
	ctx, cancel := context.WithTimeout(r.Context(), catalogueWait)
	defer cancel()
	if history, err := h.history.Get(ctx, time.Time{}); err == nil {
		described = described.Completed(func(feature string) (since int64, filled float64) {
			c := x.features[feature].completeness(history)
			// While events are applied without the state, nothing up to now is certain.
			since = c.Since()
			if now := h.Now().UnixMilli(); since > now {
				since = now
			}
			return since, c.Filled()
		})
	}
	return reply.AppendJSON(nil, described), nil
}

// definitions answers with the definitions in use, as they were written.
func (h *handler) definitions(http.ResponseWriter, *http.Request) ([]byte, *reply.Error) {
	return reply.AppendJSON(nil, catalogue.DefinitionsOf(h.Registry())), nil
}
