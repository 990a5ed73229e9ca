package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// A crash may tear what a script wrote to the append-only file. Torn batches count once, also after
// the server has read the file a second time.
func TestTornAppendOnlyFile(t *testing.T) {
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

func TestRewriteNeeded(t *testing.T) {
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
