package recovery

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// The log of the tests, another one of the same name, and the first one when brokers reported less of it.
var (
	here    = state.LogID{Cluster: "c1", Topic: "t1"}
	remade  = state.LogID{Cluster: "c1", Topic: "t2"}
	away    = state.LogID{Cluster: "c2", Topic: "t3"}
	partial = state.LogID{Cluster: "c1"}
)

func at(offset int64, epoch int32) state.Position {
	return state.Position{Offset: offset, Epoch: epoch, Log: here.Tag()}
}

func in(id state.LogID, p state.Position) state.Position {
	p.Log = id.Tag()
	return p
}

// logOf is a log that holds 10 to 100, all of it stable; epoch 3 goes to 60, epoch 4 to its end.
func logOf(change func(*fetch.Log)) fetch.Log {
	l := fetch.Log{ID: here, Partitions: 4, LeaderEpoch: 4, Start: 10, Stable: 100, End: 100}
	if change != nil {
		change(&l)
	}
	return l
}

func TestJudge(t *testing.T) {
	const now = 5000
	none := state.NoPosition
	known := &state.FirstSeen{Log: here.Tag(), Partitions: 2}
	goesOn := verdict{}
	for _, c := range []struct {
		name     string
		log      func(*fetch.Log)
		progress []state.Position
		topic    *state.FirstSeen
		id       int32
		ends     map[int32]fetch.EpochEnd
		rules    Rules

		to   []state.Position // nil if it goes on or stops
		gap  int64
		want verdict // without its placement
		err  string
	}{
		{name: "the log goes on", progress: []state.Position{at(50, 4), at(70, 4)},
			ends: map[int32]fetch.EpochEnd{4: {Epoch: 4, Offset: 100}}, want: goesOn},
		{name: "it has another leader", progress: []state.Position{at(50, 3), at(70, 4)},
			ends: map[int32]fetch.EpochEnd{3: {Epoch: 3, Offset: 60}, 4: {Epoch: 4, Offset: 100}}, to: []state.Position{at(50, 4), at(70, 4)}},
		{name: "some slices are ahead", progress: []state.Position{at(50, 4).WithAhead(90, 5)},
			ends: map[int32]fetch.EpochEnd{4: {Epoch: 4, Offset: 100}}, want: goesOn},
		{name: "the leader does not report epochs", progress: []state.Position{at(50, 3)},
			ends: map[int32]fetch.EpochEnd{3: {Epoch: -1, Offset: -1}}, want: goesOn},
		{name: "the leader fails to answer", progress: []state.Position{at(50, 3)},
			ends: map[int32]fetch.EpochEnd{3: {Err: errors.New("fenced")}}, err: "fenced"},
		{name: "the log cannot be looked up", log: func(l *fetch.Log) { l.Err = errors.New("no leader") },
			progress: []state.Position{at(50, 3)}, err: "no leader"},

		// Truncations.
		{name: "truncated below some shards, though the log has grown past all", progress: []state.Position{at(90, 3), at(40, 3), at(70, 3)},
			ends: map[int32]fetch.EpochEnd{3: {Epoch: 3, Offset: 60}},
			to:   []state.Position{at(60, 4), at(40, 4), at(60, 4)}, gap: now, want: verdict{vanished: 30}},
		{name: "an epoch was removed, but none of its records was applied", log: func(l *fetch.Log) { l.LeaderEpoch = 5 }, progress: []state.Position{at(50, 4)},
			ends: map[int32]fetch.EpochEnd{4: {Epoch: 3, Offset: 60}}, to: []state.Position{at(50, 5)}},
		{name: "the leader has no record of its own epoch yet", progress: []state.Position{at(50, 4)},
			ends: map[int32]fetch.EpochEnd{4: {Epoch: 3, Offset: 60}}, want: goesOn},
		{name: "truncated below the start of the log", progress: []state.Position{at(90, 3)},
			ends: map[int32]fetch.EpochEnd{3: {Epoch: 3, Offset: 5}},
			to:   []state.Position{at(5, 4)}, gap: now, want: verdict{vanished: 85}},

		{name: "truncated below the slices that are ahead", log: func(l *fetch.Log) { l.LeaderEpoch = 5 }, progress: []state.Position{at(50, 4).WithAhead(90, 5)},
			ends: map[int32]fetch.EpochEnd{4: {Epoch: 3, Offset: 60}},
			to:   []state.Position{at(50, 5).WithAhead(60, 5)}, gap: now, want: verdict{vanished: 30}},
		{name: "truncated below all slices", log: func(l *fetch.Log) { l.LeaderEpoch = 5 }, progress: []state.Position{at(50, 4).WithAhead(90, 5)},
			ends: map[int32]fetch.EpochEnd{4: {Epoch: 3, Offset: 40}},
			to:   []state.Position{at(40, 5)}, gap: now, want: verdict{vanished: 50}},
		{name: "slices that are ahead are past the end", log: func(l *fetch.Log) { l.End, l.Stable = 80, 80 }, progress: []state.Position{at(50, -1).WithAhead(90, 5)},
			err: "applied up to offset 90, but the log ends at 80, and the broker does not report leader epochs: if it stays so, " +
				"the topic lost records or was recreated; to go on at its end, run: weir progress set tx/0 --to end --again --yes"},
		{name: "retention has passed all slices but those that are ahead", progress: []state.Position{at(4, 4).WithAhead(30, 5)},
			rules: Rules{ContinueOnLoss: true}, to: []state.Position{at(10, 4).WithAhead(30, 5)}, gap: now,
			want: verdict{lost: &lossError{Partition: state.Partition{Topic: "tx"}, Progress: 4, From: 10, To: 100}}},
		{name: "brokers have not heard of the leader of what was applied", log: func(l *fetch.Log) { l.Leader, l.LeaderEpoch, l.End = 2, 3, 60 },
			progress: []state.Position{at(50, 3), at(70, 4)}, ends: map[int32]fetch.EpochEnd{3: {Epoch: 3, Offset: 60}, 4: {Epoch: 3, Offset: 60}},
			rules: Rules{ContinueOnLoss: true},
			err: "waiting for brokers that know the leader: they name broker 2 with leader epoch 3, and it was applied under epoch 4; " +
				"if it stays so, look for a broker that is cut off from the controller"},
		{name: "the same, or a recreated topic, as brokers do not distinguish topics",
			log:      func(l *fetch.Log) { l.ID, l.Leader, l.LeaderEpoch = partial, 2, 0 },
			progress: []state.Position{in(partial, at(50, 3))}, ends: map[int32]fetch.EpochEnd{3: {Epoch: 0, Offset: 100}},
			err: "waiting for brokers that know the leader: they name broker 2 with leader epoch 0, and it was applied under epoch 3; " +
				"if it stays so, look for a broker that is cut off from the controller; " +
				"or the topic was deleted and recreated, which these brokers do not report: " +
				"to keep the state and apply the new log from its start, run: weir progress set tx/0 --to start --again --yes"},
		{name: "brokers do not report leader epochs", log: func(l *fetch.Log) { l.LeaderEpoch = -1 }, progress: []state.Position{at(50, 4)}, want: goesOn},

		// Other logs.
		{name: "recreated, and grown past the progress", log: func(l *fetch.Log) { l.ID = remade },
			progress: []state.Position{at(50, 4), at(50, 4)}, rules: Rules{ContinueOnLoss: true},
			err: "the topic was deleted and recreated: up to offset 50 was applied of topic ID t1 in cluster c1, " +
				"and now there are offsets 10 to 99 of topic ID t2 in cluster c1; nothing of it is applied until you choose: " +
				"to keep the state and apply the new log from its start, run: weir progress set tx --to start --yes; " +
				"to start over from the new log alone, set another namespace"},
		{name: "one shard is at the old log", log: func(l *fetch.Log) { l.ID = remade },
			progress: []state.Position{in(remade, at(50, 4)), at(900, 4)}, rules: Rules{ContinueOnLoss: true},
			err: "the topic was deleted and recreated: up to offset 900 was applied of topic ID t1 in cluster c1, " +
				"and now there are offsets 10 to 99 of topic ID t2 in cluster c1; nothing of it is applied until you choose: " +
				"to keep the state and apply the new log from its start, run: weir progress set tx --to start --yes; " +
				"to start over from the new log alone, set another namespace"},
		{name: "recreated, and still empty", log: func(l *fetch.Log) { l.ID, l.Start, l.End = remade, 0, 0 }, progress: []state.Position{at(50, 4)},
			err: "the topic was deleted and recreated: up to offset 50 was applied of topic ID t1 in cluster c1, " +
				"and now there is nothing yet of topic ID t2 in cluster c1; nothing of it is applied until you choose: " +
				"to keep the state and apply the new log from its start, run: weir progress set tx --to start --yes; " +
				"to start over from the new log alone, set another namespace"},
		{name: "another cluster", log: func(l *fetch.Log) { l.ID = away }, progress: []state.Position{at(50, 4)},
			err: "this is another cluster: up to offset 50 was applied of topic ID t1 in cluster c1, " +
				"and now there are offsets 10 to 99 of topic ID t3 in cluster c2; nothing of it is applied until you choose: " +
				"to keep the state and apply the new log from its start, run: weir progress set tx --to start --yes; " +
				"to start over from the new log alone, set another namespace"},
		{name: "a partition that was never read, of a recreated topic", log: func(l *fetch.Log) { l.ID = remade }, topic: known, id: 3,
			progress: []state.Position{none}, rules: Rules{Start: Latest},
			err: "the topic was deleted and recreated: up to offset 0 was applied of topic ID t1 in cluster c1, " +
				"and now there are offsets 10 to 99 of topic ID t2 in cluster c1; nothing of it is applied until you choose: " +
				"to keep the state and apply the new log from its start, run: weir progress set tx --to start --yes; " +
				"to start over from the new log alone, set another namespace"},
		{name: "brokers report more of the log than before", progress: []state.Position{in(partial, at(50, 4)), in(state.LogID{}, at(60, 4))},
			to: []state.Position{at(50, 4), at(60, 4)}},
		{name: "a broker reports less of the log", log: func(l *fetch.Log) { l.ID = partial }, progress: []state.Position{at(50, 4)}, want: goesOn},

		// First positions.
		{name: "first met, from the start", progress: []state.Position{none, none}, rules: Rules{Start: earliest},
			to: []state.Position{at(10, 4), at(10, 4)}},
		{name: "first met, from the end", progress: []state.Position{none, none}, rules: Rules{Start: Latest},
			to: []state.Position{at(100, 4), at(100, 4)}, gap: now},
		{name: "first met with others", progress: []state.Position{none}, topic: known, id: 1, rules: Rules{Start: Latest},
			to: []state.Position{at(100, 4)}, gap: now},
		{name: "added to a topic that is known", log: func(l *fetch.Log) { l.Start = 0 }, progress: []state.Position{none, none},
			topic: known, id: 2, rules: Rules{Start: Latest}, to: []state.Position{at(0, 4), at(0, 4)}},
		{name: "added, and its start was removed", progress: []state.Position{none}, topic: known, id: 2, rules: Rules{Start: Latest},
			want: verdict{lost: &lossError{Progress: 0, From: 10, To: 100}},
			err: "offsets 0 to 9 (10 records) were not applied and are no longer in the log; to go on without them, " +
				"set kafka.on_data_loss to continue, or run: weir progress set tx/2 --to start --yes"},

		// Losses.
		{name: "a shard lost its progress, and the log has all", log: func(l *fetch.Log) { l.Start = 0 },
			progress: []state.Position{none, at(70, 4)}, topic: known, rules: Rules{Start: Latest},
			to: []state.Position{at(0, 4), at(70, 4)}},
		{name: "a shard lost its progress, and the log has not all", progress: []state.Position{at(70, 4), none}, topic: known,
			rules: Rules{Start: Latest}, want: verdict{lost: &lossError{Progress: 0, From: 10, To: 100}},
			err: "offsets 0 to 9 (10 records) were not applied and are no longer in the log; to go on without them, " +
				"set kafka.on_data_loss to continue, or run: weir progress set tx/0 --to start --yes"},
		{name: "the same, continuing on loss", progress: []state.Position{at(70, 4), none}, topic: known,
			rules: Rules{Start: Latest, ContinueOnLoss: true}, to: []state.Position{at(70, 4), at(10, 4)}, gap: now,
			want: verdict{lost: &lossError{Progress: 0, From: 10, To: 100}}},
		{name: "retention was faster for one shard", progress: []state.Position{at(70, 4), at(7, 4)}, rules: Rules{ContinueOnLoss: true},
			to: []state.Position{at(70, 4), at(10, 4)}, gap: now, want: verdict{lost: &lossError{Progress: 7, From: 10, To: 100}}},

		// Waits.
		{name: "the leader has yet to learn of its end", progress: []state.Position{at(20, 4), at(110, 4)},
			ends: map[int32]fetch.EpochEnd{4: {Epoch: 4, Offset: 110}},
			err:  "waiting for the leader: applied up to offset 110, and its high watermark is still at 100"},
		{name: "unknown why the log ends earlier", progress: []state.Position{at(20, -1), at(110, -1)}, rules: Rules{ContinueOnLoss: true},
			err: "applied up to offset 110, but the log ends at 100, and the broker does not report leader epochs: " +
				"if it stays so, the topic lost records or was recreated; to go on at its end, run: weir progress set tx/0 --to end --again --yes"},
		{name: "open transactions before all shards", log: func(l *fetch.Log) { l.Stable = 40 }, progress: []state.Position{at(50, 4), at(60, 4)},
			rules: Rules{ContinueOnLoss: true},
			err:   "waiting for open transactions to end: applied up to offset 50, the last stable offset is 40 and the log ends at 100"},
		{name: "open transactions before some shards", log: func(l *fetch.Log) { l.Stable = 40 }, progress: []state.Position{at(30, 4), at(60, 4)}, want: goesOn},
		{name: "all is applied up to an open transaction", log: func(l *fetch.Log) { l.Stable = 40 }, progress: []state.Position{at(40, 4)}, want: goesOn},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := state.Partition{Topic: "tx", ID: c.id}
			f := finding{
				partition: id, underPlan: id.WithPlan("v"), now: now, claim: state.Claim{Progress: c.progress, Topic: c.topic}, log: logOf(c.log), ends: c.ends,
				logs: map[string]state.LogID{here.Tag(): here, remade.Tag(): remade, away.Tag(): away, partial.Tag(): partial},
			}
			got := f.judge(c.rules)
			if (got.err == nil) != (c.err == "") || got.err != nil && got.err.Error() != c.err {
				t.Errorf("error %v\nwant  %s", got.err, c.err)
			}
			if c.want.lost != nil {
				c.want.lost.Partition = id
			}
			if got.vanished != c.want.vanished || !cmp.Equal(got.lost, c.want.lost) {
				t.Errorf("vanished %d, lost %v; want %d, %v", got.vanished, got.lost, c.want.vanished, c.want.lost)
			}
			switch p := got.placement; {
			case (p == nil) != (c.to == nil):
				t.Errorf("placement %+v, want one to %v, or none if that is empty", p, c.to)
			case p != nil && (!cmp.Equal(p.To, c.to) || !cmp.Equal(p.From, c.progress) || p.Gap != c.gap || p.Partition != f.underPlan || p.Partitions != 4 || p.Log != here):
				t.Errorf("placement %+v, want one to %v, gap %d", p, c.to, c.gap)
			}
		})
	}
}
