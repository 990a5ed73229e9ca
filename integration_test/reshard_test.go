package integration_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// A namespace gets more shards while events flow and questions are asked. The command is killed repeatedly. Processors
// and APIs continue by themselves, with hardly any pause, and every event counts once.
func TestReshard(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{AOF: true})
	s := newScene(t, server.Client(t), "--redis.addresses", server.Addr())
	go s.store.Watch(t.Context())
	api := s.start("api")
	first, second := s.start("processor"), s.start("processor")
	to := 4 * shards
	reshard := func(args ...string) *exec.Cmd {
		return exec.Command(binary, slices.Concat([]string{"reshard"}, settingsOf(s, "--namespace", "--redis.addresses"), args)...)
	}
	var longest time.Duration
	spread := fault{"the namespace is spread over more shards", func() {
		awaitShared(t, first, second)
		for range 3 {
			cmd := reshard("--to", strconv.Itoa(to), "--yes")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, time.Minute, "keys are copied", func() (bool, string) {
				text, err := server.Client(t).HGet(t.Context(), s.group+":layout", "resharder").Result()
				return err == nil && text != "", fmt.Sprint(err)
			})
			_ = cmd.Process.Kill()
			if err := cmd.Wait(); err != nil {
				s.kills++
			}
		}
		stalled, stop := s.watchStalls()
		out, err := reshard("--to", strconv.Itoa(to), "--yes").CombinedOutput()
		if err != nil || !strings.Contains(string(out), fmt.Sprintf("has %d shards", to)) {
			t.Fatalf("%v: %s", err, out)
		}
		testkit.Eventually(t, time.Minute, "the new shards are in use", func() (bool, string) {
			return s.store.Shards() == to, fmt.Sprint(s.store.Shards())
		})
		stop()
		longest = <-stalled
	}}
	g := generate.New(seed, stream(300))
	s.flow(g, fewer(40_000), spread)
	s.awaitApplied()
	s.applyRepeated()
	compared := s.compareAll(api)
	if out, err := reshard("--delete-old").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "deleted ") {
		t.Fatalf("%v: %s", err, out)
	}
	s.flow(g, fewer(5_000), fault{"a processor is killed", func() { s.kill(first); s.start("processor") }})
	s.awaitApplied()
	compared += s.compareAll(api)
	t.Logf("%d answers compared; %d kills; nothing was applied for %v at the most", compared, s.kills, longest.Round(time.Millisecond))
	if s.kills < 3 || longest > longestStall {
		t.Errorf("%d kills, want at least 3; nothing was applied for up to %v", s.kills, longest)
	}
}

// settingsOf returns some of a scene's settings with their values.
func settingsOf(s *scene, names ...string) (list []string) {
	for i, text := range s.settings {
		if slices.Contains(names, text) {
			list = append(list, text, s.settings[i+1])
		}
	}
	return list
}
