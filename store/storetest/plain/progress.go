package plain

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store/protocol"
)

// shard is one shard: its record, and the states that belong to it.
type shard struct {
	fields  map[string]string // of the record, see package progress
	states  map[key]*held
	spoiled map[key]bool // without the series
	hangs   bool
}

func newShard() *shard {
	return &shard{fields: map[string]string{}, states: map[key]*held{}, spoiled: map[key]bool{}}
}

// records are the records of a store.
type records struct{ s *Store }

var _ protocol.Engine = records{}

func (r records) Shards() int { return len(r.s.shards) }

func (r records) Name(record int) string { return fmt.Sprint("record ", record) }

func (r records) Down(context.Context) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.allHang()
}

// fields returns the fields of a record, or why it cannot be reached.
func (r records) fields(record int) (map[string]string, error) {
	if record < 0 {
		return r.s.registers[record], nil
	}
	return r.s.shards[record].fields, r.s.shards[record].err()
}

func (r records) Read(_ context.Context, q protocol.Query) []protocol.Found {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	found := make([]protocol.Found, len(q.Records))
	for i, record := range q.Records {
		fields, err := r.fields(record)
		found[i] = protocol.Found{Fields: maps.Clone(fields), Clock: r.s.now().UnixMilli(), Err: err}
	}
	return found
}

func (r records) Names(_ context.Context, register int) ([]string, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return slices.Collect(maps.Keys(r.s.registers[register])), nil
}

func (r records) Change(_ context.Context, changes []protocol.Change) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for i := range changes {
		c := &changes[i]
		fields, err := r.fields(c.Record)
		if c.Err = err; err == nil {
			c.Made = c.Make(fields, c.Last, rand.Text(), r.s.now().UnixMilli())
		}
	}
}

// Begin does nothing but record that the shards have begun: a shard never loses its record.
func (r records) Begin(_ context.Context, shards []int) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for _, shard := range shards {
		r.s.shards[shard].fields["begun"] = "1"
	}
	return nil
}

func (r records) Servers(context.Context) []*protocol.Server {
	return make([]*protocol.Server, len(r.s.shards))
}

// meet returns where a range continues; nil if the shard lacks what it had confirmed, or if another plan has the
// partition.
func (sh *shard) meet(r *state.PartitionRange, shard int) *state.Position {
	at, err := state.ParsePosition(sh.fields[progress.PositionField(r.Partition)])
	if known := r.Progress[shard]; err != nil || !at.Exists() || at != known && !at.Continues(known, r.Epoch) {
		r.Behind = true
		return nil
	}
	r.Progress[shard] = at
	return &at
}

// pass notes the greatest timestamp of a record, and how far it is behind the clock; both in ms.
func (sh *shard) pass(timestamp, clock int64) {
	known := func(field string, none int64) int64 {
		if n, err := strconv.ParseInt(sh.fields[field], 10, 64); err == nil {
			return n
		}
		return none
	}
	if timestamp > known(progress.NewestField, 0) {
		sh.fields[progress.NewestField] = strconv.FormatInt(timestamp, 10)
		sh.fields[progress.LagField] = strconv.FormatInt(min(max(0, clock-timestamp), known(progress.LagField, math.MaxInt64)), 10)
	}
}
