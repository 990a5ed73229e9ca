package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-stream/weir/features/kinds"
)

type handler struct {
	Config
	limits  Limits
	metrics *metrics
	indexed atomic.Pointer[index]
	// complained is when a failure of the store was logged last, in
	// milliseconds.
	complained atomic.Int64
}

// New makes the handler of all paths. It panics if its metrics are registered
// already.
func New(c Config) http.Handler {
	if c.Gatherer == nil {
		c.Gatherer = prometheus.DefaultGatherer
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	h := &handler{Config: c, limits: c.Limits.orDefaults(), metrics: newMetrics(c.Registerer)}

	mux := http.NewServeMux()
	for _, route := range []struct {
		method, path string
		handler      http.Handler
	}{
		{"POST", "/v1/query", h.question(h.body)},
		{"GET", "/v1/features/{name}", h.question(h.query)},
		{"GET", "/v1/features", http.HandlerFunc(h.catalogue)},
		{"GET", "/healthz", http.HandlerFunc(h.health)},
		{"GET", "/readyz", http.HandlerFunc(h.ready)},
		{"GET", "/metrics", promhttp.HandlerFor(c.Gatherer, promhttp.HandlerOpts{})},
	} {
		mux.Handle(route.method+" "+route.path, route.handler)
		mux.HandleFunc(route.path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", route.method)
			fail(w, errorf(MethodNotAllowed, "%s takes %s, not %s", r.URL.Path, route.method, r.Method))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, errorf(UnknownPath, "there is no path %s", quote(r.URL.Path)))
	})
	return h.guard(mux)
}

// index is that of the present registry.
func (h *handler) index() *index {
	r := h.Registry()
	x := h.indexed.Load()
	if x == nil || x.registry != r {
		x = newIndex(r, h.metrics.asked)
		h.indexed.Store(x)
	}
	return x
}

// guard turns a panic into a response. Responses are written whole, so none
// has begun by then.
func (h *handler) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				h.Logger.Error("a request failed", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				fail(w, errInternal())
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func errInternal() *Error {
	return errorf(Internal, "the question could not be answered because of a defect; the server's log has the details")
}

// question answers questions, which read brings into q.body.
func (h *handler) question(read func(q *question, w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, outcome := h.Now(), failed
		h.metrics.inFlight.Inc()
		defer func() {
			h.metrics.inFlight.Dec()
			h.metrics.seconds.WithLabelValues(outcome).Observe(h.Now().Sub(began).Seconds())
		}()
		q := newQuestion(began)
		err := read(q, w, r)
		if err == nil {
			err = h.answer(r.Context(), q)
		}
		if err == nil {
			outcome = answered
			respond(w, http.StatusOK, q.out)
			q.free()
			return
		}
		var refusal *Error
		refusal, outcome = h.refusal(err)
		fail(w, refusal)
	})
}

// refusal is what a client is told about an error, and the outcome.
func (h *handler) refusal(err error) (*Error, string) {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal, refused
	}
	var store *storeError
	if !errors.As(err, &store) {
		h.Logger.Error("a question failed", "error", err)
		return errInternal(), failed
	}
	if errors.Is(err, context.DeadlineExceeded) {
		refusal = errorf(StoreUnavailable, "the store did not answer within %v", h.limits.Timeout)
	} else {
		refusal = errorf(StoreUnavailable, "the store cannot be read; the server's log has the details")
	}
	// A store that is down fails every question: the log says so once a second.
	now, last := h.Now().UnixMilli(), h.complained.Load()
	if now-last >= 1000 && h.complained.CompareAndSwap(last, now) {
		h.Logger.Error("the store cannot be read", "error", err)
	}
	return refusal, unavailable
}

// body reads the question of a POST.
func (h *handler) body(q *question, w http.ResponseWriter, r *http.Request) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return errorf(UnsupportedEncoding, "the body must not be compressed; its Content-Encoding is %s", quote(encoding))
	}
	buffer := bytes.NewBuffer(q.body)
	_, err := buffer.ReadFrom(http.MaxBytesReader(w, r.Body, h.limits.Body))
	q.body = buffer.Bytes()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return errorf(BodyTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	case err != nil:
		return errorf(UnreadableBody, "the body could not be read: %v", err)
	}
	return nil
}

// query reads the question of a GET. It is the same question, so it is written
// as one: values that are no JSON of themselves become strings, and what is
// wrong with them is found in one place.
func (h *handler) query(q *question, _ http.ResponseWriter, r *http.Request) error {
	x, name := h.index(), r.PathValue("name")
	p, ok := x.plans[name]
	if !ok {
		return x.unknownFeature(name)
	}
	parameters, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return errorf(MalformedQuery, "the query cannot be read: %v", err)
	}
	for _, parameter := range slices.Sorted(maps.Keys(parameters)) {
		values := parameters[parameter]
		if !utf8.ValidString(parameter) || !utf8.ValidString(values[0]) {
			return errorf(MalformedQuery, "the query is not UTF-8")
		}
		if parameter != "at" && !slices.Contains(p.By, parameter) {
			return unknownParameter(p, parameter)
		}
		if len(values) > 1 {
			return duplicateKey(parameter, "the query")
		}
	}
	q.body = appendString(append(q.body, `{"features":[`...), name)
	q.body = append(q.body, `],"entities":[{`...)
	first := true
	for i, by := range p.By {
		if !parameters.Has(by) {
			continue
		}
		if !first {
			q.body = append(q.body, ',')
		}
		first = false
		q.body = append(appendString(q.body, by), ':')
		q.body = appendLiteral(q.body, parameters.Get(by), p.ByTypes[i] == kinds.String)
	}
	q.body = append(q.body, "}]"...)
	if parameters.Has("at") {
		q.body = appendLiteral(append(q.body, `,"at":`...), parameters.Get("at"), false)
	}
	q.body = append(q.body, '}')
	return nil
}

func appendLiteral(dst []byte, text string, isString bool) []byte {
	if !isString && json.Valid([]byte(text)) {
		return append(dst, text...)
	}
	return appendString(dst, text)
}

func unknownParameter(p *plan, name string) error {
	known := append(slices.Clone(p.By), "at")
	e := errorf(UnknownKey, "feature %q has no parameter %s; it takes %s", p.Name, quote(name), strings.Join(known, ", "))
	e.Feature, e.Key, e.Nearest = p.Name, name, nearest(name, known)
	return e
}

func (h *handler) catalogue(w http.ResponseWriter, _ *http.Request) {
	respond(w, http.StatusOK, h.index().catalogue)
}

func respond(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	// A client that went away is no failure of the server's.
	_, _ = w.Write(body)
}

func fail(w http.ResponseWriter, e *Error) {
	if e.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	respond(w, e.Status, appendJSON(nil, map[string]*Error{"error": e}))
}
