package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/storetest/plain"
)

// another is a store other than Redis, with what a process needs beside the contract.
type another struct {
	*plain.Store
	layout error // of the namespace
	closed int
}

func (*another) Name() string                        { return "Another" }
func (a *another) Adopt(context.Context) error       { return a.layout }
func (a *another) CheckLayout(context.Context) error { return a.layout }
func (a *another) Create(context.Context) error      { return a.layout }
func (*another) CheckEviction(context.Context) error { return nil }
func (a *another) Ready(context.Context) error       { return a.layout }
func (*another) FromReplicas() bool                  { return false }
func (*another) Watch(context.Context)               {}
func (*another) Describe(chan<- *prometheus.Desc)    {}
func (*another) Collect(chan<- prometheus.Metric)    {}
func (a *another) Close() error                      { a.closed++; return nil }
func (*another) AwaitReplicas(context.Context, time.Duration) ([]store.Copies, error) {
	return nil, nil
}

// Greatest lists the key of one entity of a group that there is not.
func (*another) Greatest(context.Context, int, time.Duration) (state.LongKeys, error) {
	return state.LongKeys{Looked: 1, All: true, Keys: []state.LongKey{{Key: "k", Group: "g", Entity: "u1", Bytes: 7}}}, nil
}

func (*another) CountKeys(context.Context, int64) (state.KeyCount, error) {
	return state.KeyCount{}, nil
}

// onAnother is a node that runs on another store, with no Redis at all.
type onAnother struct {
	*Node
	file    string // of the definitions
	brokers []string
	end     context.CancelFunc
	ended   chan error // what Run returns
}

// wait returns the result of Run.
func (n *onAnother) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-n.ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the process does not end in time")
		return nil
	}
}

func runOn(t *testing.T, a *another) *onAnother {
	t.Helper()
	brokers := kafkatest.Embedded(t, map[string]int{"logins": 2, "weir.dead": 1}).ListenAddrs()
	cfg := config.Default()
	cfg.Kafka.Brokers, cfg.Kafka.DeadLetterTopic = brokers, "weir.dead"
	cfg.Redis.Addresses, cfg.API.Listen = []string{"127.0.0.1:1"}, "127.0.0.1:0"
	file := filepath.Join(t.TempDir(), "definitions.yaml")
	put(t, file, one)
	cfg.Features = []string{file}
	registry, err := definition.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	roles, log := Roles{Processor: true, API: true}, slog.New(slog.NewTextHandler(t.Output(), nil))
	open := func(*config.Config, bool, *slog.Logger) (connect.Store, error) { return a, nil }
	w, err := newWiring(cfg, open, roles, Build{}, log)
	if err != nil {
		t.Fatal(err)
	}
	n, err := startNode(w, registry, roles, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	o := &onAnother{n, file, brokers, cancel, make(chan error, 1)}
	go func() { o.ended <- n.Run(ctx) }()
	return o
}

// A node knows its store only by the contract: on a store other than Redis, events are applied, questions are answered,
// and a feature that is defined later is filled from the log.
func TestRunsOnAnotherStore(t *testing.T) {
	a := &another{Store: plain.New(4)}
	n := runOn(t, a)
	base := "http://" + n.Addr().String()
	writer := &kafka.Writer{Addr: kafka.TCP(n.brokers...), Topic: "logins", BatchTimeout: time.Millisecond}
	defer writer.Close()
	for i := range 6 {
		event := fmt.Appendf(nil, `{"t": %d, "user_id": "u%d"}`, time.Now().UnixMilli(), i%3)
		if err := writer.WriteMessages(t.Context(), kafka.Message{Key: fmt.Append(nil, i), Value: event}); err != nil {
			t.Fatal(err)
		}
	}
	answers := func(feature, want string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, feature, func() (bool, string) {
			text := ask(t, http.MethodPost, base+"/v1/query", `{"features": ["`+feature+`"], "entities": [{"user_id": "u1"}]}`)
			return strings.Contains(text, want), text
		})
	}
	answers("one", `"one":{"value":2,"status":"PRESENT"`)
	put(t, n.file, two)
	answers("two", `"two":{"value":2,"status":"PRESENT"`)
	if text := ask(t, http.MethodGet, base+"/readyz", ""); !strings.Contains(text, `"another"`) {
		t.Errorf("/readyz does not name the store: %s", text)
	}
	if text := ask(t, http.MethodGet, base+"/v1/greatest-keys", ""); !strings.Contains(text, `"looked":1,"greatest_keys":[{"key":"k","bytes":7,`) {
		t.Errorf("the greatest keys are not those of the store: %s", text)
	}
	n.end()
	if err := n.wait(t); err != nil {
		t.Error(err)
	}
	if a.closed != 1 {
		t.Errorf("the store was closed %d times, want once", a.closed)
	}
}

// A store.ErrLayout ends a process with any store.
func TestAnotherLayoutEndsTheProcess(t *testing.T) {
	a := &another{Store: plain.New(4), layout: fmt.Errorf("it has 8 shards: %w", store.ErrLayout)}
	if err := runOn(t, a).wait(t); fmt.Sprint(err) != "Another: it has 8 shards: the namespace has another layout" {
		t.Errorf("got error %v, want that of the layout", err)
	}
}

func ask(t *testing.T, method, url, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
