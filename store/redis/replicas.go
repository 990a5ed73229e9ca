package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
)

// The age of a replica's state is known without trusting its clock or its connection. Every master is asked regularly
// for its replication offset, which is noted with the moment before the request. The pipeline that reads state from a
// replica first asks it how far it has replicated. The last noted offset that it has reached tells up to when it has
// everything, also if it lags, its link is cut or its master is dead. Both sides name the stream by the replication ID,
// which changes when a master is replaced. So offsets of two histories are never compared, and a replica that was
// started without its data has no known offset.
//
// A replica hides keys that have expired by its own clock, whatever its master says. So it is not read while its clock is
// ahead of the master's.

const (
	// lookEach is how often masters are asked for their offsets, and unusable replicas are tried again. This is the
	// precision of the staleness.
	lookEach = 100 * time.Millisecond
	// lookTimeout bounds one request.
	lookTimeout = 500 * time.Millisecond
	// maxAhead is how far the clock of a replica that is read may be ahead of its master's: half of the least slack with
	// which keys expire (see Slack), so the time that requests take does not matter.
	maxAhead = 30 * time.Second
)

// ReadFromReplicas lets ReadReplica read from the replicas that a client knows of each master, as
// long as they are not staler than within. watchReplicas must run.
func ReadFromReplicas(client *redis.ClusterClient, within time.Duration, log *slog.Logger) Option {
	return func(s *Store) {
		s.replicas = &replicas{
			client: client, within: within, log: log, now: time.Now,
			sights: map[string][]sight{}, resting: map[string]*redis.Client{},
		}
		s.masters.askReplicas = s.replicas.exec
	}
}

// ReadReplica answers all reads like ReadOverlay, but from replicas if they are usable, and returns how old the state
// may be.
func (s *Store) ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error) {
	if s.replicas == nil {
		return s.readWith(ctx, (*master).ask, reads, pending)
	}
	return s.readWith(ctx, (*master).askReplicas, reads, pending)
}

// watchReplicas tracks what ReadReplica needs until the context ends.
func (s *Store) watchReplicas(ctx context.Context) {
	var looks sync.WaitGroup
	for _, look := range []func(context.Context){s.lookAtMasters, s.replicas.lookAtResting} {
		looks.Go(func() { again(ctx, look) })
	}
	looks.Wait()
}

// again calls look regularly until the context ends.
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

// lookAtMasters notes the offset of each master. One that does not answer is not noted, so its
// replicas become stale.
func (s *Store) lookAtMasters(ctx context.Context) {
	if cluster, ok := s.redis.(*redis.ClusterClient); ok {
		_ = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			pipe := c.Pipeline()
			asked, nodes := s.replicas.inquire(ctx, pipe), pipe.ClusterNodes(ctx)
			_, _ = pipe.Exec(ctx) // each command has its own error
			if nodes.Err() == nil {
				s.replicas.look(asked, slotLeaves(nodes.Val()))
			}
			return nil
		})
		return
	}
	pipe := s.redis.Pipeline()
	asked := s.replicas.inquire(ctx, pipe)
	_, _ = pipe.Exec(ctx)
	s.replicas.look(asked, false)
}

// slotLeaves reports whether the keys of a slot are moving to another master, from the reply to CLUSTER NODES of the
// master that they leave. It marks the slot as [slot->-node].
func slotLeaves(nodes string) bool {
	for line := range strings.Lines(nodes) {
		if fields := strings.Fields(line); len(fields) > 2 && strings.HasPrefix(fields[2], "myself") {
			return slices.ContainsFunc(fields, func(f string) bool { return f[0] == '[' && strings.Contains(f, "->-") })
		}
	}
	return false
}

// look notes the standing of a server, if it is a master.
func (r *replicas) look(asked inquiry, slotLeaves bool) {
	if found, err := asked.standing(); err == nil && found.master {
		r.note(found, asked.at, slotLeaves)
	}
}

// replicas holds the servers that may answer in place of the masters.
type replicas struct {
	client *redis.ClusterClient
	within time.Duration
	log    *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	sights map[string][]sight // by replication ID, ascending
	// resting holds, by address, the servers that were unusable when last asked.
	resting map[string]*redis.Client
}

// sight is a lower bound of a master's offset at a moment.
type sight struct {
	at         time.Time
	offset     int64
	ahead      time.Duration
	slotLeaves bool // key by key, to another master
}

// standing is the position of a server in a replication.
type standing struct {
	id     string // of the replication
	offset int64  // the server has everything up to here
	master bool
	ahead  time.Duration // of its clock, compared with that of this machine
}

// inquiry asks a server for its standing.
type inquiry struct {
	at    time.Time // before it was sent
	info  *redis.StringCmd
	clock *redis.TimeCmd
}

