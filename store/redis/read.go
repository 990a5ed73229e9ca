package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/redis/go-redis/v9"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// Read answers all reads with one pipeline, which is one round trip, or one to
// each of a cluster's nodes concerned; readers at the same time share it. The
// slices are in the order of the reads;
// reads that stand in one key share one command. It writes nothing.
func (s *Store) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	return s.ReadOverlay(ctx, reads, nil)
}

// ReadAsIf answers all reads as Read would if a batch, which may be nil, had
// just been applied, but for events that have arrived meanwhile; see
// packed.Overlay. It writes nothing.
func (s *Store) ReadOverlay(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error) {
	slices, _, err := s.readWith(ctx, (*master).ask, reads, pending)
	return slices, err
}

// readWith reads with commands that each master takes in a way. What stands at a
// master that does not answer is not read: its slices say so, and the others are
// answered. The error says that no master answers.
func (s *Store) readWith(ctx context.Context, take func(*master, []redis.Cmder) gathered, reads []state.Read, pending *state.Batch) (
	[]state.WindowState, state.Freshness, error) {
	slices := newWindowStates(len(reads))
	room := lookupRoom.Get().(*[]lookup)
	lookups := s.lookups((*room)[:0], reads)
	defer func() {
		if clear(lookups); cap(lookups) <= mostRecycled {
			*room = lookups
			lookupRoom.Put(room)
		}
	}()
	shares := s.shareByMaster(ctx, lookups, pending)
	commands := 0
	for i := range shares {
		commands += len(shares[i].commands)
		shares[i].gathered = take(shares[i].master, shares[i].commands)
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(semconv.DBOperationBatchSize(commands))
	}
	var freshness state.Freshness
	for _, share := range shares {
		f, err := share.wait(ctx)
		if err != nil {
			return nil, freshness, fmt.Errorf("read features: %w", err)
		}
		freshness = freshness.With(f)
	}
	if err := s.unread(ctx, lookups, slices); err != nil {
		return nil, freshness, fmt.Errorf("read features: %w", err)
	}
	secret, err := s.secretFor(ctx, reads, pending)
	if err != nil {
		return nil, freshness, fmt.Errorf("read features: %w", err)
	}
	r := newReceiver(reads, slices, pending, secret)
	defer r.free()
	for i := range lookups {
		if !errors.Is(lookups[i].err(), state.ErrUnavailable) {
			r.receive(&lookups[i])
		}
	}
	return slices, freshness, nil
}

// secretFor is the secret that reads need, if they do. It is looked for when the state
// has been read: where there is none even then, there was no state.
func (s *Store) secretFor(ctx context.Context, reads []state.Read, pending *state.Batch) (packed.Secret, error) {
	needed := pending != nil
	for i := range reads { // a read is too long to be copied for a look
		needed = needed || reads[i].Series.Layout() == state.Filters
	}
	if !needed {
		return packed.Secret{}, nil
	}
	return s.keyed(ctx)
}

// lookup is the state of a group of an entity to be read, and what reads it.
type lookup struct {
	location
	reading
	group, entity string

	reads []int // indices

	// ids are series that say which pending events have arrived at the entity.
	ids []*state.Series

	lost error // why there is no master to ask
}

// entityKey is what a state key is made of.
type entityKey struct{ group, entity string }

// lookupRoom keeps the memory of lookups, of which a question has as many as it has keys.
var lookupRoom = sync.Pool{New: func() any { return new([]lookup) }}

// lookups gathers the reads by key, into room.
func (s *Store) lookups(list []lookup, reads []state.Read) []lookup {
	var known lookupIndex
	at, of := 0, make([]int, len(reads))
	for i := range reads {
		r := &reads[i]
		// The read before is often of the same key.
		if i == 0 || r.Entity != list[at].entity || r.Series.Group != list[at].group {
			if at = known.find(list, entityKey{r.Series.Group, r.Entity}); at == len(list) {
				list = append(list, lookup{location: s.locate(r.Series, r.Entity), group: r.Series.Group, entity: r.Entity})
			}
		}
		of[i] = at
	}
	shareOut(list, of)
	return list
}

