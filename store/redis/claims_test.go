package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Three plans over two series that count a device's events in tiles of 1 ms.
var (
	seriesA = &state.Series{ID: "aaaaa", Group: "devi", By: []string{"device"}, Measure: state.CountEvents, Tile: 1, Keep: 8 * day, GroupKeep: 9 * day}
	seriesB = &state.Series{ID: "bbbbb", Group: "devi", By: []string{"device"}, Measure: state.CountEvents, Tile: 1, Keep: 8 * day, GroupKeep: 9 * day}
	plans   = map[string][]*state.Series{"onlyA": {seriesA}, "both": {seriesA, seriesB}, "onlyB": {seriesB}}
)

func planOf(version string) *state.Plan {
	p := &state.Plan{Version: version, Retained: map[string]state.Retention{}}
	for _, s := range plans[version] {
		p.Retained[s.ID+".x"] = state.Retention{Keep: s.Keep}
	}
	return p
}

func TestSeriesUsed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	onEach(t, 1, func(t *testing.T, s *Store) {
		for version, at := range map[string]int64{"onlyA": 3000, "both": 2000} {
			for _, ms := range []int64{1000, at} {
				if _, err := s.Register(ctx, state.Registration{Plan: planOf(version), At: time.UnixMilli(ms)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		used, err := s.SeriesUsed(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]time.Time{"aaaaa": time.UnixMilli(3000), "bbbbb": time.UnixMilli(2000)}, used); diff != "" {
			t.Error(diff)
		}
		// A value that does not parse is an error.
		s.redis.HSet(ctx, plansKey(s.namespace), "bad", "{")
		s.redis.HSet(ctx, usedKey(s.namespace), "bad/", "1:1")
		if _, err := s.SeriesUsed(ctx); fmt.Sprint(err) != "read the plan bad: unexpected end of JSON input" {
			t.Errorf("error %v", err)
		}
		s.redis.HSet(ctx, plansKey(s.namespace), "bad", "{}")
		s.redis.HSet(ctx, usedKey(s.namespace), "bad/", "noon")
		if _, err := s.SeriesUsed(ctx); fmt.Sprint(err) != `the field bad/ of the plans in use is "noon": not the times when a plan began and was used` {
			t.Errorf("error %v", err)
		}
		of := func(field string) string { return keyspace.ProgressKey(s.tags[0]) + ": the field " + field }
		s.redis.HSet(ctx, keyspace.ProgressKey(s.tags[0]), "transactions@bad", "noon")
		if _, err := s.History(ctx); fmt.Sprint(err) != "read the history: "+of(`transactions@bad of the progress is "noon": not a time in ms`) {
			t.Errorf("error %v", err)
		}
		s.redis.HDel(ctx, keyspace.ProgressKey(s.tags[0]), "transactions@bad")
		s.redis.HSet(ctx, keyspace.ProgressKey(s.tags[0]), "lag", "x")
		if _, err := s.History(ctx); fmt.Sprint(err) != "read the history: "+of(`lag of the progress is "x": not a time in ms`) {
			t.Errorf("error %v", err)
		}
		s.redis.HSet(ctx, keyspace.ProgressKey(s.tags[0]), "transactions@bad/3", "noon")
		s.redis.HDel(ctx, keyspace.ProgressKey(s.tags[0]), "lag")
		want := "claim 1 partitions: " + of(`transactions@bad/3 of the progress is "noon": "noon" is not a position`)
		if _, err := s.Claim(ctx, []state.Partition{transactions}, state.Claimant{Version: "bad"}); fmt.Sprint(err) != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

// A series that is filled is in use until a plan without it takes its partitions, though the registrations come back from
// two days before: a plan with the series that takes the partitions again within half a day only fills what it missed.
func TestSeriesIsUsedUntilItsPartitionsAreTaken(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	onEach(t, 2, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		began := time.Now()
		for _, version := range []string{"onlyA", "both", "onlyA"} {
			plan := planOf(version)
			plan.Topics = map[string][]string{"aaaaa.x": {"transactions"}, "bbbbb.x": {"transactions"}}
			if _, err := s.Register(ctx, state.Registration{Plan: plan}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Claim(ctx, []state.Partition{transactions}, state.Claimant{Version: version}); err != nil {
				t.Fatal(err)
			}
		}
		s.redis.Del(ctx, usedKey(s.namespace))
		for _, version := range []string{"onlyA", "both"} {
			if _, err := s.Register(ctx, state.Registration{Plan: planOf(version), At: began.Add(-2 * progress.UnusedFor)}); err != nil {
				t.Fatal(err)
			}
		}
		used, err := s.SeriesUsed(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, series := range []string{"aaaaa", "bbbbb"} {
			if at := used[series]; at.Before(began.Truncate(time.Millisecond)) {
				t.Errorf("series %s was last used at %v, want %v or later", series, at, began)
			}
		}
	})
}

// Nothing is claimed in shards of a server that is not in the run that the claimant's definitions were bound to: it may have
// gone back to when they were bound to another plan.
func TestClaimsOfAServerThatWasRestarted(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{AOF: true})
	s := newStore(t, server.Client(t), 2)
	start(t, s, transactions)
	bind := func() *state.History {
		_, h, err := s.Bind(t.Context(), planOf("onlyA"))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	claim := func(version string, seen *state.History) error {
		_, err := s.Claim(t.Context(), []state.Partition{transactions}, state.Claimant{Version: version, Seen: seen})
		return err
	}
	before := bind()
	if err := claim("one", before); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	server.Start()
	want := "claim 1 partitions: its server has been restarted or replaced since the definitions were bound to its state: this part of the store cannot be reached"
	if err := claim("two", before); !errors.Is(err, state.ErrUnavailable) || err.Error() != want {
		t.Errorf("after a restart: error %v, want %s", err, want)
	}
	if err := claim("two", &state.History{Servers: before.Servers[:1]}); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("bound before the namespace was spread over more shards: error %v, want %v", err, state.ErrUnavailable)
	}
	if err := claim("two", bind()); err != nil {
		t.Errorf("bound again: %v", err)
	}
}
