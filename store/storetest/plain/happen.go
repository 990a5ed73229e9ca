package plain

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/protocol"
)

// What the conformance suite has happen to a store, see storetest.Namespace.

// Another returns a store of the same namespace that has read nothing of it yet.
func (s *Store) Another() store.Store { return of(s.namespace) }

// Save returns a function that puts a shard back to the moment of the call.
func (s *Store) Save(shard int) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := s.shards[shard].copy(s.secret)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shards[shard] = saved.copy(s.secret)
	}
}

// SavePlans returns a function that puts the plans back to the moment of the call.
func (s *Store) SavePlans() (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plans := maps.Clone(s.registers[protocol.Plans])
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.registers[protocol.Plans] = maps.Clone(plans)
	}
}

func (sh *shard) copy(secret state.Secret) *shard {
	c := &shard{fields: maps.Clone(sh.fields), states: map[key]*held{}, spoiled: maps.Clone(sh.spoiled), hangs: sh.hangs}
	for k, h := range sh.states {
		state := &held{State: packed.NewKeyed(h.of, secret), of: h.of, until: h.until}
		if err := state.Merge(h.Append(nil)); err != nil {
			panic(err) // it was packed here
		}
		c.states[k] = state
	}
	return c
}

// endless is a number of steps that interrupts nothing.
const endless = -1

// A shard applies a batch in stepsOfShard steps if it is interrupted, each for some of its slices.
const stepsOfShard = 4

// Interrupt has Apply fail after some more steps; a negative number ends that.
func (s *Store) Interrupt(steps int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = steps
}

// slices returns the number of slices to which a shard applies a batch, given where its ranges are. Where some slices are
// ahead already, there is only one step.
func (s *Store) slices(at []*state.Position) int {
	if s.steps < 0 {
		return state.ShardSlices
	}
	steps := min(s.steps, stepsOfShard)
	s.steps -= steps
	if steps < stepsOfShard && slices.ContainsFunc(at, func(p *state.Position) bool { return p != nil && p.Slices > 0 }) {
		return 0
	}
	return steps * state.ShardSlices / stepsOfShard
}

// Spoil replaces what is held of an entity in the group of a series by something else.
func (s *Store) Spoil(of *state.Series, entity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shardOf(entity).spoiled[key{"", of.Group, entity}] = true
}

// Pass moves the clock, back if the time is negative.
func (s *Store) Pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed += d
}

// Hang makes every second shard unreachable, until the end.
func (s *Store) Hang() (hung []bool, end func()) {
	set := func(hang bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for shard, sh := range s.shards {
			sh.hangs = hang && hung[shard]
		}
	}
	for shard := range s.shards {
		hung = append(hung, shard%2 == 1)
	}
	set(true)
	return hung, func() { set(false) }
}
