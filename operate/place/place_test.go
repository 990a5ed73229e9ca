package place

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// The log of the tests, an earlier one, and the first one when brokers reported less of it.
var (
	here    = state.LogID{Cluster: "c1", Topic: "t2"}
	before  = state.LogID{Cluster: "c1", Topic: "t1"}
	partial = state.LogID{Cluster: "c1"}
)

const now = 5000 // ms

func at(offset int64, epoch int32, log state.LogID) state.Position {
	return state.Position{Offset: offset, Epoch: epoch, Log: log.Tag()}
}

// fake is a store and the brokers.
type fake struct {
	progress [][]state.Position
	logs     []fetch.Log
	err      error
	placed   []state.Placement
	moved    int // positions moved meanwhile by others
}

func (f *fake) Progress(context.Context, []state.Partition) ([][]state.Position, error) {
	return f.progress, f.err
}

func (f *fake) Logs(context.Context, []state.Partition) ([]fetch.Log, error) { return f.logs, f.err }

func (f *fake) Log(_ context.Context, tag string) (state.LogID, error) {
	for _, id := range []state.LogID{here, before, partial} {
		if id.Tag() == tag {
			return id, nil
		}
	}
	return state.LogID{}, nil
}

func (f *fake) Place(_ context.Context, placements ...state.Placement) (int, error) {
	f.placed = append(f.placed, placements...)
	n := -f.moved
	for _, p := range placements {
		for shard := range p.From {
			if p.From[shard] != p.To[shard] {
				n++
			}
		}
	}
	return n, f.err
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]Target{"start": {false, -1}, "end": {true, -1}, "0": {false, 0}, "120000": {false, 120000}} {
		if got, err := ParseTarget(text); err != nil || got != want {
			t.Errorf("%s: got %+v, error %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "begin", "-1", "1.5", "9223372036854775808"} {
		want := `"` + text + `" is neither start nor end nor an offset`
		if _, err := ParseTarget(text); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// Checks the text and the effect for a log that holds 10 to 99.
func TestPlan(t *testing.T) {
	lost := state.Position{Offset: 40, Epoch: 1, Log: "unheard"}
	for _, c := range []struct {
		name     string
		progress []state.Position
		to       string
		again    bool
		log      func(*fetch.Log)

		text string
		want []state.Position // nil if nothing changes
		gap  int64
		err  string
	}{
		{name: "recreated topic, from its start", progress: []state.Position{at(500, 3, before), at(700, 4, before)}, to: "start",
			text: "tx/3: to offset 10 of the log, which holds 10 to 99\n" +
				"  2 shards have applied another log: topic ID t1 in cluster c1; the state is kept, and further records are applied from topic ID t2 in cluster c1\n" +
				"  records that both logs hold will count twice\n",
			want: []state.Position{at(10, 7, here), at(10, 7, here)}, gap: now},
		{name: "recreated topic, where the old one ended", progress: []state.Position{at(500, 3, before), at(20, 4, here)}, to: "60",
			text: "tx/3: to offset 60 of the log, which holds 10 to 99\n" +
				"  1 shard has applied another log: topic ID t1 in cluster c1; the state is kept, and further records are applied from topic ID t2 in cluster c1\n" +
				"  records that both logs hold will count twice\n" +
				"  1 shard moves forward\n" +
				"  up to 50 offsets will NOT be applied; features say so in complete_since\n",
			want: []state.Position{at(60, 7, here), at(60, 7, here)}, gap: now},
		{name: "a log that is no longer known", progress: []state.Position{lost}, to: "end",
			text: "tx/3: to offset 100 of the log, which holds 10 to 99\n" +
				"  1 shard has applied another log: topic ID unknown in cluster unknown; the state is kept, and further records are applied from topic ID t2 in cluster c1\n" +
				"  records that both logs hold will count twice\n" +
				"  up to 90 offsets will NOT be applied; features say so in complete_since\n",
			want: []state.Position{at(100, 7, here)}, gap: now},
		{name: "no progress yet", progress: []state.Position{state.NoPosition, state.NoPosition}, to: "end",
			text: "tx/3: to offset 100 of the log, which holds 10 to 99\n" +
				"  2 shards have no progress yet, and will begin there\n" +
				"  up to 100 offsets will NOT be applied; features say so in complete_since\n",
			want: []state.Position{at(100, 7, here), at(100, 7, here)}, gap: now},
		{name: "to between slices, forward", progress: []state.Position{at(20, 3, here).WithAhead(80, 5)}, to: "60",
			text: "tx/3: to offset 60 of the log, which holds 10 to 99\n" +
				"  1 shard moves forward\n" +
				"  up to 40 offsets will NOT be applied; features say so in complete_since\n",
			want: []state.Position{at(60, 3, here).WithAhead(80, 5)}, gap: now},
		{name: "to between slices, with those ahead back", progress: []state.Position{at(20, 3, here).WithAhead(80, 5)}, to: "60", again: true,
			text: "tx/3: to offset 60 of the log, which holds 10 to 99\n" +
				"  up to 40 offsets will NOT be applied; features say so in complete_since\n" +
				"  1 shard moves back: up to 20 offsets will be applied AGAIN, and count twice\n",
			want: []state.Position{at(60, 7, here)}, gap: now},
		{name: "past removed records", progress: []state.Position{at(9, 1, here), at(50, 2, here), at(10, 2, here)}, to: "start",
			text: "tx/3: to offset 10 of the log, which holds 10 to 99\n" +
				"  1 shard moves forward\n" +
				"  up to 1 offset will NOT be applied; features say so in complete_since\n" +
				"  2 shards are there or further, and will stay\n",
			want: []state.Position{at(10, 7, here), at(50, 2, here), at(10, 2, here)}, gap: now},
		{name: "not back", progress: []state.Position{at(50, 2, here)}, to: "20",
			text: "tx/3: to offset 20 of the log, which holds 10 to 99\n" +
				"  1 shard is there or further, and will stay\n"},
		{name: "back, when forced", progress: []state.Position{at(50, 2, here), at(20, 2, here)}, to: "20", again: true,
			text: "tx/3: to offset 20 of the log, which holds 10 to 99\n" +
				"  1 shard moves back: up to 30 offsets will be applied AGAIN, and count twice\n" +
				"  1 shard is there or further, and will stay\n",
			want: []state.Position{at(20, 7, here), at(20, 2, here)}},
		{name: "brokers reported less of the log", progress: []state.Position{at(15, 2, partial)}, to: "20",
			text: "tx/3: to offset 20 of the log, which holds 10 to 99\n" +
				"  1 shard moves forward\n" +
				"  up to 5 offsets will NOT be applied; features say so in complete_since\n",
			want: []state.Position{at(20, 7, here)}, gap: now},
		{name: "an empty log", progress: []state.Position{state.NoPosition}, to: "end", log: func(l *fetch.Log) { l.Start, l.End = 0, 0 },
			text: "tx/3: to offset 0 of the log, which is empty at offset 0\n" +
				"  1 shard has no progress yet, and will begin there\n",
			want: []state.Position{at(0, 7, here)}},
		{name: "an empty log of an older leader", progress: []state.Position{at(0, 9, here), at(0, 8, here), at(0, 7, here), at(3, 9, here)}, to: "start", again: true,
			log: func(l *fetch.Log) { l.Start, l.End = 0, 0 },
			text: "tx/3: to offset 0 of the log, which is empty at offset 0\n" +
				"  1 shard moves back: up to 3 offsets will be applied AGAIN, and count twice\n" +
				"  2 shards are there under a later leader epoch, and will follow the present leader, of epoch 7\n" +
				"  1 shard is there or further, and will stay\n",
			want: []state.Position{at(0, 7, here), at(0, 7, here), at(0, 7, here), at(0, 7, here)}},
		{name: "an empty log of an older leader, when not forced", progress: []state.Position{at(0, 9, here)}, to: "start",
			log: func(l *fetch.Log) { l.Start, l.End = 0, 0 },
			text: "tx/3: to offset 0 of the log, which is empty at offset 0\n" +
				"  1 shard is there or further, and will stay\n"},
		{name: "brokers that report no leader epochs", progress: []state.Position{at(0, 9, here)}, to: "start", again: true,
			log: func(l *fetch.Log) { l.Start, l.End, l.LeaderEpoch = 0, 0, -1 },
			text: "tx/3: to offset 0 of the log, which is empty at offset 0\n" +
				"  1 shard is there or further, and will stay\n"},

		{name: "before the log", progress: []state.Position{at(50, 2, here)}, to: "9",
			err: "offset 9 is not in the log of tx/3, which holds 10 to 99: give one from 10 to 100, or start or end"},
		{name: "behind the log", progress: []state.Position{at(50, 2, here)}, to: "101",
			err: "offset 101 is not in the log of tx/3, which holds 10 to 99: give one from 10 to 100, or start or end"},
		{name: "not in an empty log", progress: []state.Position{at(50, 2, here)}, to: "5", log: func(l *fetch.Log) { l.Start = 100 },
			err: "offset 5 is not in the log of tx/3, which is empty at offset 100: give one from 100 to 100, or start or end"},
		{name: "a log that cannot be looked up", progress: []state.Position{at(50, 2, here)}, to: "start",
			log: func(l *fetch.Log) { l.Err = errors.New("fetch: offsets of tx/3: no leader") }, err: "fetch: offsets of tx/3: no leader"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := fetch.Log{ID: here, Partitions: 4, LeaderEpoch: 7, Start: 10, Stable: 100, End: 100}
			if c.log != nil {
				c.log(&log)
			}
			f := &fake{progress: [][]state.Position{c.progress}, logs: []fetch.Log{log}}
			target, err := ParseTarget(c.to)
			if err != nil {
				t.Fatal(err)
			}
			placer := Placer{Store: f, Brokers: f, Version: "v", Again: c.again, Now: time.UnixMilli(now)}
			steps, err := placer.Steps(t.Context(), []state.Partition{{Topic: "tx", ID: 3}}, target)
			if err != nil || c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("error %v, want %s", err, c.err)
				}
				return
			}
			var text strings.Builder
			WriteText(&text, steps)
			if diff := cmp.Diff(c.text, text.String()); diff != "" {
				t.Errorf("what is printed (-want +got):\n%s", diff)
			}
			if len(f.placed) > 0 {
				t.Errorf("planning has placed %v, want nothing", f.placed)
			}
			if err := Apply(t.Context(), f, steps); err != nil {
				t.Error(err)
			}
			var want []state.Placement
			if c.want != nil {
				want = []state.Placement{{
					Partition: state.Partition{Topic: "tx", ID: 3}.WithPlan("v"), From: c.progress, To: c.want, Log: here, Partitions: 4, Gap: c.gap,
				}}
			}
			if diff := cmp.Diff(want, f.placed); diff != "" {
				t.Errorf("what is placed (-want +got):\n%s", diff)
			}
		})
	}
}

