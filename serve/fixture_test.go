package serve

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/serve/status"
	"github.com/weir-stream/weir/serve/tools"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/value"
)

const day = 24 * time.Hour

// noon is the present moment of the tests: 2018-07-25T12:00:00Z.
var noon = time.Date(2018, 7, 25, 12, 0, 0, 0, time.UTC)

// fakeReader holds window states by series and entity.
type fakeReader struct {
	states map[string]state.WindowState // "series entity"
	clock  int64
	// busiest is what processors have counted.
	busiest []state.Busiest
	// countBusiest, if set, is asked before they are returned.
	countBusiest func(context.Context) error
	err          error
	// read, if set, replaces a read.
	read func(context.Context, []state.Read) ([]state.WindowState, error)
	// recycle, if set, is called when a question is free.
	recycle func()

	mu      sync.Mutex
	calls   [][]state.Read
	pending *state.Batch // of the last question that had one
	// position is the progress of every partition in one of two shards.
	position    state.Position
	progressErr error
}

func (r *fakeReader) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	r.mu.Lock()
	r.calls = append(r.calls, append([]state.Read(nil), reads...))
	r.mu.Unlock()
	if r.read != nil {
		return r.read(ctx, reads)
	}
	states := make([]state.WindowState, len(reads))
	for i, read := range reads {
		states[i] = r.states[read.Series.ID+" "+read.Entity]
	}
	return states, r.err
}

func (r *fakeReader) ReadOverlay(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error) {
	r.pending = pending
	return r.Read(ctx, reads)
}

func (r *fakeReader) ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error) {
	states, err := r.ReadOverlay(ctx, reads, pending)
	return states, state.Freshness{}, err
}

func (r *fakeReader) Recycle([]state.WindowState) {
	if r.recycle != nil {
		r.recycle()
	}
}

func (r *fakeReader) Clock(context.Context) (int64, error) { return r.clock, r.err }

func (r *fakeReader) History(context.Context) (*state.History, error) { return nil, nil }

func (r *fakeReader) Busiest(ctx context.Context) ([]state.Busiest, error) {
	if r.countBusiest != nil {
		return nil, r.countBusiest(ctx)
	}
	return r.busiest, r.err
}

func (r *fakeReader) Progress(context.Context, []state.Partition) ([][]state.Position, error) {
	return [][]state.Position{{{Offset: -1}, r.position}}, r.progressErr
}

func (r *fakeReader) Applied(context.Context, state.Partition, int64, []state.Read) (bool, error) {
	return false, nil
}

// stored is the content of the fake reader.
func stored() map[string]state.WindowState {
	text := func(s string) value.Value { return value.Value{Type: value.String, Str: []byte(s)} }
	buckets := func(values ...value.Value) state.WindowState {
		var s state.WindowState
		for i, v := range values {
			s.Buckets = append(s.Buckets, state.Bucket{Tile: 17730 + int64(i), Value: v})
		}
		return s
	}
	one, two := value.Value{Type: value.Int, Num: 1}, value.Value{Type: value.Int, Num: 2}
	return map[string]state.WindowState{
		"count d1": buckets(one, two),
		"sum d1":   buckets(value.Value{Type: value.Decimal, Scale: 2, Num: 16655}, value.Value{Type: value.Decimal, Scale: 2, Num: 5}),
		"nums d1":  buckets(two, two),
		"hll d1":   {Count: 12345},
		"touch d1": {Count: 3, After: 2},
		"maxs d1":  buckets(text("caf\u00e9 \"\x01\xff\\")),
		"ever u1":  buckets(value.Value{Type: value.Timestamp, Num: 1532496076032}),
		// Of every type, in the order of By: t, s, i, d, b.
		`typed 1532496076032|a\|b\\|-7|166.6|true`: buckets(one),
	}
}

