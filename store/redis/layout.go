package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

//go:embed correct.lua
var correctLua string

//go:embed layout.lua
var layoutLua string

// layoutError is the error for a namespace with another layout than wanted. It is a store.ErrLayout.
type layoutError struct {
	Namespace, What, Found, Wanted string
}

func (e *layoutError) Error() string {
	if e.What == keyspace.SecretField { // the value must not be shown
		return fmt.Sprintf("namespace %q has %s secret to hash values with, so its state cannot be read: use another namespace", e.Namespace, e.Found)
	}
	if e.What == keyspace.FormatField {
		return fmt.Sprintf("namespace %q was written in layout %s, and this version of Weir reads and writes layout %s only: "+
			"use a version that knows layout %[2]s, or another namespace, into which the log is read from its start",
			e.Namespace, e.Found, e.Wanted)
	}
	if e.What == keyspace.ShardsField {
		if keyspace.ParseShards(e.Found) == 0 {
			return fmt.Sprintf("the layout of namespace %q is damaged: it has %q shards, and there can be 1 to %d: use another namespace, "+
				"into which the log is read from its start", e.Namespace, e.Found, keyspace.Slots)
		}
		return fmt.Sprintf("namespace %q has %s shards, and this process began with %s: start it again", e.Namespace, e.Found, e.Wanted)
	}
	return fmt.Sprintf("namespace %q was made with %s %s, not %s: use %s %[3]s, or another namespace",
		e.Namespace, e.What, e.Found, e.Wanted, e.What)
}

func (e *layoutError) Unwrap() error { return store.ErrLayout }

// Adopt takes the number of shards from the namespace, also if its layout was lost; a new namespace gets the store's
// number. Then it checks the rest of the layout. It must be the first call of the store, and no other call may run
// meanwhile.
func (s *Store) Adopt(ctx context.Context) error {
	found, err := s.readLayout(ctx)
	if err != nil {
		return err
	}
	if shards := shardsIn(found); shards > 0 && shards != len(s.tags) {
		s.spread(shards)
	}
	return s.take(found)
}

// readLayout reads the fields of the layout; none if the namespace does not exist yet. If the layout was lost, it has
// what the shards have recorded of it, also if they are not as many as the store's; if it is from before a resharding, it
// has the present number of shards. A store that knows the secret has known their number.
func (s *Store) readLayout(ctx context.Context) (map[string]string, error) {
	s.layoutRead.Store(time.Now().UnixMilli())
	found, err := s.storedLayout(ctx)
	if err == nil && len(found) == 0 {
		found, err = s.readRecorded(ctx)
	}
	if err == nil && len(found) == 0 && s.secret.Load() == nil {
		found, err = s.searchOnce(ctx)
	}
	if err == nil {
		err = s.followShards(ctx, found)
	}
	return found, err
}

// followShards sets the number of shards in a layout to that of those that took over from the ones it names: then the
// server of the layout has gone back in time. Any of the old shards says so, because the others may have gone back with
// the layout. A master that does not answer is not waited for.
func (s *Store) followShards(ctx context.Context, layout map[string]string) error {
	for {
		shards := shardsIn(layout)
		if shards == 0 {
			return nil
		}
		old := s
		if shards != len(s.tags) {
			old = s.withShards(shards)
		}
		successors, err := old.successors(ctx)
		if err != nil {
			return err
		}
		if successors <= shards {
			return nil
		}
		layout[keyspace.ShardsField] = strconv.Itoa(successors)
		delete(layout, keyspace.ReshardingField)
	}
}

// successors returns the greatest number of shards that those of the store have recorded, as far as their masters answer: their own
// number, or that of the shards that took over from them; 0 if none has begun.
func (s *Store) successors(ctx context.Context) (int, error) {
	recorded, _, err := s.recorded(ctx)
	return mostShards(recorded), err
}

// mostShards returns the greatest number of shards that is recorded: the shards that say less have gone back in time.
func mostShards(recorded []map[string]string) (most int) {
	for _, fields := range recorded {
		most = max(most, shardsIn(fields))
	}
	return most
}

// shardsIn returns the number of shards in a layout, or in a record of it; 0 if it has none, or one that cannot be.
func shardsIn(layout map[string]string) int {
	return keyspace.ParseShards(layout[keyspace.ShardsField])
}

// storedLayout reads the fields of the layout as they are in Redis.
func (s *Store) storedLayout(ctx context.Context) (map[string]string, error) {
	command := redis.NewMapStringStringCmd(ctx, "hgetall", keyspace.LayoutKey(s.namespace))
	if err := s.sendAbout(ctx, keyspace.LayoutKey(s.namespace), command); err != nil {
		return nil, fmt.Errorf("read the layout of namespace %q: %w", s.namespace, err)
	}
	return command.Val(), nil
}

