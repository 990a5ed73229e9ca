// Package redisstore keeps state in Redis. Its name differs from its folder's because its callers
// often import the client too.
//
// The state of an entity in a group of series is packed into one string; see package state/packed. Writes append to it;
// reads read all of it. Once it has grown, it is compacted, which changes no answer.
//
// State is spread over shards by the hash of the entity. One script call applies the mutations of one shard in a batch
// and moves, in the same step, the shard's progress: for each partition the next offset to apply. State and progress
// are therefore always consistent after kills, repeated requests, failovers and restores; see writer.Apply.
//
// Reading takes one pipeline and never writes.
package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/protocol"
	"github.com/weir-stream/weir/store/redis/inspector"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// format is the version of the layout of keys and values.
const format = 15

//go:embed candidate.lua
var candidateLua string

//go:embed apply.lua
var applyBody string

//go:embed compact.lua
var compactBody string

var applyLua, compactLua = candidateLua + applyBody, candidateLua + compactBody

var _ store.Store = (*Store)(nil)

// Store is the state of one namespace. It is safe for concurrent use.
type Store struct {
	*inspector.Inspector
	*protocol.Protocol
	redis       redis.UniversalClient
	namespace   string
	tags        []string // by shard
	apply       *redis.Script
	compact     *redis.Script
	masters     *masters
	replicas    *replicas                    // nil if everything is read from masters
	secret      atomic.Pointer[state.Secret] // nil until a layout was found
	layoutRead  atomic.Int64                 // when the layout was last read, in milliseconds since 1970
	searching   sync.Mutex                   // see searchOnce
	searched    atomic.Bool                  // no shard had begun
	other       atomic.Pointer[layoutError]  // the namespace has another layout than this store
	resharded   atomic.Bool                  // the keys of the shards before a resharding are not yet deleted
	resharding  atomic.Int64                 // the number of shards that the namespace is being spread over; 0 if it is not
	halted      atomic.Pointer[halted]       // shards that lack keys; nil if none does
	hashing     *keyspace.Hashing            // nil if keys contain the entities themselves
	seal        *state.Seal                  // nil for one of the namespace's secret
	written     sync.Once                    // makes what writers share
	expiry      []expiry                     // by shard
	slack       time.Duration
	noteEmptied func(keys int64)
	servers     serverWatch

	callMutations int // see CallMutations
}

// Option configures a store.
type Option func(*Store)

// HashEntities makes keys contain hashes of entities, keyed with a secret; a nil secret leaves
// entities readable. State itself, such as the members of a set, stays readable.
func HashEntities(secret []byte) Option {
	return func(s *Store) {
		if secret != nil {
			s.hashing = keyspace.NewHashing(secret)
		}
	}
}

// SealWith makes the store's seal one of a secret that namespaces share; a nil secret leaves each its own.
func SealWith(secret []byte) Option {
	return func(s *Store) {
		if secret != nil {
			seal := state.NewSeal(secret)
			s.seal = &seal
		}
	}
}

// CallMutations bounds the mutations that one script call applies, by default 1,500: Redis serves nobody else during a
// call.
func CallMutations(most int) Option { return func(s *Store) { s.callMutations = most } }

// New returns the store of a namespace with a number of shards: its current number, which Adopt finds out, or the
// number for a new namespace.
func New(client redis.UniversalClient, namespace string, shards int, options ...Option) *Store {
	s := &Store{
		redis: client, namespace: namespace, slack: defaultSlack, masters: newMasters(client),
		apply: redis.NewScript(applyLua), compact: redis.NewScript(compactLua), noteEmptied: func(int64) {}, callMutations: defaultCallMutations,
		servers: serverWatch{note: func(ServerNote) {}},
	}
	for _, option := range options {
		option(s)
	}
	s.spread(shards)
	return s
}

// History is that of the protocol. It is superseded once a connection is opened: state that is read over it may be that of a
// server that was restarted, or of a replica that was promoted.
func (s *Store) History(ctx context.Context) (*state.History, error) {
	return s.HistoryWhile(ctx, s.masters.connected.Load)
}

// spread sets the number of shards.
func (s *Store) spread(shards int) {
	s.tags = nil
	for shard := range shards {
		s.tags = append(s.tags, keyspace.ShardTag(s.namespace, shard, shards))
	}
	s.Inspector = inspector.New(s.redis, s.namespace, s.tags, s.hashing, s.slack)
	s.Protocol = protocol.New(records{s}, s.shardOf, s.slack, time.Now)
}

