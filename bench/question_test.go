package bench

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/serve"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// BenchmarkQuestion asks the questions of BenchmarkQuestions without HTTP, one after the other. It
// shows what Weir allocates, and the CPU time of its process.
func BenchmarkQuestion(b *testing.B) {
	client := redistest.New(b, redistest.Options{}).Client(b)
	registry := defined.Registry(b, questionDefinitions)
	s := redisstore.New(client, namespace, questionShards)
	loadEntities(b, s, registry, time.Now())
	h := serve.New(serve.Config{Registry: func() *features.Registry { return registry }, Reader: s})
	w := &nowhere{header: http.Header{}}
	request := httptest.NewRequest(http.MethodPost, "/v1/query", nil)
	b.ReportAllocs()
	b.ResetTimer()
	began, n := cpuSeconds(), uint64(0)
	for b.Loop() {
		n += 7919
		request.Body = body{bytes.NewReader(question(n))}
		h.ServeHTTP(w, request)
		if w.status != http.StatusOK {
			b.Fatalf("status %d", w.status)
		}
	}
	b.ReportMetric((cpuSeconds()-began)/float64(b.N)*1e6, "cpu-µs/op")
}

// body is a request body.
type body struct{ *bytes.Reader }

func (body) Close() error { return nil }

// nowhere drops responses and keeps their status.
type nowhere struct {
	header http.Header
	status int
}

func (w *nowhere) Header() http.Header         { return w.header }
func (w *nowhere) WriteHeader(status int)      { w.status = status }
func (w *nowhere) Write(p []byte) (int, error) { return len(p), nil }
