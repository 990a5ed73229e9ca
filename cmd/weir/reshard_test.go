package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// An operator spreads a namespace, which store/redis tests; without --yes the command only says what
// that would mean.
func TestReshard(t *testing.T) {
	flags, _ := servers(t, allTopics)
	flags[9] = redistest.New(t, redistest.Options{}).Addr()
	p := start(t, append([]string{"run"}, flags...)...)
	ready(t, p.address(t))
	p.stop()
	if err := p.wait(t); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ flags, want string }{
		{"--cancel", "the namespace is not being resharded"},
		{"--delete-old", "the namespace has no keys of an earlier number of shards"},
		{"--to 8", "namespace weir has 4 shards, and would have 8. Redis needs memory"},
		{"--to 8 --yes", "namespace weir has 8 shards: 0 keys copied."},
	} {
		out, err := weir(t, append(append([]string{"reshard"}, strings.Fields(step.flags)...), flags...)...)
		if err != nil {
			out = fmt.Sprint(err)
		}
		if !strings.HasPrefix(out, step.want) {
			t.Errorf("weir reshard %s: got\n%s\nwant %s", step.flags, out, step.want)
		}
	}
}
