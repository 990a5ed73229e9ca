package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
)

// How old a replica's state may be is known without trust in its clock or its
// connection. Every master is asked again and again how far its stream of
// replication goes: an offset, noted with the moment before it was asked. With
// the same pipeline that reads state from a replica, and before it, the replica
// is asked how much of that stream it has taken in. The last offset noted that
// it has reached says up to when it has everything, whether it lags, its link is
// cut or its master is dead. Both name the stream by the replication ID, which
// changes when a master is replaced: offsets of two histories are never compared,
// and a replica that was started without its data has none that is known.

const (
	// lookEach is how often masters are asked for their offsets, and replicas that
	// would not do whether they do again. Staleness is known that finely.
	lookEach = 100 * time.Millisecond
	// lookTimeout bounds one look.
	lookTimeout = 500 * time.Millisecond
)

// ReadFromReplicas lets ReadReplica read from the replicas that a client knows
// of each master, as long as nothing read is staler than within. WatchReplicas
// must run.
func ReadFromReplicas(client *redis.ClusterClient, within time.Duration, log *slog.Logger) Option {
	return func(s *Store) {
		s.replicas = &replicas{
			client: client, within: within, log: log, now: time.Now,
			sights: map[string][]sight{}, resting: map[string]*redis.Client{},
		}
		s.masters.nearby = s.replicas.pass
	}
}

// ReadReplica answers all reads as ReadAsIf does, but from replicas where they
// do, and says how old the state may be.
func (s *Store) ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error) {
	if s.replicas == nil {
		return s.readWith(ctx, (*master).ask, reads, pending)
	}
	return s.readWith(ctx, (*master).askNearby, reads, pending)
}

// WatchReplicas looks after what ReadReplica must know until the context ends.
func (s *Store) WatchReplicas(ctx context.Context) {
	var looks sync.WaitGroup
	for _, look := range []func(context.Context){s.lookAtMasters, s.replicas.lookAtResting} {
		looks.Go(func() { again(ctx, look) })
	}
	looks.Wait()
}

// again looks again and again until the context ends.
func again(ctx context.Context, look func(context.Context)) {
	ticker := time.NewTicker(lookEach)
	defer ticker.Stop()
	for {
		bounded, cancel := context.WithTimeout(ctx, lookTimeout)
		look(bounded)
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// lookAtMasters notes how far each master is. One that does not answer is not
// noted: its replicas then grow stale.
func (s *Store) lookAtMasters(ctx context.Context) {
	look := func(ctx context.Context, c redis.Cmdable) error {
		at := s.replicas.now()
		found, err := readStanding(c.Info(ctx, "replication"))
		if err == nil && found.master {
			s.replicas.note(found, at)
		}
		return nil
	}
	if cluster, ok := s.redis.(*redis.ClusterClient); ok {
		_ = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return look(ctx, c) })
		return
	}
	_ = look(ctx, s.redis)
}

// replicas are the servers that may answer in the masters' place.
type replicas struct {
	client *redis.ClusterClient
	within time.Duration
	log    *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	sights map[string][]sight // by replication ID, rising
	// resting are, by address, those that would not do when they were asked last.
	resting map[string]*redis.Client
}

// sight is how far a master was at a moment, at the least.
type sight struct {
	at     time.Time
	offset int64
}

// standing is a server's place in a replication.
type standing struct {
	id     string // of the replication
	offset int64  // up to which the server has everything
	master bool
}

// readStanding reads the reply to INFO replication.
func readStanding(info *redis.StringCmd) (s standing, err error) {
	text, err := info.Result()
	if err != nil {
		return s, err
	}
	fields := infoFields(text)
	s.id, s.master = fields["master_replid"], fields["role"] == "master"
	offset := fields["slave_repl_offset"]
	if s.master {
		offset = fields["master_repl_offset"]
	}
	if s.offset, err = strconv.ParseInt(offset, 10, 64); err != nil || s.id == "" {
		return s, errors.New("INFO replication does not tell how far the server is")
	}
	return s, nil
}

// infoFields are the fields of a reply to INFO.
func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	return fields
}

// note notes how far a master is, and forgets what is too old to be of use.
func (r *replicas) note(s standing, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sights[s.id] = append(r.sights[s.id], sight{at, s.offset})
	for id, list := range r.sights {
		old := 0
		for old < len(list) && at.Sub(list[old].at) > r.within {
			old++
		}
		if r.sights[id] = list[old:]; old == len(list) {
			delete(r.sights, id)
		}
	}
}

