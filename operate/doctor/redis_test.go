package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	redisstore "github.com/weir-stream/weir/store/redis"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// lines are the findings, one on each line, about subjects with that prefix.
func lines(f Findings, subject string) (all []string) {
	for _, of := range f {
		if strings.HasPrefix(of.Subject, subject) {
			all = append(all, strings.TrimSuffix(fmt.Sprintf("%s %s: %s", of.Verdict, of.Found, of.Do), ": "))
		}
	}
	return all
}

func TestServer(t *testing.T) {
	well := map[string]string{
		"redis_version": "7.0.15", "role": "master", "aof_enabled": "1", "maxmemory_policy": "noeviction", "connected_slaves": "2",
	}
	good := []string{
		"OK Redis 7.0.15", "OK keeps an append-only file", "OK maxmemory-policy is noeviction", "OK replicas: 2",
		"OK its clock is this machine's within 1s",
	}
	for name, c := range map[string]struct {
		info              string // key:value pairs that differ, with spaces
		config            map[string]string
		cluster, eviction bool
		skew              time.Duration
		place             int // index of the line that differs
		want              string
	}{
		"Valkey":        {info: "valkey_version:8.1.0 redis_version:7.2.4", place: 0, want: "OK Valkey 8.1.0"},
		"old":           {info: "redis_version:6.0.16", place: 0, want: "FAIL version 6.0.16 is too old: 6.2 or later is needed: install Redis 6.2 or later, or Valkey"},
		"replica":       {info: "role:slave", place: 1, want: "FAIL is a replica, which accepts no writes: set redis.addresses to the master, or use redis.mode sentinel or cluster"},
		"cluster":       {info: "cluster_enabled:1", place: 1, want: "FAIL is a member of a cluster, and redis.mode is not cluster: set redis.mode: cluster"},
		"failed writes": {info: "aof_last_write_status:err", place: 1, want: "FAIL the last write to the append-only file failed: check its log and its disk"},
		"perhaps torn, managed": {info: "aof_last_rewrite_time_sec:-1 aof_rewrite_in_progress:0 aof_base_size:9000", place: 1, want: "WARN it does not report aof-load-truncated, " +
			"and the append-only file was not rewritten since the start: if a crash had torn it, Redis (7.0.15 does; others were not tried) applies what was torn " +
			"twice after another one: run BGREWRITEAOF if it is allowed, and let the user of redis.username run it, as processors do when they find a server started"},
		"perhaps torn": {info: "aof_last_rewrite_time_sec:-1 aof_rewrite_in_progress:0 aof_base_size:9000", config: map[string]string{"aof-load-truncated": "yes"}, place: 1, want: "WARN aof-load-truncated is yes, " +
			"and the append-only file was not rewritten since the start: if a crash had torn it, Redis (7.0.15 does; others were not tried) applies what was torn " +
			"twice after another one: run BGREWRITEAOF if it is allowed, and let the user of redis.username run it, as processors do when they find a server started"},
		"never torn": {info: "aof_last_rewrite_time_sec:-1 aof_rewrite_in_progress:0 aof_base_size:9000", config: map[string]string{"aof-load-truncated": "no"}, place: 1, want: "OK keeps an append-only file"},
		"new file":   {info: "aof_last_rewrite_time_sec:-1 aof_rewrite_in_progress:0 aof_base_size:88", place: 1, want: "OK keeps an append-only file"},
		"rewritten":  {info: "aof_last_rewrite_time_sec:0 aof_rewrite_in_progress:0 aof_base_size:9000", place: 1, want: "OK keeps an append-only file"},
		"refuses writes": {info: "rdb_last_bgsave_status:err", config: map[string]string{"save": "60 1", "stop-writes-on-bgsave-error": "yes"}, place: 1,
			want: "FAIL the last snapshot failed: until one succeeds, it refuses writes, and events wait: check its log, its disk and vm.overcommit_memory; " +
				`with appendonly yes it needs no snapshots (save "")`},
		"needs no snapshot": {info: "rdb_last_bgsave_status:err", config: map[string]string{"save": "", "stop-writes-on-bgsave-error": "yes"}, place: 1,
			want: "OK keeps an append-only file"},
		"goes on": {info: "rdb_last_bgsave_status:err", config: map[string]string{"save": "60 1", "stop-writes-on-bgsave-error": "no"}, place: 1,
			want: "OK keeps an append-only file"},
		"too strict": {info: "min_slaves_good_slaves:1", config: map[string]string{"min-replicas-to-write": "2"}, place: 3, want: "FAIL replicas: 2, of which 1 keep up; " +
			"min-replicas-to-write is 2: it refuses writes, and events wait: add replicas or repair them, or set a lower min-replicas-to-write"},
		"just enough": {info: "min_slaves_good_slaves:2", config: map[string]string{"min-replicas-to-write": "2"}, place: 3,
			want: "OK replicas: 2; min-replicas-to-write is 2: with fewer, events wait"},
		"rewritten often": {config: map[string]string{"rdbcompression": "yes", "auto-aof-rewrite-percentage": "100"}, place: 1, want: "OK keeps an append-only file, " +
			"which it rewrites whenever it has doubled: rdbcompression no, or auto-aof-rewrite-percentage 400, each save a seventh of what an event costs it, " +
			"for a longer file; see docs/sizing.md"},
		"rewritten seldom":  {config: map[string]string{"rdbcompression": "yes", "auto-aof-rewrite-percentage": "400"}, place: 1, want: "OK keeps an append-only file"},
		"failed copies":     {info: "aof_enabled:0 rdb_last_bgsave_status:err", place: 1, want: "FAIL appendonly is off, and the last snapshot failed: check its log and its disk; set appendonly yes"},
		"silent":            {info: "aof_enabled:0", place: 1, want: "WARN appendonly is off, and it does not report whether it makes snapshots: after a crash events since then are read again: set appendonly yes, or have its provider do so"},
		"hidden":            {info: "aof_enabled:", place: 1, want: "WARN does not report what it keeps on disk: after a crash all events may be read again: see to it that whoever runs it keeps an append-only file"},
		"snapshots":         {info: "aof_enabled:0", config: map[string]string{"save": "60 1"}, place: 1, want: "WARN appendonly is off, only snapshots are made (save 60 1): after a crash events since then are read again: set appendonly yes"},
		"nothing kept":      {info: "aof_enabled:0", config: map[string]string{"save": ""}, place: 1, want: "FAIL keeps nothing on disk: after a restart all state is read again from the start of the topics, as far as they go back: set appendonly yes"},
		"unknown policy":    {info: "maxmemory_policy:", place: 2, want: "WARN does not report its maxmemory-policy: make sure that it is noeviction: keys that are evicted are not noticed then"},
		"may evict":         {info: "maxmemory_policy:allkeys-lru maxmemory:0", place: 2, want: "WARN maxmemory-policy is allkeys-lru, which does nothing as long as maxmemory is 0: set maxmemory-policy noeviction"},
		"evicts":            {info: "maxmemory_policy:allkeys-lru maxmemory:100", place: 2, want: "FAIL maxmemory-policy is allkeys-lru: no process starts, and answers are INCOMPLETE from the first eviction on: set maxmemory-policy noeviction"},
		"evicts as allowed": {info: "maxmemory_policy:allkeys-lru maxmemory:100", eviction: true, place: 2, want: "WARN maxmemory-policy is allkeys-lru, which redis.allow_eviction allows: answers are INCOMPLETE from the first eviction on: set maxmemory-policy noeviction"},
		"has evicted":       {info: "evicted_keys:7", place: 3, want: "WARN it has evicted 7 keys since it was started: answers that reach back to before the last one are INCOMPLETE: raise maxmemory; to have all events again see Keys that disappear in docs/guarantees.md"},
		"full":              {info: "maxmemory:1000 used_memory:850", place: 3, want: "WARN 85% of maxmemory are in use: once it is full, events wait: raise maxmemory, or add masters to the cluster"},
		"used up":           {info: "maxmemory:1000 used_memory:1100 mem_not_counted_for_evict:100", place: 3, want: "FAIL maxmemory is used up: it refuses writes, and events wait: raise maxmemory, or add masters to the cluster"},
		"nearly used up":    {info: "maxmemory:1000 used_memory:1100 mem_not_counted_for_evict:101", place: 3, want: "WARN 110% of maxmemory are in use: once it is full, events wait: raise maxmemory, or add masters to the cluster"},
		"alone":             {info: "connected_slaves:0", place: 3, want: "WARN has no connected replica: no server takes over when it is lost: add or connect a replica, with Sentinel or in a cluster"},
		"lax":               {config: map[string]string{"min-replicas-to-write": "0"}, place: 3, want: "OK replicas: 2; min-replicas-to-write is 0, so a failover may lose the last seconds, which are read again"},
		"strict":            {config: map[string]string{"min-replicas-to-write": "1"}, place: 3, want: "OK replicas: 2; min-replicas-to-write is 1: with fewer, events wait"},
		"ahead":             {skew: 1500 * time.Millisecond, place: 4, want: "WARN its clock is 1.5s ahead of this machine's: run NTP on both"},
		"behind":            {skew: -time.Hour, place: 4, want: "FAIL its clock is 1h0m0s behind this machine's: state is dropped too soon or windows end at the wrong moment: run NTP on both"},
	} {
		s := server{subject: "redis", info: map[string]string{}, config: c.config, cluster: c.cluster, eviction: c.eviction, skew: c.skew}
		for key, value := range well {
			s.info[key] = value
		}
		for pair := range strings.FieldsSeq(c.info) {
			key, value, _ := strings.Cut(pair, ":")
			s.info[key] = value
		}
		got := lines(s.judge(), "redis")
		if c.place >= len(got) || got[c.place] != c.want {
			t.Errorf("%s: got\n%s\nwant in its place\n%s", name, strings.Join(got, "\n"), c.want)
			continue
		}
		for i, line := range got {
			if i != c.place && !strings.Contains(strings.Join(good, "\n"), line) {
				t.Errorf("%s: another finding has changed, too: %s", name, line)
			}
		}
	}
	s := server{subject: "redis", info: well}
	if diff := cmp.Diff(good, lines(s.judge(), "redis")); diff != "" {
		t.Errorf("what is well (-want +got):\n%s", diff)
	}
}

