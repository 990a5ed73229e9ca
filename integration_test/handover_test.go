package integration_test

import (
	"testing"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// Every event counts once while processors join, leave and are killed during rebalances that a
// kill, a start or a restart has just triggered.
func TestExactlyOnceWhileTheGroupRebalances(t *testing.T) {
	t.Parallel()
	events := fewer(60_000)
	server := redistest.New(t, redistest.Options{})
	s := newScene(t, server.Client(t), "--redis.addresses", server.Addr())
	api := s.start("api")
	first, second := s.start("processor"), s.start("processor")
	var third, fourth *weir
	s.flow(generate.New(seed, stream(200)), events,
		fault{"a third processor joins, and the first is killed before it has", func() {
			third = s.start("processor")
			s.kill(first)
		}},
		fault{"the killed one comes back while the others take over", func() {
			first = s.start("processor")
			awaitShared(t, first, second, third)
		}},
		fault{"one joins while another leaves, and is killed at once", func() {
			fourth = s.start("processor")
			third.Stop()
			s.kill(fourth)
		}},
		fault{"two join at once, and two are killed", func() {
			third, fourth = s.start("processor"), s.start("processor")
			s.kill(first, second)
			awaitShared(t, third, fourth)
		}},
		fault{"one hangs while another joins, and goes on when it has been given up", func() {
			third.Pause()
			first = s.start("processor")
			awaitShared(t, first, fourth)
			third.Resume()
		}},
	)
	awaitShared(t, first, third, fourth)
	s.finish(api, events)
}
