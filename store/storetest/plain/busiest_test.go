package plain

import (
	"bytes"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/protocol"
	"github.com/weir-stream/weir/store/values"
)

// What a processor has published is removed by the others once it publishes no more: processes come under ever new names.
func TestBusiestOfProcessorsThatEnded(t *testing.T) {
	s := New(1)
	publish := func(processor string) []byte {
		t.Helper()
		if err := s.PublishBusiest(t.Context(), processor, state.Busiest{}); err != nil {
			t.Fatal(err)
		}
		return s.engine.values[values.Key{Shard: protocol.Busiest}].bytes
	}
	publish("ended")
	if held := publish("running"); !bytes.Contains(held, []byte("ended")) {
		t.Errorf("held right after: %q, want what both have published", held)
	}
	s.Pass(state.BusiestFor + time.Second)
	if held := publish("running"); bytes.Contains(held, []byte("ended")) || !bytes.Contains(held, []byte("running")) {
		t.Errorf("held once it is too old: %q, want only what the running one has published", held)
	}
}