// readRecorded reads what the shards have recorded of the layout; if others took over from them, it has the number of
// those. It returns nothing if no shard has begun. Shards whose master does not answer are needed only if no other shard
// has begun. It returns a layoutError if shards have recorded different secrets.
func (s *Store) readRecorded(ctx context.Context) (map[string]string, error) {
	recorded, missing, err := s.recorded(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, fields := range recorded {
		if secret, known := found[keyspace.SecretField]; known && fields[keyspace.SecretField] != "" && fields[keyspace.SecretField] != secret {
			return nil, s.severalSecrets()
		}
		maps.Copy(found, fields)
	}
	if len(found) == 0 {
		return found, missing
	}
	if most := mostShards(recorded); most > 0 {
		found[keyspace.ShardsField] = strconv.Itoa(most)
	}
	return found, nil
}

// recorded returns the fields of the layout that each shard has in its progress. For shards whose master does not answer
// it has none, and missing says why.
func (s *Store) recorded(ctx context.Context) (shards []map[string]string, missing, err error) {
	replies := askShards(ctx, s, s.masters.question, func(key string) *redis.SliceCmd {
		args := []any{"hmget", key}
		for _, field := range keyspace.LayoutFields {
			args = append(args, field)
		}
		return redis.NewSliceCmd(ctx, args...)
	})
	shards = make([]map[string]string, len(s.tags))
	for shard, reply := range replies {
		if err := reply.Err(); err != nil {
			err = fmt.Errorf("read what the shards of namespace %q have recorded of its layout: %w", s.namespace, err)
			if !errors.Is(err, state.ErrUnavailable) {
				return nil, nil, err
			}
			missing = err
			continue
		}
		shards[shard] = map[string]string{}
		for i, value := range reply.Val() {
			if text, ok := value.(string); ok {
				shards[shard][keyspace.LayoutFields[i]] = text
			}
		}
	}
	return shards, missing, nil
}

// CheckLayout compares the namespace with the layout wanted, and learns its secret. It returns a
// layoutError if they differ; a namespace that does not exist yet fits.
func (s *Store) CheckLayout(ctx context.Context) error {
	found, err := s.readLayout(ctx)
	if err != nil {
		return err
	}
	return s.take(found)
}

// take compares a layout with the one wanted, and learns its secret.
func (s *Store) take(found map[string]string) error {
	for what, wanted := range s.layout() {
		if found[what] != "" && found[what] != wanted {
			other := &layoutError{Namespace: s.namespace, What: what, Found: found[what], Wanted: wanted}
			s.other.Store(other)
			return other
		}
	}
	s.other.Store(nil)
	if len(found) == 0 {
		return nil
	}
	if found[keyspace.SecretField] == "" {
		return &layoutError{Namespace: s.namespace, What: keyspace.SecretField, Found: "no"}
	}
	secret, err := state.ParseSecret(found[keyspace.SecretField])
	if err != nil {
		return &layoutError{Namespace: s.namespace, What: keyspace.SecretField, Found: "a damaged"}
	}
	s.secret.Store(&secret)
	to, _ := strconv.ParseInt(found[keyspace.ReshardingField], 10, 64)
	s.resharding.Store(to)
	s.resharded.Store(found[keyspace.OldShardsField] != "")
	return nil
}

// Create makes the namespace if it does not exist, checks its layout and loads the scripts. If the master of the layout
// does not answer and others do, the layout found earlier is used.
func (s *Store) Create(ctx context.Context) error {
	s.searched.Store(false) // other processes may have begun the namespace since
	err := s.CheckLayout(ctx)
	if errors.Is(err, state.ErrUnavailable) && s.secret.Load() != nil && s.down(ctx) == nil {
		return s.loadScripts(ctx)
	}
	if err != nil {
		return err
	}
	if err := s.putLayout(ctx); err != nil {
		return err
	}
	recorded, err := s.readRecorded(ctx)
	if err != nil && !errors.Is(err, state.ErrUnavailable) {
		return err
	}
	if text, ok := recorded[keyspace.SecretField]; ok && text != s.secret.Load().Text() {
		return s.severalSecrets()
	}
	return s.loadScripts(ctx)
}

// severalSecrets is the error for shards that were written with different secrets: some are from an older copy of a server.
func (s *Store) severalSecrets() error {
	return &layoutError{Namespace: s.namespace, What: keyspace.SecretField, Found: "more than one"}
}

// records returns the fields of the layout that shards record as they begin, each with its value. It writes the layout
// first if it was lost, so that all processes agree on it. If its master does not answer, what is known of it stands.
func (s *Store) records(ctx context.Context) (fields []any, err error) {
	if err := s.putLayout(ctx); err != nil && !errors.Is(err, state.ErrUnavailable) {
		return nil, err
	}
	known := s.secret.Load()
	if known == nil {
		return nil, fmt.Errorf("namespace %q has not been created", s.namespace)
	}
	layout := s.layout()
	layout[keyspace.SecretField] = known.Text()
	for _, name := range keyspace.LayoutFields {
		fields = append(fields, name, layout[name])
	}
	return fields, nil
}

// putLayout writes what the layout lacks, with the secret that is known, or else a new one, and corrects what it says of
// shards. Then it learns what the layout has. It writes nothing to a full memory if the layout is there.
func (s *Store) putLayout(ctx context.Context) error {
	stored, err := s.storedLayout(ctx)
	if err != nil {
		return err
	}
	secret := state.NewSecret()
	if known := s.secret.Load(); known != nil {
		secret = *known // the layout may have been lost, but not the state written with the secret
	}
	layout := s.layout()
	layout[keyspace.SecretField] = secret.Text()
	// One call writes all fields: between two, a failover could lose the first. If several processes draw a secret at once,
	// the first secret stays, and the others read it below.
	var lacking []any
	for _, what := range keyspace.LayoutFields {
		if stored[what] == "" {
			lacking = append(lacking, what, layout[what])
		}
	}
	if key := keyspace.LayoutKey(s.namespace); lacking != nil {
		command := redis.NewCmd(ctx, append([]any{"eval", layoutLua, 1, key}, lacking...)...)
		if err := s.sendAbout(ctx, key, command); err != nil {
			return fmt.Errorf("write the layout of namespace %q: %w", s.namespace, err)
		}
	}
	if err := s.correctShards(ctx, stored); err != nil {
		return err
	}
	return s.CheckLayout(ctx)
}

// correctShards writes the store's number of shards into a stored layout that was lost, or is from before the resharding
// to it, and the number before that, whose keys may still be there.
func (s *Store) correctShards(ctx context.Context, stored map[string]string) error {
	before, present := stored[keyspace.ShardsField], strconv.Itoa(len(s.tags))
	if before == present {
		return nil
	}
	if before == "" {
		before = present // written just now
	} else if err := s.followShards(ctx, stored); err != nil || stored[keyspace.ShardsField] != present {
		return err
	}
	old, err := s.predecessors(ctx)
	if err != nil || old == 0 {
		return err
	}
	key := keyspace.LayoutKey(s.namespace)
	if err := s.sendAbout(ctx, key, redis.NewCmd(ctx, "eval", correctLua, 1, key, before, present, old)); err != nil {
		return fmt.Errorf("correct the number of shards in the layout of namespace %q: %w", s.namespace, err)
	}
	return nil
}

// predecessors returns the number of the shards from which those of the store took over; 0 if there are none.
func (s *Store) predecessors(ctx context.Context) (int, error) {
	for old := len(s.tags) / 2; old > 0; old-- {
		if len(s.tags)%old > 0 {
			continue
		}
		if successors, err := s.withShards(old).successors(ctx); err != nil || successors == len(s.tags) {
			return old, err
		}
	}
	return 0, nil
}

func (s *Store) layout() map[string]string {
	return map[string]string{keyspace.FormatField: strconv.Itoa(format), keyspace.ShardsField: strconv.Itoa(len(s.tags)), keyspace.HashingField: s.hashing.Layout()}
}

// maxLayoutAge is after how long the layout is read again: it changes if the namespace was emptied and created again, or
// spread over more shards, while this process ran.
const maxLayoutAge = time.Second

// reshardingAge is the same while the namespace is being spread over more shards. For that long after the switch
// questions are answered from the old shards.
const reshardingAge = 50 * time.Millisecond

// Secret returns the secret with which packed state is hashed. If there was no layout when it was last read, it is read
// again. A zero secret means that there is still none, and so no state was written before. The error is a layoutError if
// the namespace has another layout now.
func (s *Store) Secret(ctx context.Context) (state.Secret, error) {
	if err := s.moved(); err != nil {
		return state.Secret{}, err
	}
	known := s.secret.Load()
	if known == nil {
		if err := s.CheckLayout(ctx); err != nil {
			return state.Secret{}, err
		}
		if known = s.secret.Load(); known == nil {
			return state.Secret{}, nil
		}
	}
	return *known, nil
}

// Seal returns the key with which the namespace proves what it writes to topics.
func (s *Store) Seal(ctx context.Context) (state.Seal, error) {
	if s.seal != nil {
		return *s.seal, nil
	}
	secret, err := s.Secret(ctx)
	if err == nil && secret == (state.Secret{}) {
		err = fmt.Errorf("namespace %q has not been created", s.namespace)
	}
	return secret.Seal(), err
}

// untilRead returns how long the layout that was read last may be used.
func (s *Store) untilRead() time.Duration {
	age := maxLayoutAge
	if s.resharding.Load() > 0 {
		age = reshardingAge
	}
	return time.Until(time.UnixMilli(s.layoutRead.Load()).Add(age))
}

// moved returns a layoutError if the namespace was found to have another layout, so that the keys of this store are no
// longer its keys. It does not wait: if the layout was read too long ago, it is read again in the background.
func (s *Store) moved() error {
	read := s.layoutRead.Load()
	if s.untilRead() <= 0 && s.layoutRead.CompareAndSwap(read, time.Now().UnixMilli()) {
		go func() {
			_ = s.CheckLayout(context.Background()) // it has the deadline of any command, and Ready reports its error
		}()
	}
	if other := s.other.Load(); other != nil {
		return other
	}
	return nil
}
