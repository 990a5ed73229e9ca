package integration_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// stream describes the events of these tests: more than a month of a few users, with many events of
// every faulty kind.
func stream(users int) generate.Options {
	return generate.Options{
		Users: users, Spacing: 15 * time.Second, Logins: 0.3, Nulls: 0.03,
		OutOfOrder: 0.1, OutOfOrderBy: 10 * time.Minute, Late: 0.01, Duplicates: 0.02, Poison: 0.003,
	}
}

// seed is the seed of the events.
const seed = 20261

// Every event counts once although processes are killed, connections are cut, and Redis goes back
// in time.
func TestExactlyOnce(t *testing.T) {
	t.Parallel()
	events := fewer(200_000)
	server := redistest.New(t, redistest.Options{AOF: true})
	link := testkit.Proxy(t, server.Addr())
	s := newScene(t, server.Client(t), "--redis.addresses", link.Addr())
	api := s.start("api", "--redis.addresses", server.Addr())
	first, second := s.start("processor"), s.start("processor")
	var third *weir
	var old redistest.Copy
	save := fault{"a copy of Redis is taken", func() { old = server.SaveCopy() }}
	restore := fault{"Redis is put back to the copy", func() {
		// A generation that starts to read afterwards would not notice.
		awaitShared(t, first, second, third)
		before := s.rewinds()
		s.restore(server, old)
		s.awaitRewind(before)
	}}

	g := generate.New(seed, stream(400))
	s.flow(g, events,
		fault{"a processor is killed and replaced", func() {
			s.kill(first)
			first = s.start("processor")
		}},
		save,
		fault{"a third processor joins", func() {
			third = s.start("processor")
			awaitShared(t, first, second, third)
		}},
		fault{"Redis is killed and started from its AOF", func() {
			s.kill(server)
			server.Start()
		}},
		fault{"a processor is killed; the others take over", func() {
			s.kill(second)
			awaitShared(t, first, third)
			second = s.start("processor")
		}},
		restore,
		fault{"the connections to Redis are cut and heal", func() {
			link.Cut()
			for _, w := range []*weir{first, second, third} {
				w.awaitStatus("/readyz", http.StatusServiceUnavailable)
			}
			link.Heal()
		}},
		fault{"a processor leaves", func() {
			third.Stop()
			awaitShared(t, first, second)
		}},
		save,
		fault{"the broker is killed and started", func() {
			s.kill(s.broker)
			s.broker.Start()
		}},
		fault{"all processors are killed, and two started", func() {
			s.kill(first, second)
			first, second = s.start("processor"), s.start("processor")
		}},
		fault{"Redis and a processor are killed and started", func() {
			s.kill(server)
			s.kill(first)
			server.Start()
			first, third = s.start("processor"), s.start("processor")
		}},
		restore,
	)
	s.finish(api, events)
}
