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

// Read answers all reads with one pipeline: one round trip, or one to each node concerned of a cluster, which
// concurrent readers share. The window states are in the order of the reads; reads of one key share one command. It
// writes nothing.
func (s *Store) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	return s.ReadOverlay(ctx, reads, nil)
}

// ReadOverlay answers all reads as if a batch, which may be nil, had just been applied, except events that were applied
// meanwhile; see packed.View. It writes nothing.
func (s *Store) ReadOverlay(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error) {
	windowStates, _, err := s.readWith(ctx, (*master).ask, reads, pending)
	return windowStates, err
}

// readWith reads with commands that ask sends to each master. The window states of a master that does not answer have
// an error, and the others are answered. It fails if no master answers.
func (s *Store) readWith(ctx context.Context, ask func(*master, []redis.Cmder) gathered, reads []state.Read, pending *state.Batch) (
	[]state.WindowState, state.Freshness, error) {
	if err := s.moved(); err != nil {
		return nil, state.Freshness{}, err
	}
	windowStates := newWindowStates(len(reads))
	room := lookupRoom.Get().(*[]lookup)
	lookups := s.lookups((*room)[:0], reads, pending != nil)
	defer func() {
		if clear(lookups); cap(lookups) <= maxRecycled {
			*room = lookups
			lookupRoom.Put(room)
		}
	}()
	shares := s.shareByMaster(ctx, lookups, pending)
	commands := 0
	for i := range shares {
		commands += len(shares[i].commands)
		shares[i].gathered = ask(shares[i].master, shares[i].commands)
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
	if err := s.unread(ctx, lookups, windowStates); err != nil {
		return nil, freshness, fmt.Errorf("read features: %w", err)
	}
	secret, err := s.secretFor(ctx, reads, pending)
	if err != nil {
		return nil, freshness, fmt.Errorf("read features: %w", err)
	}
	r := newReceiver(reads, windowStates, pending, secret)
	defer r.free()
	for i := range lookups {
		if !errors.Is(lookups[i].err(), state.ErrUnavailable) {
			r.receive(&lookups[i])
		}
	}
	return windowStates, freshness, nil
}

// secretFor returns the secret if reads need it. It is looked up after the state was read: if there is still none,
// there was no state.
func (s *Store) secretFor(ctx context.Context, reads []state.Read, pending *state.Batch) (state.Secret, error) {
	needed := pending != nil
	for i := range reads { // a read is large to copy
		needed = needed || reads[i].Series.Layout().NeedsSecret()
	}
	if !needed {
		return state.Secret{}, nil
	}
	return s.Secret(ctx)
}

// lookup is the read of an entity's state in a group.
type lookup struct {
	location
	reading
	group, entity string
	stored        bool // without pending events

	reads []int // indices

	// ids are the series that show which pending events were already applied to the entity.
	ids []*state.Series

	lost error // why no master can be asked
}

// entityKey identifies a state key.
type entityKey struct{ group, entity string }

// lookupKey identifies a lookup: a state key is read with pending events, or as it is stored.
type lookupKey struct {
	entityKey
	stored bool
}

// lookupRoom reuses the memory of lookups. A question has one lookup for each key.
var lookupRoom = sync.Pool{New: func() any { return new([]lookup) }}

// lookups groups the reads by key, into list, and with pending events those that count them apart from those that do not.
func (s *Store) lookups(list []lookup, reads []state.Read, pending bool) []lookup {
	var known lookupIndex
	at, of := 0, make([]int, len(reads))
	for i := range reads {
		r := &reads[i]
		// The previous read often has the same key.
		stored := pending && r.Stored
		if i == 0 || r.Entity != list[at].entity || r.Series.Group != list[at].group || stored != list[at].stored {
			if at = known.find(list, lookupKey{entityKey{r.Series.Group, r.Entity}, stored}); at == len(list) {
				list = append(list, lookup{location: s.locate(r.Series, r.Entity), group: r.Series.Group, entity: r.Entity, stored: stored})
			}
		}
		of[i] = at
	}
	shareOut(list, of)
	return list
}

// lookupIndex finds lookups in a growing list.
type lookupIndex map[lookupKey]int

// find returns the index of a key in the list, or the index at which to append it.
func (p *lookupIndex) find(list []lookup, k lookupKey) int {
	const few = 16 // scanning these is faster than making a map
	if len(list) < few {
		for at := range list {
			if list[at].entity == k.entity && list[at].group == k.group && list[at].stored == k.stored {
				return at
			}
		}
		return len(list)
	}
	if *p == nil {
		*p = lookupIndex{}
		for at := range list {
			(*p)[lookupKey{entityKey{list[at].group, list[at].entity}, list[at].stored}] = at
		}
	}
	at, ok := (*p)[k]
	if !ok {
		at = len(list)
		(*p)[k] = at
	}
	return at
}

// shareOut assigns to the lookups the indices of their reads, one for each element of of.
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

// appendKey appends the key that holds a series of an entity.
func (s *Store) appendKey(dst []byte, series *state.Series, entity string) []byte {
	text := unsafe.Slice(unsafe.StringData(entity), len(entity)) // read only
	return s.appendEntityKey(dst, s.shardOf(entity), series.Group, text)
}

// shardOf returns the shard of an entity.
func (s *Store) shardOf(entity string) int {
	text := unsafe.Slice(unsafe.StringData(entity), len(entity)) // read only
	return s.hashing.Shard(text, state.EntityHash(text), len(s.tags))
}

// ask appends the commands.
func (l *lookup) ask(ctx context.Context, commands []redis.Cmder) []redis.Cmder {
	l.reading.keys = l.location.keys(l.keyRoom[:0])
	return l.reading.ask(ctx, commands)
}

// reply returns the state of the entity and the losses of its parent. It fails if they are unknown.
func (l *lookup) reply() (held []byte, losses packed.Losses, err error) {
	values, err := l.values()
	if err != nil {
		return nil, nil, err
	}
	return l.take(values)
}

// share is the part of a question for one master.
type share struct {
	master   *master
	commands []redis.Cmder
	gathered
}

// shareByMaster groups the commands of lookups by the master that holds the key.
func (s *Store) shareByMaster(ctx context.Context, lookups []lookup, pending *state.Batch) (shares []share) {
	for i := range lookups {
		l := &lookups[i]
		if pending != nil && !l.stored {
			l.ids = packed.IDSeries(l.ids, pending, l.group, l.entity)
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

// err returns why the keys were not read; nil if they were, also if they hold no strings.
func (l *lookup) err() error {
	if l.lost != nil {
		return l.lost
	}
	return l.reading.err()
}

// unread sets the error of window states that were not read because a master did not answer. It fails if no part of the
// question can be answered.
func (s *Store) unread(ctx context.Context, lookups []lookup, windowStates []state.WindowState) error {
	missing := 0
	for i := range lookups {
		switch err := lookups[i].err(); {
		case errors.Is(err, state.ErrUnavailable):
			missing++
			for _, r := range lookups[i].reads {
				windowStates[r].Err = err
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