type layout func(context.Context) error

func (l layout) Adopt(ctx context.Context) error { return l(ctx) }
func (l layout) Shards() int                     { return 16 }
func (l layout) Secret(context.Context) (state.Secret, error) {
	return state.NewSecret(), nil
}

func (l layout) ShardsByMaster(context.Context) (map[string]int, error) {
	return map[string]int{"a:1": 6, "b:1": 5, "c:1": 5}, nil
}

func (l layout) Unfinished(context.Context) (to, lacking int, err error) { return 0, 0, nil }

var fits = layout(func(context.Context) error { return nil })

func TestRealServers(t *testing.T) {
	primary := redistest.New(t, redistest.Options{AOF: true, Config: map[string]string{"min-replicas-to-write": "1"}})
	replica := redistest.NewReplica(t, primary.Addr())
	evicting := redistest.New(t, redistest.Options{Config: map[string]string{
		"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru", "save": "60 1",
	}})
	forgetful := redistest.New(t, redistest.Options{})
	refusing := redistest.New(t, redistest.Options{AOF: true, Config: map[string]string{"min-replicas-to-write": "1"}})
	version := "OK Redis " + ParseInfo(primary.Client(t).Info(t.Context(), "server").Val())["redis_version"]
	const clock = "OK its clock is this machine's within 1s"
	for name, c := range map[string]struct {
		server *redistest.Server
		want   []string
	}{
		"primary": {primary, []string{version, "OK keeps an append-only file", "OK maxmemory-policy is noeviction",
			"OK replicas: 1; min-replicas-to-write is 1: with fewer, events wait", clock}},
		"replica": {replica, []string{version,
			"FAIL is a replica, which accepts no writes: set redis.addresses to the master, or use redis.mode sentinel or cluster",
			"FAIL keeps nothing on disk: after a restart all state is read again from the start of the topics, as far as they go back: set appendonly yes",
			"OK maxmemory-policy is noeviction", clock}},
		"evicting": {evicting, []string{version,
			"WARN appendonly is off, only snapshots are made (save 60 1): after a crash events since then are read again: set appendonly yes",
			"FAIL maxmemory-policy is allkeys-lru: no process starts, and answers are INCOMPLETE from the first eviction on: set maxmemory-policy noeviction",
			"WARN has no connected replica: no server takes over when it is lost: add or connect a replica, with Sentinel or in a cluster", clock}},
		"refusing": {refusing, []string{version, "OK keeps an append-only file", "OK maxmemory-policy is noeviction",
			"FAIL replicas: 0, of which 0 keep up; min-replicas-to-write is 1: it refuses writes, and events wait: add replicas or repair them, or set a lower min-replicas-to-write", clock}},
		"forgetful": {forgetful, []string{version,
			"FAIL keeps nothing on disk: after a restart all state is read again from the start of the topics, as far as they go back: set appendonly yes",
			"OK maxmemory-policy is noeviction",
			"WARN has no connected replica: no server takes over when it is lost: add or connect a replica, with Sentinel or in a cluster", clock}},
	} {
		f := Redis(t.Context(), c.server.Client(t), fits, false)
		if diff := cmp.Diff(c.want, lines(f, "redis")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLayout(t *testing.T) {
	client, namespace := redistest.Shared(t).Client(t), testkit.Namespace(t)
	s := redisstore.New(client, namespace, 4)
	for _, want := range []string{"OK the namespace is new", "OK fits the settings"} {
		if got := lines(Redis(t.Context(), client, s, false), "layout"); len(got) != 1 || got[0] != want {
			t.Errorf("got %v, want %s", got, want)
		}
		if err := s.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		store *redisstore.Store
		want  string
	}{
		{redisstore.New(client, namespace, 8), "OK fits the settings; it has 4 shards, and shards: 8 is for a new namespace"},
		{redisstore.New(client, namespace, 4, redisstore.HashEntities([]byte("key"))), `FAIL namespace "` + namespace + `" was made with hash_entities`},
	} {
		if got := lines(Redis(t.Context(), client, c.store, false), "layout"); len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
}

// unfinished is a layout that is left by a resharding.
type unfinished struct {
	layout
	to, lacking int
	err         error
}

func (u unfinished) Unfinished(context.Context) (to, lacking int, err error) {
	return u.to, u.lacking, u.err
}

// What a resharding has left is found, with the command that ends it.
func TestUnfinishedResharding(t *testing.T) {
	for want, of := range map[string]unfinished{
		"": {},
		"FAIL 3 of 16 shards lack keys, which a failover has lost while they were copied: their answers are UNAVAILABLE, and their events wait: run weir reshard --to 16 --yes": {to: 32, lacking: 3},
		"WARN the namespace is being spread over 32 shards: if no weir reshard is running, run weir reshard --to 32 --yes, or weir reshard --cancel":                            {to: 32},
		"FAIL NOPERM no permissions: repair masters that do not answer, or let the user of redis.username run HGETALL and HMGET":                                                {err: errors.New("NOPERM no permissions")},
	} {
		of.layout = fits
		f := Redis(t.Context(), redistest.Shared(t).Client(t), of, false)
		if got := strings.Join(lines(f, "reshard"), "\n"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A layout that cannot be read says nothing about the settings: another namespace would begin without any state.
func TestUnreadableLayout(t *testing.T) {
	unreadable := layout(func(context.Context) error {
		return fmt.Errorf(`read the layout of namespace "weir": %w`, errors.New("NOPERM no permissions to run hgetall"))
	})
	want := []string{`FAIL read the layout of namespace "weir": NOPERM no permissions to run hgetall: ` +
		"repair masters that do not answer, or let the user of redis.username run HGETALL and HMGET"}
	if diff := cmp.Diff(want, lines(Redis(t.Context(), redistest.Shared(t).Client(t), unreadable, false), "layout")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRedisUnavailable(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1}) // nothing listens there
	defer client.Close()
	want := []string{"FAIL nothing listens at 127.0.0.1:1: check the address, and that the server runs: check that it runs at redis.addresses, and who has access"}
	f := Redis(t.Context(), client, layout(func(context.Context) error { return errors.New("not asked") }), false)
	if diff := cmp.Diff(want, lines(f, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Advice names only existing sections of the documentation.
func TestAdviceNamesSections(t *testing.T) {
	named := regexp.MustCompile(`see ([A-Z][\w ]*) in docs/([\w-]+\.md)`)
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, source := range sources {
		for _, match := range named.FindAllStringSubmatch(file(t, source), -1) {
			found++
			if page := file(t, filepath.Join("../../docs", match[2])); !strings.Contains(page, "# "+match[1]+"\n") {
				t.Errorf("%s: %s has no section %q", source, match[2], match[1])
			}
		}
	}
	if found == 0 {
		t.Error("no advice was found: nothing is tried")
	}
}

func file(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCluster(t *testing.T) {
	cluster := redistest.NewCluster(t)
	f := Redis(t.Context(), cluster.Client(t), fits, false)
	if got := lines(f, "redis"); len(got) != 1+3*5 || got[0] != "OK a cluster of 3 masters" || f.Count(Fail) != 0 {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	const few = "WARN 16 over 3 masters: whole shards are spread, and so few cannot be spread evenly: spread the namespace over more: weir reshard --to 64; see More shards in docs/scale.md"
	if got := lines(f, "shards"); len(got) != 1 || got[0] != few {
		t.Errorf("of too few shards: %v", got)
	}
	var enough Findings
	enough.spread(20, 128)
	if diff := cmp.Diff([]string{"OK 128 over 20 masters"}, lines(enough, "shards")); diff != "" {
		t.Errorf("of enough shards (-want +got):\n%s", diff)
	}
	var odd Findings
	odd.spread(3, 24)
	if got := lines(odd, "shards"); len(got) != 1 || !strings.Contains(got[0], "weir reshard --to 72;") {
		t.Errorf("of 24 shards: %v, want advice of a multiple", got)
	}
	for _, address := range cluster.Addrs() {
		if got := lines(f, "redis "+address); len(got) != 5 {
			t.Errorf("of %s: %v", address, got)
		}
	}
	single := Redis(t.Context(), cluster.Nodes[0].Client(t), fits, false)
	const want = "FAIL is a member of a cluster, and redis.mode is not cluster: set redis.mode: cluster"
	if got := strings.Join(lines(single, "redis"), "\n"); !strings.Contains(got, want) {
		t.Errorf("asked as a single server:\n%s", got)
	}
	client := cluster.Nodes[0].Client(t)
	if err := client.Do(t.Context(), "CLUSTER", "DELSLOTS", "5").Err(); err != nil {
		t.Fatal(err)
	}
	down := []string{cluster.Nodes[0].Addr()} // the one that knows of it
	asking := redis.NewClusterClient(&redis.ClusterOptions{Addrs: down, ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: down[0]}}}}, nil
	}})
	defer asking.Close()
	const broken = "FAIL the cluster's state is ok, with 16383 of 16384 slots assigned: see CLUSTER NODES for masters that are lost"
	testkit.Eventually(t, time.Minute, "the cluster's failure", func() (bool, string) {
		got := strings.Join(lines(Redis(t.Context(), asking, fits, false), "redis"), "\n")
		return strings.HasPrefix(got, broken), got
	})
}

func TestBalance(t *testing.T) {
	for _, test := range []struct {
		held map[string]int
		want string
	}{
		{map[string]int{"a:1": 22, "b:1": 21, "c:1": 21}, "OK balance: no master holds more than 22 of 64 shards"},
		{map[string]int{"a:1": 32, "b:1": 32}, "WARN balance: a:1 holds 32 of 64 shards; spread evenly over 3 masters, none would hold more than 22"},
	} {
		var f Findings
		f.balance(3, 64, test.held)
		if got := fmt.Sprintf("%s %s: %s", f[0].Verdict, f[0].Subject, f[0].Found); got != test.want {
			t.Errorf("%s\nwant %s", got, test.want)
		}
	}
}