// places finds lookups in a list that grows.
type lookupIndex map[entityKey]int

// find is the place of a key in the list, or where it is to be appended.
func (p *lookupIndex) find(list []lookup, k entityKey) int {
	const few = 16 // are looked through sooner than a map is made
	if len(list) < few {
		for at := range list {
			if list[at].entity == k.entity && list[at].group == k.group {
				return at
			}
		}
		return len(list)
	}
	if *p == nil {
		*p = lookupIndex{}
		for at := range list {
			(*p)[entityKey{list[at].group, list[at].entity}] = at
		}
	}
	at, ok := (*p)[k]
	if !ok {
		at = len(list)
		(*p)[k] = at
	}
	return at
}

// shareOut gives the lookups the indices of their reads, of which there is one
// for each element of of.
func shareOut(list []lookup, of []int) {
	counts := make([]int, len(list)+len(of))
	counts, indices := counts[:len(list)], counts[len(list):]
	for _, at := range of {
		counts[at]++
	}
	for at, n := range counts {
		list[at].reads, indices = indices[:0:n], indices[n:]
	}
	for i, at := range of {
		list[at].reads = append(list[at].reads, i)
	}
}

// AppendKey appends the key that holds a series of an entity.
func (s *Store) AppendKey(dst []byte, series *state.Series, entity string) []byte {
	text := unsafe.Slice(unsafe.StringData(entity), len(entity)) // it is only read
	return s.appendEntityKey(dst, s.shardOf(entity), series.Group, text)
}

// shardOf is the shard of an entity.
func (s *Store) shardOf(entity string) int {
	return state.Shard(state.EntityHash(unsafe.Slice(unsafe.StringData(entity), len(entity))), len(s.tags)) // it is only read
}

// ask appends the commands.
func (l *lookup) ask(ctx context.Context, commands []redis.Cmder) []redis.Cmder {
	l.reading.keys = l.location.keys(l.keyRoom[:0])
	return l.reading.ask(ctx, commands)
}

// reply is what is held of the entity and of the losses of its parent. The error is that it
// cannot be told.
func (l *lookup) reply() (held []byte, losses packed.Losses, err error) {
	values, err := l.values()
	if err != nil {
		return nil, nil, err
	}
	return l.take(values)
}

// share is what one master is asked for a question.
type share struct {
	master   *master
	commands []redis.Cmder
	gathered
}

// shareByMaster makes the commands of lookups, by the master that holds the key.
func (s *Store) shareByMaster(ctx context.Context, lookups []lookup, pending *state.Batch) (shares []share) {
	for i := range lookups {
		l := &lookups[i]
		if pending != nil {
			l.remember(pending)
		}
		m, err := s.masters.of(ctx, l.key)
		if err != nil {
			l.lost = err
			continue
		}
		at := 0
		for at < len(shares) && shares[at].master != m {
			at++
		}
		if at == len(shares) {
			shares = append(shares, share{master: m, commands: make([]redis.Cmder, 0, len(lookups)-i)})
		}
		shares[at].commands = l.ask(ctx, shares[at].commands)
	}
	return shares
}

// err is why the keys were not read; nil where they were, whatever they hold.
func (l *lookup) err() error {
	if l.lost != nil {
		return l.lost
	}
	return l.reading.err()
}

// unread tells the slices of what was not read, because its master did not answer.
// The error is why a question cannot be answered even in part.
func (s *Store) unread(ctx context.Context, lookups []lookup, slices []state.WindowState) error {
	missing := 0
	for i := range lookups {
		switch err := lookups[i].err(); {
		case errors.Is(err, state.ErrUnavailable):
			missing++
			for _, r := range lookups[i].reads {
				slices[r].Err = err
			}
		case err != nil:
			return err
		}
	}
	if missing > 0 && missing == len(lookups) {
		return s.down(ctx)
	}
	return nil
}