// search returns what a shard has recorded of the layout, whatever the number of shards; nothing if none has begun. It
// asks the first shard of each possible number, and another one, which may have been lost less: in a cluster the last,
// because the master of the first may have been lost with the layout, else the second. Several numbers may have the same
// first tag, so what counts is the number that is recorded: the least, because the shards of a greater one may not have
// taken over yet. A master that does not answer may have what is searched.
func (s *Store) search(ctx context.Context) (found map[string]string, err error) {
	some := &Store{namespace: s.namespace, masters: s.masters}
	ask := func(shard func(shards int) int) {
		for shards := 2; shards <= keyspace.Slots; shards++ {
			some.tags = append(some.tags, keyspace.ShardTag(s.namespace, shard(shards), shards))
		}
	}
	some.tags = append(some.tags, keyspace.ShardTag(s.namespace, 0, 1))
	ask(func(int) int { return 0 })
	if s.masters.cluster == nil {
		ask(func(int) int { return 1 })
	} else {
		ask(func(shards int) int { return shards - 1 })
	}
	some.tags = slices.Compact(some.tags) // equal ones follow each other: 181 are left of the first shards, 314 of the second
	recorded, missing, err := some.recorded(ctx)
	if err = cmp.Or(err, missing); err != nil {
		return nil, err
	}
	for _, fields := range recorded {
		if len(fields) > 0 && (found == nil || shardsIn(fields) < shardsIn(found)) {
			found = fields
		}
	}
	return found, s.followShards(ctx, found)
}

// searchOnce is search until no shard has begun. What other processes begin then has a layout, which is read each second. Many
// questions may be asked about a namespace that does not exist yet: one of them searches, and the others wait for it.
func (s *Store) searchOnce(ctx context.Context) (found map[string]string, err error) {
	s.searching.Lock()
	defer s.searching.Unlock()
	if s.searched.Load() {
		return nil, nil
	}
	found, err = s.search(ctx)
	s.searched.Store(err == nil && found == nil)
	return found, err
}

// appendEntityKey appends the key of an entity's state in a group.
func (s *Store) appendEntityKey(dst []byte, shard int, group string, entity []byte) []byte {
	return s.hashing.AppendKey(dst, s.tags[shard], group, entity)
}

// Shards returns the number of state shards.
func (s *Store) Shards() int { return len(s.tags) }

// ShardOf returns which of a number of shards an update is applied to.
func (s *Store) ShardOf(u *state.EntityUpdate, shards int) int {
	return s.hashing.Shard(u.Entity, u.Hash, shards)
}

// loadScripts loads the scripts on every master that answers. A master that does not answer gets them later, when it
// replies that it does not know the script. A master may just have been started, see mendAppendOnly. It fails if no
// master answers.
func (s *Store) loadScripts(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.masters.write)
	defer cancel()
	all, err := s.masters.all(ctx, s.tags)
	if err != nil {
		return fmt.Errorf("load the scripts: %w", err)
	}
	errs := make([]error, len(all))
	var loading sync.WaitGroup
	for i, m := range all {
		loading.Go(func() { errs[i] = loadScriptsOn(ctx, m) })
	}
	loading.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, state.ErrUnavailable) {
			return fmt.Errorf("load the scripts: %w", err)
		}
	}
	if !slices.Contains(errs, nil) {
		return fmt.Errorf("load the scripts: %w", errs[0])
	}
	return nil
}

func loadScriptsOn(ctx context.Context, m *master) error {
	if err := m.err(); err != nil {
		return err
	}
	mendAppendOnly(ctx, m.node)
	pipe := m.node.Pipeline()
	apply, compact := pipe.ScriptLoad(ctx, applyLua), pipe.ScriptLoad(ctx, compactLua)
	_, _ = pipe.Exec(ctx) // each command has its own error
	if err := errors.Join(apply.Err(), compact.Err()); err != nil {
		if unanswered(apply.Err()) || passing(apply.Err()) {
			return &unavailableError{Address: m.address, Since: m.masters.now(), Err: err}
		}
		return err
	}
	return nil
}

// scriptGone reports whether a server does not know the script.
func scriptGone(err error) bool {
	return err != nil && strings.Contains(err.Error(), "NOSCRIPT")
}

// A crash may tear the append-only file inside what a script has written, which is logged as MULTI … EXEC. Redis
// (7.0.15, as tested) then truncates the file after the last whole command and continues to append: the MULTI stays
// open. When the file is read a second time, the commands queued after it merge with later ones, so that a batch that
// was applied again counts twice. When it begins to rewrite the file, Redis goes on in a new one, so the MULTI ends where
// the old one does: a second crash, even while the file is rewritten, takes back what was queued and nothing else.

// mendAppendOnly makes a server rewrite its append-only file if it has not done so since it was started. It comes before
// the scripts are loaded, because from then on every process may write with them. A server that does not allow it is left
// unchanged; weir doctor reports that.
func mendAppendOnly(ctx context.Context, c redis.Cmdable) {
	if info, err := c.Info(ctx, "persistence").Result(); err == nil && rewriteNeeded(info) {
		_ = c.BgRewriteAOF(ctx).Err() // one that is under way, or not allowed
	}
}

// rewriteNeeded reports, from a server's INFO, whether its append-only file may still have the content that it read
// when it was started.
func rewriteNeeded(info string) bool {
	found := infoFields(info)
	return found["aof_enabled"] == "1" && found["aof_last_rewrite_time_sec"] == "-1" &&
		found["aof_rewrite_in_progress"] == "0" && found["aof_rewrite_scheduled"] == "0"
}
