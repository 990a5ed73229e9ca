package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// An operator spreads a namespace, which store/redis tests; without --yes the command only says what
// that would mean.
func TestReshard(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, allTopics)
	server := redistest.New(t, redistest.Options{})
	flags[9] = server.Addr()
	p := start(t, append([]string{"run"}, flags...)...)
	ready(t, p.address(t))
	p.stop()
	if err := p.wait(t); err != nil {
		t.Fatal(err)
	}
	run := func(given, want string) {
		t.Helper()
		out, err := weir(t, append(append([]string{"reshard"}, strings.Fields(given)...), flags...)...)
		if err != nil {
			out = fmt.Sprint(err)
		}
		if !strings.HasPrefix(out, want) {
			t.Errorf("weir reshard %s: got\n%s\nwant %s", given, out, want)
		}
	}
	for _, step := range []struct{ flags, want string }{
		{"--cancel", "the namespace is not being resharded"},
		{"--delete-old", "nothing to delete: the namespace has no keys of an earlier number of shards\n"},
		{"--to 8", "namespace weir has 4 shards, and would have 8. Redis needs memory"},
		{"--to 8 --yes", "namespace weir has 8 shards: 0 keys copied."},
		{"--to 8", "namespace weir has 8 shards: --yes only copies again what a failover has lost since.\n"},
	} {
		run(step.flags, step.want)
	}
	// A server goes back to when it was resharded.
	client := server.Client(t)
	client.HSet(t.Context(), keyspace.ProgressKey(keyspace.ShardTag("weir", 5, 8)), keyspace.FrozenField, "token")
	run("--to 8", "namespace weir has 8 shards: 1 of them lack keys, which a failover has lost.\nnothing was changed: repeat with --yes to copy them again\n")
	// The old keys are deleted.
	client.HDel(t.Context(), keyspace.LayoutKey("weir"), keyspace.OldShardsField, keyspace.SwitchedField)
	lack := "1 of 8 shards of namespace weir lack keys: their servers went back to when it was resharded, and the keys of the\n" +
		"old shards are deleted. Processors empty them and read them again, as far as the topics reach back.\n"
	run("--to 8", lack+"nothing was changed: repeat with --yes to do it\n")
	run("--to 8 --yes", lack+"done\n")
	run("--to 8 --yes", "8 shards cannot be spread over 8")
}

// A replica that is not connected could take over without what is copied, so nothing is copied, nor deleted.
func TestReshardWaitsForReplicas(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, allTopics)
	server := redistest.New(t, redistest.Options{})
	replica := redistest.NewReplica(t, server.Addr())
	flags[9] = server.Addr()
	flags = append(flags, "--redis.read_from", "replica", "--redis.replicas", replica.Addr())
	p := start(t, append([]string{"run"}, flags...)...)
	ready(t, p.address(t))
	p.stop()
	if err := p.wait(t); err != nil {
		t.Fatal(err)
	}
	client := server.Client(t)
	refused := func(command ...string) {
		t.Helper()
		before := client.HGetAll(t.Context(), keyspace.LayoutKey("weir")).Val()
		want := "1 of 1 replicas of the Redis master " + server.Addr() + " are not connected, or lacked what was written for " + replicasWithin.String() + ": run this again when"
		if _, err := weir(t, append(append([]string{"reshard"}, command...), flags...)...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: got error %v, want %s", command, err, want)
		}
		if after := client.HGetAll(t.Context(), keyspace.LayoutKey("weir")).Val(); !maps.Equal(before, after) {
			t.Errorf("%v: the layout has changed from %v to %v", command, before, after)
		}
	}
	replica.Kill()
	refused("--to", "8", "--yes")
	replica.Start()
	host, port, _ := strings.Cut(server.Addr(), ":")
	if err := replica.Client(t).ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	if out, err := weir(t, append([]string{"reshard", "--to", "8", "--yes"}, flags...)...); err != nil {
		t.Fatal(err, out)
	}
	replica.Kill()
	refused("--delete-old")
}
