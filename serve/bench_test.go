package serve

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/value"
)

// BenchmarkQuestion asks for 20 features with three different keys for 3 entities, without the
// store and the network.
func BenchmarkQuestion(b *testing.B) {
	r := &features.Registry{Streams: registry().Streams}
	count, _ := aggregate.Find("count", "")
	spec := count.Spec()
	var names []string
	for i := range 20 {
		f := &features.Feature{
			Name: fmt.Sprintf("feature_%02d", i), Basis: features.OverStream{}, Stream: r.Streams[0], Function: count, Spec: &spec, Keep: 7 * day,
			By: []string{[]string{"device_id", "user_id", "s"}[i%3]}, ByTypes: []value.Type{value.String},
			Window: window.Window{Type: window.Rolling{Size: 7 * day}, Tile: day},
			Series: []*state.Series{{ID: fmt.Sprint(i), Tile: day.Milliseconds()}},
		}
		r.Features = append(r.Features, f)
		names = append(names, `"`+f.Name+`"`)
	}
	states := make([]state.WindowState, 60)
	for i := range states {
		states[i].Buckets = []state.Bucket{{Tile: 1, Value: value.Value{Type: value.Int, Num: int64(i)}}}
	}
	h := newHandler(instant{states: states}, func(c *setup) {
		c.Registry = func() *features.Registry { return r }
		c.Now = time.Now
	})
	var entities []string
	for i := range 3 {
		entities = append(entities, fmt.Sprintf(`{"device_id": "d%06d", "user_id": "u%06d", "s": "10.0.0.%d"}`, i, i, i))
	}
	body := []byte(`{"features": [` + strings.Join(names, ", ") + `], "entities": [` + strings.Join(entities, ", ") + `]}`)

	reader := bytes.NewReader(body)
	request, err := http.NewRequest("POST", queryPath, reader)
	if err != nil {
		b.Fatal(err)
	}
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		h.ServeHTTP(w, request)
		if w.status != http.StatusOK {
			b.Fatalf("status %d", w.status)
		}
	}
}

// instant gives every question the same answer.
type instant struct {
	store.Reader
	states []state.WindowState
}

func (r instant) Read(context.Context, []state.Read) ([]state.WindowState, error) {
	return r.states, nil
}
func (r instant) ReadOverlay(context.Context, []state.Read, *state.Batch) ([]state.WindowState, error) {
	return r.states, nil
}
func (r instant) Recycle([]state.WindowState)                     {}
func (r instant) Clock(context.Context) (int64, error)            { return 0, nil }
func (r instant) History(context.Context) (*state.History, error) { return nil, nil }

type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
