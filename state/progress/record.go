// Package progress is the protocol by which each event counts exactly once. Every shard of a store has a record of how far
// partitions are applied to its state, by which plans, and what fills still have to apply. A step of the protocol reads a
// record, decides, and changes it: claims, placements, gaps, fills. The package decides; a store keeps records and makes a
// change only if nothing on which it was decided has changed (Change). The one change that a store makes itself is to move a
// position when it applies the records before it, in the same step.
package progress

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/state"
)

// Record is the record of a shard, as read at a moment. It is not safe for concurrent use.
type Record struct {
	// Clock is the store's, when the record was read, in ms.
	Clock int64

	found    map[string]string // the fields, as read
	held     map[state.Partition]*Holding
	ends     map[Epoch]int64
	since    map[state.Partition]int64
	topics   map[string]state.FirstSeen
	logs     map[string]state.LogID // by tag
	fillings map[fillKey]*filling
	archives map[archiveKey]archive
	rows     map[rowsKey]state.Position
	newest   *int64 // the greatest timestamp of a record applied, in ms
	lag      *int64 // the least time by which that was behind the clock, in ms
	evicted  string // run of the server, and number of keys that it had evicted when that was last recorded: "run:keys"
	ahead    state.Ahead
	others   map[string]string // fields that no step changes

	decided map[state.Partition]bool // partitions whose positions decided about a change
	stamped []string                 // fields to be set to the clock
}

// Holding is the progress of a partition under the plan that has it.
type Holding struct {
	Plan string // its version
	At   state.Position
}

// Epoch names a plan that was applied to a topic; for the version state.Gap no plan was.
type Epoch struct{ Topic, Version string }

// Of makes the record of a shard from its fields, which were read at a moment of the store's clock, in ms. The error is about
// a field that no step writes.
func Of(fields map[string]string, clock int64) (*Record, error) {
	r := &Record{
		Clock: clock, found: fields, held: map[state.Partition]*Holding{}, ends: map[Epoch]int64{}, since: map[state.Partition]int64{},
		topics: map[string]state.FirstSeen{}, logs: map[string]state.LogID{}, fillings: map[fillKey]*filling{},
		archives: map[archiveKey]archive{}, rows: map[rowsKey]state.Position{}, others: map[string]string{}, decided: map[state.Partition]bool{},
	}
	for name, value := range fields {
		if err := r.parse(name, value); err != nil {
			return nil, &FieldError{name, value, err}
		}
	}
	return r, nil
}

// Begun reports whether the state of the shard belongs to its record. Otherwise the shard must be emptied before it gets a
// position: the state that it may have is of unknown records, which would count again.
func (r *Record) Begun() bool {
	if r.others[begunField] != "" || len(r.held) > 0 || len(r.rows) > 0 {
		return true
	}
	for _, f := range r.fillings {
		if f.at.Exists() {
			return true
		}
	}
	return false
}

// Position returns how far a partition is applied under any plan.
func (r *Record) Position(p state.Partition) state.Position {
	if h := r.held[p.Itself()]; h != nil {
		return h.At
	}
	return state.NoPosition
}

// Held returns the progress of all partitions that plans have. Callers do not change it.
func (r *Record) Held() map[state.Partition]*Holding { return r.held }

// Relogged reports whether the state has events of an earlier log of a topic.
func (r *Record) Relogged() bool { return len(r.logs) > len(r.topics) }

// Log returns the log with the tag of a position; ok is false if the shard does not know it.
func (r *Record) Log(tag string) (log state.LogID, ok bool) {
	log, ok = r.logs[tag]
	return log, ok
}

// Newest returns the greatest timestamp of a record applied, in ms; 0 if none was.
func (r *Record) Newest() int64 {
	if r.newest == nil {
		return 0
	}
	return *r.newest
}

