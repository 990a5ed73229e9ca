package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// A namespace gets more shards while events come, processors still run, and the command is killed
// again and again. Processors and an API with the old number do no harm; started again with the same settings they take the new
// one, and every event counts once.
func TestReshard(t *testing.T) {
	server := redistest.New(t, redistest.Options{AOF: true})
	client := server.Client(t)
	s := newScene(t, client, "--redis.addresses", server.Addr())
	api, old := s.start("api"), s.start("processor")
	g := generate.New(seed, stream(300))
	s.flow(g, fewer(15_000))
	events := make([]generate.Event, 5_000)
	for i := range events {
		events[i] = g.Next()
	}
	if err := s.write(events, s.producer.write); err != nil {
		t.Fatal(err)
	}
	to := 4 * shards
	reshard := func(args ...string) *exec.Cmd {
		return exec.Command(binary, slices.Concat([]string{"reshard"}, settingsOf(s, "--namespace", "--redis.addresses"), args)...)
	}
	size := func() int64 { return client.DBSize(t.Context()).Val() }
	began := size()
	for kill := range int64(4) {
		cmd := reshard("--to", strconv.Itoa(to), "--yes")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, time.Minute, "keys are copied", func() (bool, string) {
			n := size()
			return n > began+kill*began/5, fmt.Sprintf("%d keys, %d before", n, began)
		})
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err != nil {
			s.kills++
		}
	}
	if status, _ := api.get("/readyz"); status != http.StatusOK {
		t.Errorf("the API is not ready while the namespace is resharded: %d", status)
	}
	out, err := reshard("--to", strconv.Itoa(to), "--yes").CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf("has %d shards", to)) {
		t.Fatalf("%v: %s", err, out)
	}
	for _, w := range []*weir{api, old} {
		w.awaitStatus("/readyz", http.StatusServiceUnavailable)
	}
	asked := question{Features: []string{"user_device_tx_30d"}, Entities: []json.RawMessage{[]byte(`{"user_id":"u1","device_id":"d1"}`)}, At: s.clock}
	if _, err := api.ask(asked); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("an API with the number of shards before answers: %v", err)
	}
	s.store = redisstore.New(client, s.group, to)
	api = s.start("api")
	s.start("processor")
	s.start("processor")
	s.flow(g, fewer(15_000), fault{"the processor with the number before is killed", func() { s.kill(old) }})
	s.awaitApplied()
	s.applyRepeated()
	compared := s.compareAll(api)
	if out, err := reshard("--delete-old").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "deleted ") {
		t.Fatalf("%v: %s", err, out)
	}
	compared += s.compareAll(api)
	t.Logf("%d answers compared; %d kills", compared, s.kills)
	if s.kills < 3 {
		t.Errorf("%d kills", s.kills)
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