// A partition that has moved since it was read is not placed, and the operator is informed.
func TestApplyAfterProgressHasMoved(t *testing.T) {
	f := &fake{
		progress: [][]state.Position{{at(50, 2, before), at(50, 2, before)}},
		logs:     []fetch.Log{{ID: here, End: 100}}, moved: 1,
	}
	placer := Placer{Store: f, Brokers: f, Version: "v", Now: time.UnixMilli(now)}
	steps, err := placer.Steps(t.Context(), []state.Partition{{Topic: "tx"}}, Target{offset: -1})
	if err != nil {
		t.Fatal(err)
	}
	const want = "1 of 2 positions of shards were placed, the others moved meanwhile: run it again, to see what is left"
	if err := Apply(t.Context(), f, steps); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// An error of the store or the brokers is returned.
func TestFailures(t *testing.T) {
	f := &fake{err: errors.New("away")}
	placer := Placer{Store: f, Brokers: f}
	if _, err := placer.Steps(t.Context(), []state.Partition{{Topic: "tx"}}, Target{}); !errors.Is(err, f.err) {
		t.Errorf("steps: error %v, want %v", err, f.err)
	}
	if err := Apply(t.Context(), f, []Step{{First: 1}}); !errors.Is(err, f.err) {
		t.Errorf("apply: error %v, want %v", err, f.err)
	}
}
