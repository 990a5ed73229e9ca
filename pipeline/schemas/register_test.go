package schemas_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/pipeline/schemas"
)

// A schema is registered once; if the registry refuses it or takes long, the request is repeated.
func TestRegister(t *testing.T) {
	var asked, answer atomic.Int32
	slow := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Method != http.MethodPost || r.URL.Path != "/subjects/out-value/versions" {
			t.Errorf("unexpected request %s %s", r.Method, r.URL)
		}
		switch code := int(answer.Load()); code {
		case http.StatusOK:
		case http.StatusAccepted:
			<-slow
		default:
			w.WriteHeader(code)
			_, _ = w.Write([]byte(`{"error_code": 409, "message": "incompatible"}`))
			return
		}
		_, _ = w.Write([]byte(`{"id": 7}`))
	}))
	t.Cleanup(server.Close)
	cache, _ := newCache(t, server.URL)
	register := func(want string) {
		t.Helper()
		id, err := cache.Register(t.Context(), "out-value", `"long"`)
		if want == "" && (id != 7 || err != nil) {
			t.Errorf("ID %d, error %v; want 7", id, err)
		}
		if refused := new(schemas.RegisterError); want != "" && (!errors.As(err, &refused) || err.Error() != "the schema of out-value is needed and cannot be registered: "+want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	answer.Store(http.StatusConflict)
	register("incompatible")
	answer.Store(http.StatusAccepted)
	register("the registry has not answered yet")
	register("the registry has not answered yet")
	close(slow)
	testkit.Eventually(t, time.Minute, "the slow answer", func() (bool, string) {
		id, err := cache.Register(t.Context(), "out-value", `"long"`)
		return id == 7 && err == nil, "none"
	})
	register("")
	if n := asked.Load(); n != 2 {
		t.Errorf("%d requests, want 2: a refused and a slow one", n)
	}
}

func TestRegisterWithoutRegistry(t *testing.T) {
	cache := schemas.New(schemas.Config{Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(cache.Close)
	if _, err := cache.Register(t.Context(), "out-value", `"long"`); !errors.Is(err, schemas.ErrNoRegistry) || !strings.Contains(err.Error(), "registry.url is not set") {
		t.Error(err)
	}
}