func (r *replicas) inquire(ctx context.Context, pipe redis.Pipeliner) inquiry {
	return inquiry{r.now(), pipe.Info(ctx, "replication"), pipe.Time(ctx)}
}

// standing reads the replies.
func (i *inquiry) standing() (s standing, err error) {
	text, err := i.info.Result()
	if err != nil {
		return s, err
	}
	clock, err := i.clock.Result()
	if err != nil {
		return s, err
	}
	s.ahead = clock.Sub(i.at)
	fields := infoFields(text)
	s.id, s.master = fields["master_replid"], fields["role"] == "master"
	offset := fields["slave_repl_offset"]
	if s.master {
		offset = fields["master_repl_offset"]
	}
	if s.offset, err = strconv.ParseInt(offset, 10, 64); err != nil || s.id == "" {
		return s, errors.New("INFO replication does not say how far the server is")
	}
	return s, nil
}

// infoFields returns the fields of a reply to INFO.
func infoFields(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	return fields
}

// note records a master's offset, and drops those that are too old to be useful.
func (r *replicas) note(s standing, at time.Time, slotLeaves bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sights[s.id] = append(r.sights[s.id], sight{at, s.offset, s.ahead, slotLeaves})
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

// freshness returns the freshness of the data of a server with a standing. It fails if the server must not answer.
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
	if slices.ContainsFunc(list, func(seen sight) bool { return seen.slotLeaves }) {
		return f, errSlotLeaves
	}
	if ahead := s.ahead - list[len(list)-1].ahead; ahead > maxAhead {
		return f, fmt.Errorf("its clock is %v ahead of its master's, and keys expire by it", ahead.Round(time.Second))
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

// errSlotLeaves is the error for a replica whose master gives away a slot key by key, or did lately. It lacks the keys that
// have moved, and, unlike its master, does not say so: it does not know that the slot moves, and may learn later than its
// master who has it then.
var errSlotLeaves = errors.New("the keys of a slot are moving from its master to another one")

// staleError is the error for a replica that lacks what its master had that long ago.
type staleError time.Duration

func (e staleError) Error() string { return fmt.Sprintf("it is staler than %v", time.Duration(e)) }

// exec sends commands about a master's keys to replicas, and those without a replica to the master.
func (r *replicas) exec(ctx context.Context, m *master, commands []redis.Cmder) []state.Freshness {
	freshness := make([]state.Freshness, len(commands))
	answered := make([]bool, len(commands))
	var asked sync.WaitGroup
	for server, indices := range r.share(ctx, commands) {
		asked.Go(func() {
			f, ok := r.ask(ctx, server, commands, indices)
			for _, i := range indices {
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
		m.sendEach(ctx, m.masters.question, left)
	}
	return freshness
}

// share assigns the commands about each master's keys to one of its replicas.
func (r *replicas) share(ctx context.Context, commands []redis.Cmder) map[*redis.Client][]int {
	chosen := map[*redis.Client]*redis.Client{} // by master; nil for none
	indices := map[*redis.Client][]int{}
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
			indices[server] = append(indices[server], i)
		}
	}
	return indices
}

// choose returns a usable replica for a key, nil if none was found.
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

// ask sends the commands with some indices to a server, and reports for each whether it was answered.
func (r *replicas) ask(ctx context.Context, server *redis.Client, commands []redis.Cmder, indices []int) (f state.Freshness, ok bool) {
	pipe := server.Pipeline()
	asked := r.inquire(ctx, pipe) // first: what is read afterwards is not older
	for _, i := range indices {
		_ = pipe.Process(ctx, commands[i])
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	f, err := r.freshnessOf(asked)
	if err != nil {
		r.rest(server, err)
		return f, false
	}
	for _, i := range indices {
		if err := commands[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			return state.Freshness{}, false
		}
	}
	return f, true
}

func (r *replicas) freshnessOf(asked inquiry) (state.Freshness, error) {
	s, err := asked.standing()
	if err != nil {
		return state.Freshness{}, err
	}
	return r.freshness(s)
}

// judge asks a server how fresh its data are. It fails if it must not answer.
func (r *replicas) judge(ctx context.Context, server *redis.Client) (state.Freshness, error) {
	pipe := server.Pipeline()
	asked := r.inquire(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command has its own error
	return r.freshnessOf(asked)
}

// rest leaves a server alone until it is usable again.
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

// lookAtResting finds the servers that are usable again.
func (r *replicas) lookAtResting(ctx context.Context) {
	r.mu.Lock()
	resting := maps.Clone(r.resting)
	r.mu.Unlock()
	var looks sync.WaitGroup
	for address, server := range resting {
		looks.Go(func() {
			_, err := r.judge(ctx, server)
			gone := errors.Is(err, redis.ErrClosed) // the client has dropped a server that is no longer a replica
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
