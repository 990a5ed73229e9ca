package main

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-stream/weir/integration_test/faults/workload"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

// seedOfTest is a seed whose rounds have faults in every lane, a reload and a backlog.
const seedOfTest = 32

func TestMain(m *testing.M) { testkit.Main(m) }

// Short rounds run on each kind of Redis and with each fault of logs, several of them at once: they mostly wait. Their
// events and faults are fixed, so that a failure is one of Weir or of the trials.
func TestRounds(t *testing.T) {
	t.Setenv("WEIR_TEST_SOURCE", "local") // faults change files and processes
	testkit.Command(t, "redis-server", "Redis 6.2 or later")
	testkit.Command(t, "gcc", "a C compiler, for servers with clocks of their own")
	testkit.Command(t, "java", "a Java runtime, 17 or later")
	binary, err := blackbox.Build(t.TempDir(), testkit.Race)
	if err != nil {
		t.Fatal(err)
	}
	free := make(chan *trials, 3)
	for range cap(free) {
		one := newTrials(binary, false)
		t.Cleanup(func() { one.close(false) })
		free <- one
	}
	scenarios := map[string]*scenario{}
	interludes := map[*fault]string{truncateLog: "single", remakeTopic: "single", startOver: "single", reshard: "cluster", cutOffReplica: "sentinel", evictKeys: "single", setClock: "single"}
	var names []string
	for f := range interludes {
		names = append(names, f.name)
	}
	scenarios[backlog.name] = draw(seedOfTest, "single", names)
	names = append(names, backlog.name)
	for _, topology := range onRedis { // Ignite is an experiment, see docs/engines.md
		scenarios[topology] = draw(seedOfTest, topology, names)
	}
	for f, topology := range interludes {
		p := draw(seedOfTest, topology, []string{reloadDefinitions.name, backlog.name})
		p.Interlude = f
		scenarios[f.name] = p
	}
	for name, p := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shorten(p)
			one := <-free
			defer func() { free <- one }()
			r := one.play(p)
			for _, failure := range r.Failures {
				t.Error(failure)
			}
			const events = 0.8 // of the messages, as others are rows of tables
			if r.Compared+r.Incomplete < 1000 || r.Compared < 1000 && (p.Interlude == nil || !p.Interlude.forgets) || r.Records < int(events*float64(p.Backlog+p.Events/2)) {
				t.Errorf("%d records and %d compared values are too few", r.Records, r.Compared)
			}
			t.Logf("%+v", r)
		})
	}
}

// shorten reduces a round to some seconds.
func shorten(p *scenario) {
	p.Length, p.Events, p.Backlog = 6*time.Second, 1200, p.Backlog/4
	for l, events := range p.Lanes {
		p.Lanes[l] = slices.DeleteFunc(events, func(e event) bool { return e.after > p.Length })
	}
}

// A seed always draws the same round, and a hundred seeds together draw everything.
func TestDraws(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(100) {
		p, again := draw(seed, "", nil), draw(seed%3, "", nil)
		if seed < 3 && (len(p.Versions) != len(again.Versions) || !slices.Equal(p.Versions[0], again.Versions[0]) || p.Options != again.Options) {
			t.Fatalf("seed %d draws two different rounds", seed)
		}
		seen[p.Topology] = true
		for _, name := range p.faults() {
			seen[name] = true
		}
		if p.Backlog > 0 && (slices.Contains(p.faults(), rollProcessors.name) || p.BatchMax < 2000) {
			t.Errorf("seed %d has a backlog, batches of %d and the faults %q; want long batches and only faults that interrupt them", seed, p.BatchMax, p.faults())
		}
		for _, version := range p.Versions {
			if _, err := defined.Parse(workload.Definitions(version, "-x", p.Late, p.Dedup, p.enriches())); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			for _, f := range version {
				name, _, _ := strings.Cut(f.Text, "(")
				seen[name] = true
			}
		}
	}
	for _, want := range slices.Concat(topologies, faultNames(), []string{"COUNT", "QUANTILE", "SPEED", "LAST_DISTINCT_K"}) {
		if !seen[want] {
			t.Errorf("%s is never drawn", want)
		}
	}
}