// registry holds features with every kind of key and answer.
func registry() *features.Registry {
	stream := &record.Stream{Name: "transaction", Topic: "transactions", RememberIDs: 90 * time.Minute, Fields: []record.Field{
		{Name: "device_id", Type: value.String}, {Name: "user_id", Type: value.String},
		{Name: "b", Type: value.Bool}, {Name: "d", Type: value.Decimal, Scale: 2},
		{Name: "i", Type: value.Int}, {Name: "s", Type: value.String}, {Name: "t", Type: value.Timestamp},
	}}
	series := func(id string, m state.Measure, tile time.Duration) *state.Series {
		return &state.Series{ID: id, Stream: stream.Name, Tiles: 8, Measure: m, Tile: tile.Milliseconds()}
	}
	function := func(name, method string) aggregate.Function {
		k, ok := aggregate.Find(name, method)
		if !ok {
			panic(name)
		}
		return k
	}
	week := window.Window{Type: window.Rolling{Size: 7 * day}, Tile: day}
	device, deviceType := []string{"device_id"}, []value.Type{value.String}
	money := aggregate.Call{Type: value.Decimal, Scale: 2}
	count, sum, nums := series("count", state.CountEvents, day), series("sum", state.Sum, day), series("nums", state.CountValues, day)
	r := &features.Registry{
		Streams: []*record.Stream{stream},
		Features: []*features.Feature{
			{
				Name: "device_amount_7d", Basis: features.OverStream{}, Definition: "SUM(7d, transaction, amount, device_id)", Function: function("sum", ""), Call: money,
				By: device, ByTypes: deviceType, Window: week, Keep: 7 * day, Series: []*state.Series{sum},
			},
			{
				Name: "device_avg_7d", Basis: features.OverStream{}, Definition: "AVG(7d, transaction, amount, device_id)", Function: function("avg", ""), Call: money,
				By: device, ByTypes: deviceType, Window: week, Keep: 7 * day, Series: []*state.Series{sum, nums},
			},
			{
				Name: "device_cards_7d", Basis: features.OverStream{}, Definition: "APPROX_COUNT_DISTINCT(7d, transaction, device_id, card)", Function: function("approx_count_distinct", ""),
				By: device, ByTypes: deviceType, Window: week, Keep: 7 * day, Series: []*state.Series{series("hll", state.Approx, day)},
			},
			{
				Name: "device_max_name_7d", Basis: features.OverStream{}, Definition: "MAX(7d, transaction, name, device_id)", Function: function("max", ""),
				By: device, ByTypes: deviceType, Window: week, Keep: 7 * day, Series: []*state.Series{series("maxs", state.Max, day)},
			},
			{
				Name: "device_tx_7d", Basis: features.OverStream{}, Definition: "COUNT(7d, transaction, device_id)", Function: function("count", ""),
				Description: "transactions of a device", Owner: "risk", Where: "amount > 10",
				By: device, ByTypes: deviceType, Window: week, Keep: 7 * day, Series: []*state.Series{count},
			},
			{
				Name: "device_users_7d", Basis: features.OverStream{}, Definition: "COUNT_DISTINCT(7d, transaction, device_id, user_id, method=last_seen)",
				Function: function("count_distinct", "last_seen"), Call: aggregate.Call{Max: 5}, By: device, ByTypes: deviceType,
				Window: window.Window{Type: window.Rolling{Size: 7 * day}, Tile: time.Millisecond}, Keep: 36 * time.Hour,
				Series: []*state.Series{series("touch", state.LastTimes, time.Millisecond)},
			},
			{
				Name: "typed_7d", Basis: features.OverStream{}, Definition: "COUNT(7d, transaction, t, s, i, d, b)", Function: function("count", ""),
				By:      []string{"t", "s", "i", "d", "b"},
				ByTypes: []value.Type{value.Timestamp, value.String, value.Int, value.Decimal, value.Bool},
				Window:  week, Keep: 7 * day, Series: []*state.Series{series("typed", state.CountEvents, day)},
			},
			{
				Name: "user_last", Basis: features.OverStream{}, Definition: "MAX(lifetime, transaction, t, user_id)", Function: function("max", ""),
				By: []string{"user_id"}, ByTypes: deviceType, Series: []*state.Series{series("ever", state.Max, 0)},
			},
		},
	}
	for _, f := range r.Features {
		spec := f.Function.Spec()
		f.Stream, f.Spec = stream, &spec
	}
	find := func(names ...string) (list []*features.Feature) {
		for _, name := range names {
			f, _ := r.Feature(name)
			list = append(list, f)
		}
		return list
	}
	r.Services = []*features.Service{{Name: "payment_risk", Features: find("user_last", "device_tx_7d", "device_amount_7d")}}
	return r
}

// setup is a handler's Config, with replacements for its reader's answers.
type setup struct {
	Config
	History  func(context.Context) (*state.History, error)
	Applied  func(context.Context, state.Partition, int64, []state.Read) (bool, error)
	Replicas func(context.Context, []state.Read, *state.Batch) ([]state.WindowState, state.Freshness, error)
}

// scripted is a reader with replaced answers.
type scripted struct {
	store.Reader
	s *setup
}

func (r scripted) History(ctx context.Context) (*state.History, error) {
	if r.s.History == nil {
		return r.Reader.History(ctx)
	}
	return r.s.History(ctx)
}

func (r scripted) Applied(ctx context.Context, p state.Partition, offset int64, reads []state.Read) (bool, error) {
	if r.s.Applied == nil {
		return r.Reader.Applied(ctx, p, offset, reads)
	}
	return r.s.Applied(ctx, p, offset, reads)
}

func (r scripted) ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error) {
	if r.s.Replicas == nil {
		return r.Reader.ReadReplica(ctx, reads, pending)
	}
	return r.s.Replicas(ctx, reads, pending)
}

// newHandler serves the fixture from a reader; change alters the setup.
func newHandler(reader store.Reader, change func(*setup)) http.Handler {
	r := registry()
	metrics := prometheus.NewRegistry()
	s := &setup{Config: Config{
		Registry: func() *features.Registry { return r },
		Tools: tools.Config{LongestKeys: func(context.Context, int, time.Duration) (state.LongKeys, error) {
			return state.LongKeys{All: true}, nil
		}},
		Reader: reader, StoreName: "Redis", Registerer: metrics, Process: status.Process{Gatherer: metrics},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Now:    func() time.Time { return noon },
	}}
	if change != nil {
		change(s)
	}
	s.FromReplicas = s.FromReplicas || s.Replicas != nil
	if s.History != nil || s.Applied != nil || s.Replicas != nil {
		s.Reader = scripted{s.Reader, s}
	}
	return New(s.Config)
}

// do sends a request to a handler; request and response must conform to /openapi.yaml.
func do(t testing.TB, h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	h.ServeHTTP(w, r)
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("%s %s: Content-Type %q, want application/json", method, target, got)
	}
	checkContract(t, method, target, body, w)
	return w
}

// logTo is a logger that writes text.
func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