// Change is what a step changes in a record. A store makes it in one step, or not at all if the record has another
// CurrentChange, or other values of Seen, than when it was read.
type Change struct {
	Seen    map[string]string // "" for a field that the record lacked
	Set     map[string]string
	Stamped []string // fields to be set to the clock of the store, in ms
	Deleted []string
}

// ChangeField is the field of a record that names its last change. Positions move without it.
const ChangeField = "change"

// Change returns what the steps have changed; nil if nothing.
func (r *Record) Change() *Change {
	c := &Change{Seen: map[string]string{}, Set: map[string]string{}, Stamped: r.stamped}
	now := r.fields()
	for name, value := range now {
		if before, had := r.found[name]; !had || before != value {
			c.Seen[name], c.Set[name] = before, value
		}
	}
	for name, before := range r.found {
		if _, kept := now[name]; !kept {
			c.Seen[name] = before
			c.Deleted = append(c.Deleted, name)
		}
	}
	for _, name := range c.Stamped {
		delete(c.Set, name)
	}
	if len(c.Set)+len(c.Deleted)+len(c.Stamped) == 0 {
		return nil
	}
	for name, before := range r.found {
		if p, moves := movingPosition(name); moves && r.decided[p] {
			c.Seen[name] = before
		}
	}
	slices.Sort(c.Deleted)
	return c
}

// LastChange returns the name of the record's last change.
func (r *Record) LastChange() string { return r.found[ChangeField] }

// Make makes the change in the fields of a record that a store keeps in memory, by a clock in ms, and names it. It returns
// false and changes nothing if the record has changed since it was read as one with that last change.
func (c *Change) Make(fields map[string]string, last, name string, clock int64) bool {
	if fields[ChangeField] != last {
		return false
	}
	for field, value := range c.Seen {
		if fields[field] != value {
			return false
		}
	}
	for _, field := range c.Deleted {
		delete(fields, field)
	}
	maps.Copy(fields, c.Set)
	for _, field := range c.Stamped {
		fields[field] = strconv.FormatInt(clock, 10)
	}
	fields[ChangeField] = name
	return true
}

// end records that a plan may have applied records of a topic with timestamps up to a moment, in ms.
func (r *Record) end(topic, version string, moment int64) {
	e := Epoch{topic, version}
	if known, ended := r.ends[e]; !ended || known < moment {
		r.ends[e] = moment
	}
}

// Gap records that records of a topic were skipped, with timestamps up to a moment, in ms, or up to the greatest one applied.
func (r *Record) Gap(topic string, until int64) {
	r.end(topic, state.Gap, max(until, r.Newest()))
}

// Lost records that keys of the shard were deleted: what its records applied until now may be missing.
func (r *Record) Lost() {
	if r.newest == nil {
		return // a shard that has applied nothing has lost nothing
	}
	for p := range r.held {
		r.Gap(p.Topic, 0)
	}
}

// Evicted reports whether a run of the shard's server has evicted keys of which the record does not know: that many since it was
// started. If another run was recorded, that server may have evicted keys after it was last asked.
func (r *Record) Evicted(run string, keys int64) bool {
	if r.evicted == "" {
		return keys > 0
	}
	return r.evicted != evictions(run, keys) && (keys > 0 || !strings.HasPrefix(r.evicted, run+":"))
}

// Notice records what was noticed of the server of the shard: how many keys a run of it has evicted since it was started, and the
// greatest time, in ms, that its clock has shown, if it was set; else 0. Fills that the shard gets to know later are not concerned.
func (r *Record) Notice(run string, keys, ahead int64) {
	if ahead > 0 && r.newest != nil {
		now := state.Ahead{Clock: ahead, Newest: *r.newest}
		r.ahead = r.ahead.And(now)
		for _, f := range r.fillings {
			f.ahead = f.ahead.And(now)
		}
	}
	if r.Evicted(run, keys) {
		r.Lost()
	}
	if keys > 0 || r.evicted != "" {
		r.evicted = evictions(run, keys)
	}
}

func evictions(run string, keys int64) string { return run + ":" + strconv.FormatInt(keys, 10) }
