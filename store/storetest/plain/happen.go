package plain

import (
	"maps"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/protocol"
	"github.com/weir-stream/weir/store/values"
)

// What the conformance suite has happen to a store, see storetest.Namespace.

// Another returns a store of the same namespace that has read nothing of it yet.
func (s *Store) Another() store.Store { return of(s.engine, s.options) }

// Save returns a function that puts a shard back to the moment of the call.
func (s *Store) Save(shard int) (restore func()) { return s.engine.save(shard) }

// SavePlans returns a function that puts the plans back to the moment of the call.
func (s *Store) SavePlans() (restore func()) { return s.engine.save(protocol.Plans) }

// save returns a function that puts the values of a shard, or a register, back to the moment of the call.
func (e *engine) save(shard int) (restore func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	saved := maps.Clone(e.values)
	maps.DeleteFunc(saved, func(k values.Key, _ held) bool { return k.Shard != shard })
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		maps.DeleteFunc(e.values, func(k values.Key, _ held) bool { return k.Shard == shard })
		maps.Copy(e.values, saved)
	}
}

// endless is a number of steps that interrupts nothing.
const endless = -1

// Interrupt has Apply fail after some more steps; a negative number ends that.
func (s *Store) Interrupt(steps int) {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	s.engine.steps = max(steps, endless)
}

// LoseRecord removes the record of a shard, and leaves its state.
func (s *Store) LoseRecord(shard int) {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	delete(s.engine.values, values.Key{Shard: shard})
}

// Spoil replaces what is held of an entity in the group of a series by something else.
func (s *Store) Spoil(of *state.Series, entity string) {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	k := values.Key{Shard: state.Shard(state.EntityHash([]byte(entity)), s.Shards()), Group: of.Group, Entity: entity}
	s.engine.values[k] = held{bytes: []byte("something else")}
}

// Pass moves the clock, back if the time is negative.
func (s *Store) Pass(d time.Duration) { s.engine.passed.Add(int64(d)) }

// Hang makes every second shard unreachable, until the end.
func (s *Store) Hang() (hung []bool, end func()) {
	e := s.engine
	set := func(hang bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		for shard := range e.hangs {
			e.hangs[shard] = hang && hung[shard]
		}
	}
	for shard := range e.hangs {
		hung = append(hung, shard%2 == 1)
	}
	set(true)
	return hung, func() { set(false) }
}