// Unknown names are refused, and the message lists the known ones.
func TestNames(t *testing.T) {
	for _, c := range []struct{ topology, with, without, want string }{
		{"", "", "", ""}, {"single", "partitions added", "redis killed,older copy", ""},
		{"ring", "", "", `no topology "ring"; there are single, sentinel, cluster`},
		{"", "", "redis killed,floods", `no fault "floods"; there are processor killed, `},
		{"", "floods", "", `no fault "floods"; there are processor killed, `},
	} {
		d := drawing{topology: c.topology, with: strings.FieldsFunc(c.with, isComma), without: strings.FieldsFunc(c.without, isComma)}
		err := d.check()
		if got := errorText(err); (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: got error %q", c, got)
		}
	}
}

// Rounds can be selected by their faults.
func TestDrawsWith(t *testing.T) {
	seed := uint64(0)
	seeds := func() uint64 { seed++; return seed }
	d := drawing{topology: "cluster", with: []string{reloadDefinitions.name, addPartitions.name}}
	for range 5 {
		p, err := d.next(seeds)
		if err != nil || len(p.Versions) < 2 || p.Seed != seed || p.Topology != "cluster" || !slices.Contains(p.faults(), addPartitions.name) {
			t.Fatalf("seed %d draws %+v, error %v; want a cluster with reloads and added partitions", seed, p, err)
		}
	}
	never := drawing{with: []string{reloadDefinitions.name, truncateLog.name}}
	if _, err := never.next(seeds); errorText(err) != "none of 10000 seeds draws a round with definitions reloaded, log truncated" {
		t.Errorf("impossible bounds: got error %v", err)
	}
}

// The number of rounds is bounded, or the time in which they begin; a seed plays a single round.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		bounds
		begun int
		took  time.Duration
		want  bool
	}{
		{bounds{length: time.Minute}, 100, 59 * time.Second, false},
		{bounds{length: time.Minute}, 1, time.Minute, true},
		{bounds{length: time.Minute, rounds: 3}, 2, time.Hour, false},
		{bounds{length: time.Minute, rounds: 3}, 3, time.Second, true},
		{bounds{length: time.Minute, rounds: 3, seed: 7}, 0, time.Second, false},
		{bounds{length: time.Minute, rounds: 3, seed: 7}, 1, time.Second, true},
	} {
		if got := c.over(c.begun, c.took); got != c.want {
			t.Errorf("%+v after %d rounds and %v: over is %v, want the opposite", c.bounds, c.begun, c.took, got)
		}
	}
}

// Concurrent rounds have different seeds, and there are no more rounds than requested.
func TestSession(t *testing.T) {
	b := bounds{rounds: 5, from: 100}
	var out strings.Builder
	s := &session{bounds: b, seeds: b.seeds(), asked: t.Context(), began: time.Now(), out: json.NewEncoder(&out)}
	var playing sync.WaitGroup
	for range 3 {
		playing.Go(func() {
			for p := s.next(); p != nil; p = s.next() {
				s.report(result{Seed: p.Seed})
			}
		})
	}
	playing.Wait()
	var seeds []uint64
	for line := range strings.Lines(out.String()) {
		var r result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, r.Seed)
	}
	slices.Sort(seeds)
	if !slices.Equal(seeds, []uint64{100, 101, 102, 103, 104}) || s.all.rounds != 5 || s.err != nil {
		t.Errorf("rounds of seeds %v, %d in the summary, error %v; want 100 to 104", seeds, s.all.rounds, s.err)
	}
	never := &session{drawing: drawing{with: []string{reloadDefinitions.name, truncateLog.name}}, seeds: b.seeds(), asked: t.Context(), began: time.Now()}
	if p := never.next(); p != nil || never.err == nil {
		t.Errorf("an impossible round: got %v, error %v; want only an error", p, never.err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
