package pipeline

import (
	"errors"
	"testing"

	"github.com/weir-stream/weir/state"
)

// The log of the tests, and another with the same name.
var (
	here   = state.LogID{Cluster: "c1", Topic: "t1"}
	remade = state.LogID{Cluster: "c1", Topic: "t2"}
)

func at(offset int64, epoch int32) state.Position {
	return in(here, state.Position{Offset: offset, Epoch: epoch})
}

func in(id state.LogID, p state.Position) state.Position {
	p.Log = id.Tag()
	return p
}

// A loss in the store is detected if a shard has less of the same log than it was known to have, and only then.
func TestStoreThatWentBackIsDetected(t *testing.T) {
	t.Parallel()
	none := state.NoPosition
	for name, c := range map[string]struct {
		confirmed, found []state.Position
		want             bool
	}{
		"nothing was known":                      {nil, []state.Position{at(5, 1), at(7, 1)}, false},
		"as it was":                              {[]state.Position{at(5, 1), at(7, 1)}, []state.Position{at(5, 1), at(7, 1)}, false},
		"further":                                {[]state.Position{at(5, 1), at(7, 1)}, []state.Position{at(9, 2), at(9, 2)}, false},
		"one shard has less":                     {[]state.Position{at(5, 1), at(7, 1)}, []state.Position{at(9, 1), at(6, 1)}, true},
		"less, and of an older leader":           {[]state.Position{at(7, 2)}, []state.Position{at(6, 1)}, true},
		"an older leader alone":                  {[]state.Position{at(7, 2)}, []state.Position{at(7, 1)}, false},
		"placed in another log":                  {[]state.Position{at(70, 1), at(70, 1)}, []state.Position{in(remade, at(0, 0)), in(remade, at(0, 0))}, false},
		"one shard placed, one has less":         {[]state.Position{at(70, 1), at(70, 1)}, []state.Position{in(remade, at(0, 0)), at(60, 1)}, true},
		"there was no progress":                  {[]state.Position{none}, []state.Position{none}, false},
		"one shard has lost all":                 {[]state.Position{at(5, 1), at(7, 1)}, []state.Position{at(5, 1), none}, true},
		"one shard has some for the first":       {[]state.Position{at(5, 1), none}, []state.Position{at(5, 1), at(0, 1)}, false},
		"fewer shards, further":                  {[]state.Position{at(5, 1), at(7, 1)}, []state.Position{at(5, 1)}, false},
		"fewer shards, one has less":             {[]state.Position{at(5, 1), at(7, 1)}, []state.Position{at(4, 1)}, true},
		"more shards":                            {[]state.Position{at(5, 1)}, []state.Position{at(5, 1), at(5, 1)}, false},
		"less, where brokers do not report logs": {[]state.Position{in(state.LogID{}, at(7, 1))}, []state.Position{in(state.LogID{}, at(6, 1))}, true},
	} {
		p := assignedPartition{confirmed: c.confirmed}
		if got := p.wentBack(&state.Claim{Progress: c.found}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// What was confirmed of more shards than there are is forgotten: a failover has lost that there were more.
func TestConfirmedProgressOfMoreShards(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(p *assignedPartition){
		"when they are found":    func(p *assignedPartition) { p.wentBack(&state.Claim{Progress: []state.Position{at(5, 1)}}) },
		"when they are recorded": func(p *assignedPartition) { p.confirm() },
	} {
		p := assignedPartition{lease: lease{progress: []state.Position{at(5, 1)}}, confirmed: []state.Position{at(5, 1), at(7, 1)}}
		if forget(&p); len(p.confirmed) != 1 {
			t.Errorf("%s: %d shards are confirmed, want 1", name, len(p.confirmed))
		}
	}
}

// A shard whose master does not answer when the partition is read again is compared once it answers, even if meanwhile
// the others were compared and the partition was read again.
func TestStoreWentBackWhileAMasterWasDown(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	p := assignedPartition{lease: lease{progress: []state.Position{at(5, 1), at(7, 1)}}}
	p.confirm()
	first := &state.Claim{Progress: []state.Position{at(5, 1), at(7, 1)}}
	first.Miss(1, away)
	for range 2 {
		if p.wentBack(first) {
			t.Error("a shard with unknown progress is reported as having gone back")
		}
		p.lease.progress = []state.Position{at(5, 1), state.NoPosition}
		p.confirm()
	}
	back := &state.Claim{Progress: []state.Position{at(9, 1), at(6, 1)}}
	if !p.wentBack(back) {
		t.Error("a shard that came back with less progress is not detected")
	}
	if p.wentBack(back) {
		t.Error("the shard is reported a second time")
	}
}
