package integration_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// The master dies or hangs, and a Sentinel promotes another: processors and API find it by themselves and continue
// there.
func TestSentinelNamesAnotherMaster(t *testing.T) {
	t.Parallel()
	t.Run("dead", func(t *testing.T) { masterGone(t, func(s *scene, primary *redistest.Server) { s.kill(primary) }) })
	// The master's connections stay open without answering.
	t.Run("hung", func(t *testing.T) { masterGone(t, func(_ *scene, primary *redistest.Server) { primary.Pause() }) })
}

func masterGone(t *testing.T, leave func(*scene, *redistest.Server)) {
	events, name := fewer(20_000), "weir"
	primary := redistest.New(t, redistest.Options{})
	replica := redistest.NewReplica(t, primary.Addr())
	sentinel := redistest.NewSentinel(t, name, primary, 1)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: name, SentinelAddrs: []string{sentinel.Addr()}})
	t.Cleanup(func() { _ = client.Close() })
	s := newScene(t, client, "--redis.mode", "sentinel", "--redis.master_name", name, "--redis.addresses", sentinel.Addr())
	api := s.start("api")
	first, second := s.start("processor"), s.start("processor")
	s.flow(generate.New(seed, stream(200)), events,
		fault{"the master is gone, the Sentinel promotes the replica", func() {
			awaitShared(t, first, second)
			leave(s, primary)
			testkit.Eventually(t, time.Minute, "another master", func() (bool, string) {
				master, err := sentinel.Master(ctx)
				return err == nil && master == replica.Addr(), master
			})
		}},
	)
	s.finish(api, events)
}