// freshness is that of what a server of a standing holds now. The error says why
// it must not answer.
func (r *replicas) freshness(s standing) (f state.Freshness, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, now := r.sights[s.id], r.now()
	if last := len(list) - 1; last < 0 || now.Sub(list[last].at) > r.within {
		return f, fmt.Errorf("no master of its replication was seen for %v", r.within)
	}
	if s.master {
		return f, nil
	}
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].offset > s.offset {
			continue
		}
		if staleness := now.Sub(list[i].at); staleness <= r.within {
			return state.Freshness{Replica: true, Staleness: staleness}, nil
		}
		break
	}
	return f, staleError(r.within)
}

// staleError says that a replica lacks what its master had that long ago.
type staleError time.Duration

func (e staleError) Error() string { return fmt.Sprintf("it is staler than %v", time.Duration(e)) }

// pass sends commands about what a master holds to replicas, and to the master
// those that found none.
func (r *replicas) pass(ctx context.Context, m *master, commands []redis.Cmder) []state.Freshness {
	freshness := make([]state.Freshness, len(commands))
	answered := make([]bool, len(commands))
	var asked sync.WaitGroup
	for server, places := range r.share(ctx, commands) {
		asked.Go(func() {
			f, ok := r.ask(ctx, server, commands, places)
			for _, i := range places {
				freshness[i], answered[i] = f, ok
			}
		})
	}
	asked.Wait()
	var left []redis.Cmder
	for i, c := range commands {
		if !answered[i] {
			left = append(left, c)
		}
	}
	if len(left) > 0 {
		m.send(ctx, m.masters.question, left)
	}
	return freshness
}

// share gives to one replica of each master the places of the commands about
// what that master holds.
func (r *replicas) share(ctx context.Context, commands []redis.Cmder) map[*redis.Client][]int {
	chosen := map[*redis.Client]*redis.Client{} // by master; nil for none
	places := map[*redis.Client][]int{}
	for i, c := range commands {
		key, _ := c.Args()[1].(string)
		master, err := r.client.MasterForKey(ctx, key)
		if err != nil {
			continue
		}
		server, ok := chosen[master]
		if !ok {
			server = r.choose(ctx, key)
			chosen[master] = server
		}
		if server != nil {
			places[server] = append(places[server], i)
		}
	}
	return places
}

// choose is a replica for a key, nil where none was found that does.
func (r *replicas) choose(ctx context.Context, key string) *redis.Client {
	const tries = 4 // each finds any of the replicas
	for range tries {
		server, err := r.client.SlaveForKey(ctx, key)
		if err != nil {
			return nil
		}
		r.mu.Lock()
		_, rests := r.resting[server.Options().NodeAddress]
		known := len(r.sights) > 0
		r.mu.Unlock()
		if known && !rests {
			return server
		}
	}
	return nil
}

// ask sends the commands at some places to a server, and says whether each has
// its reply.
func (r *replicas) ask(ctx context.Context, server *redis.Client, commands []redis.Cmder, places []int) (f state.Freshness, ok bool) {
	pipe := server.Pipeline()
	info := pipe.Info(ctx, "replication") // first: what is read after it is no older
	for _, i := range places {
		_ = pipe.Process(ctx, commands[i])
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	f, err := r.judge(info)
	if err != nil {
		r.rest(server, err)
		return f, false
	}
	for _, i := range places {
		if err := commands[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			return state.Freshness{}, false
		}
	}
	return f, true
}

func (r *replicas) judge(info *redis.StringCmd) (state.Freshness, error) {
	s, err := readStanding(info)
	if err != nil {
		return state.Freshness{}, err
	}
	return r.freshness(s)
}

// rest leaves a server alone until it does again.
func (r *replicas) rest(server *redis.Client, why error) {
	address := server.Options().NodeAddress
	r.mu.Lock()
	_, rests := r.resting[address]
	r.resting[address] = server
	r.mu.Unlock()
	if !rests {
		r.log.Warn("a replica is not read", "address", address, "error", why)
	}
}

// lookAtResting finds those that do again.
func (r *replicas) lookAtResting(ctx context.Context) {
	r.mu.Lock()
	resting := maps.Clone(r.resting)
	r.mu.Unlock()
	var looks sync.WaitGroup
	for address, server := range resting {
		looks.Go(func() {
			_, err := r.judge(server.Info(ctx, "replication"))
			gone := errors.Is(err, redis.ErrClosed) // the client has left a server that is no replica any more
			if err != nil && !gone {
				return
			}
			r.mu.Lock()
			delete(r.resting, address)
			r.mu.Unlock()
			if !gone {
				r.log.Info("a replica is read again", "address", address)
			}
		})
	}
	looks.Wait()
}
