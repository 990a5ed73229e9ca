package redisstore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// A crash may tear what a script wrote to the append-only file. Torn batches count once, also after
// the server has read the file a second time.
func TestTornAppendOnlyFile(t *testing.T) {
	t.Parallel()
	// Within the last command, within others, and between them.
	for _, torn := range []int64{3, 30, 90} {
		t.Run(fmt.Sprint(torn), func(t *testing.T) {
			server := redistest.New(t, redistest.Options{AOF: true, Config: map[string]string{"appendfsync": "always"}})
			client := server.Client(t)
			s := newStore(t, client, 1)
			start(t, s, transactions)
			w := s.newWriter()
			write := func(from int64) {
				t.Helper()
				for from < 27 {
					b := begin(t, s, transactions)
					fill(b, 0, event{offset: from, device: "d1", user: "u", time: 101 * day})
					apply(t, w, b)
					from = b.Ranges[0].Progress[0].Offset
				}
			}
			write(0)
			for range 2 { // restarts
				server.Kill()
				if torn > 0 {
					server.TearAOF(torn)
					torn = 0
				}
				server.Start()
				if err := s.Create(context.Background()); err != nil {
					t.Fatal(err)
				}
				write(begin(t, s, transactions).Ranges[0].To)
				testkit.Eventually(t, time.Minute, "the file to be rewritten", func() (bool, string) {
					info := client.Info(t.Context(), "persistence").Val()
					return !rewriteNeeded(info), info
				})
				testkit.Eventually(t, time.Minute, "the rewriting to end", func() (bool, string) {
					info := client.InfoMap(t.Context(), "persistence").Item("Persistence", "aof_rewrite_in_progress")
					return info == "0", info
				})
			}
			windowStates, err := s.Read(t.Context(), []state.Read{{Series: events, Entity: "d1", First: 101, Last: 101}})
			if err != nil || len(windowStates[0].Buckets) != 1 || windowStates[0].Buckets[0].Value.Num != 27 {
				t.Errorf("got %+v, error %v; want a count of 27", windowStates, err)
			}
		})
	}
}

// A server that crashes again while it rewrites its file ends once at its next start, and has counted every batch once.
func TestCrashWhileTheFileIsRewritten(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{AOF: true, Config: map[string]string{"appendfsync": "always", "rdb-key-save-delay": "500000"}})
	client, order := server.Client(t), &commandOrder{}
	client.AddHook(order)
	s := newStore(t, client, 1)
	start(t, s, transactions)
	w := s.newWriter()
	write := func(from, to int64) {
		t.Helper()
		for from < to {
			b := begin(t, s, transactions)
			for i := range 9 {
				fill(b, 0, event{offset: from + int64(i), device: fmt.Sprint("d", i), user: "u", time: 101 * day})
			}
			apply(t, w, b)
			from = b.Ranges[0].Progress[0].Offset
		}
	}
	write(0, 27)
	for crash := range 2 {
		server.Kill()
		if crash == 0 {
			server.TearAOF(30)
		}
		server.Start()
		order.names = nil
		if err := s.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		rewrite, load := slices.Index(order.names, "bgrewriteaof"), slices.Index(order.names, "script")
		if rewrite < 0 || load < rewrite {
			t.Errorf("the file is not rewritten before the scripts are loaded: %v", order.names)
		}
		write(begin(t, s, transactions).Ranges[0].To, int64(36+9*crash))
		if got := client.InfoMap(t.Context(), "persistence").Item("Persistence", "aof_rewrite_in_progress"); crash == 0 && got != "1" {
			t.Fatal("the file is already rewritten")
		}
	}
	for i := range 9 {
		windowStates, err := s.Read(t.Context(), []state.Read{{Series: events, Entity: fmt.Sprint("d", i), First: 101, Last: 101}})
		if err != nil || len(windowStates[0].Buckets) != 1 || windowStates[0].Buckets[0].Value.Num != 5 {
			t.Errorf("d%d: got %+v, error %v; want a count of 5", i, windowStates, err)
		}
	}
}

// commandOrder notes the names of the commands of one goroutine.
type commandOrder struct{ names []string }

func (*commandOrder) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *commandOrder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		o.names = append(o.names, command.Name())
		return next(ctx, command)
	}
}

func (o *commandOrder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, c := range commands {
			o.names = append(o.names, c.Name())
		}
		return next(ctx, commands)
	}
}

func TestRewriteNeeded(t *testing.T) {
	t.Parallel()
	const restarted = "# Persistence\r\naof_enabled:1\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_rewrite_time_sec:-1\r\n"
	for info, want := range map[string]bool{
		restarted: true,
		"":        false, // INFO is not allowed
		"aof_enabled:0\naof_rewrite_in_progress:0\naof_rewrite_scheduled:0\naof_last_rewrite_time_sec:-1\n": false,
		"aof_enabled:1\naof_rewrite_in_progress:1\naof_rewrite_scheduled:0\naof_last_rewrite_time_sec:-1\n": false,
		"aof_enabled:1\naof_rewrite_in_progress:0\naof_rewrite_scheduled:1\naof_last_rewrite_time_sec:-1\n": false,
		"aof_enabled:1\naof_rewrite_in_progress:0\naof_rewrite_scheduled:0\naof_last_rewrite_time_sec:0\n":  false,
	} {
		if got := rewriteNeeded(info); got != want {
			t.Errorf("%q: rewriteNeeded = %v, want %v", info, got, want)
		}
	}
}
