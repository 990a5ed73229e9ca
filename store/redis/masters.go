package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/breaker"
)

// Each master has its own pipelines, deadline and circuit breaker: a master that hangs does not delay questions to the
// others.

// unavailableError is the error for a master that does not answer. It is a state.ErrUnavailable.
type unavailableError struct {
	Address string
	Since   time.Time // of the first call without an answer
	Err     error
}

func (e *unavailableError) Error() string {
	return fmt.Sprintf("Redis master %s has not answered since %s: %v", e.Address, e.Since.UTC().Format(time.RFC3339), e.Err)
}

func (e *unavailableError) Unwrap() []error { return []error{state.ErrUnavailable, e.Err} }

// Deadlines bounds the calls to one master: the calls of questions, and the calls that write or maintain. Both are 2
// seconds by default.
func Deadlines(question, write time.Duration) Option {
	return func(s *Store) { s.masters.question, s.masters.write = question, write }
}

// NoteMasters calls a function when a master no longer answers and, with a nil error, when it does
// again. The function must not block.
func NoteMasters(note func(address string, err error)) Option {
	return func(s *Store) { s.masters.note = note }
}

// masters are all masters of a deployment: a single one, or a cluster's.
type masters struct {
	client          redis.UniversalClient
	cluster         *redis.ClusterClient // nil if there is only one master
	only            *master              // if there is only one
	question, write time.Duration
	note            func(address string, err error)
	// askReplicas sends a question's commands to replicas of a master if they may answer, else to the
	// master; nil if everything is read from masters.
	askReplicas func(ctx context.Context, m *master, commands []redis.Cmder) []state.Freshness
	now         func() time.Time
	sleep       func(time.Duration)
	connected   atomic.Int64 // connections that were opened

	mu   sync.RWMutex
	each map[*redis.Client]*master
}

const defaultDeadline = 2 * time.Second

func newMasters(client redis.UniversalClient) *masters {
	ms := &masters{
		client: client, question: defaultDeadline, write: defaultDeadline, note: func(string, error) {},
		now: time.Now, sleep: time.Sleep, each: map[*redis.Client]*master{},
	}
	if cluster, ok := client.(*redis.ClusterClient); ok {
		ms.cluster = cluster
	} else {
		ms.only = ms.newMaster(client, addressOf(client))
	}
	return ms
}

// dialCounter is a hook that counts the connections that a client opens.
type dialCounter struct{ opened *atomic.Int64 }

func (c dialCounter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := next(ctx, network, address)
		if err == nil {
			c.opened.Add(1)
		}
		return connection, err
	}
}

func (dialCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (dialCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func addressOf(client redis.UniversalClient) string {
	if c, ok := client.(*redis.Client); ok {
		return c.Options().Addr
	}
	return "the server"
}

// of returns the master that holds a key. It fails if the cluster's slots are unknown.
func (ms *masters) of(ctx context.Context, key string) (*master, error) {
	if ms.only != nil {
		return ms.only, nil
	}
	node, err := ms.cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, &unavailableError{Address: "of the cluster", Since: ms.now(), Err: err}
	}
	ms.mu.RLock()
	m := ms.each[node]
	ms.mu.RUnlock()
	if m != nil {
		return m, nil
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if m = ms.each[node]; m == nil {
		m = ms.newMaster(node, node.Options().Addr)
		ms.each[node] = m
	}
	return m, nil
}

// all returns the masters that hold some keys.
func (ms *masters) all(ctx context.Context, keys []string) (list []*master, err error) {
	for _, key := range keys {
		m, err := ms.of(ctx, key)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list, nil
}

// forget drops a master that left the cluster.
func (ms *masters) forget(gone *master) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for node, m := range ms.each {
		if m == gone {
			delete(ms.each, node)
		}
	}
}

// master is one of the masters.
type master struct {
	masters      *masters
	address      string
	node         redis.UniversalClient // a client of this master only
	breaker      breaker.Breaker
	reads        gatherer // of questions
	replicaReads gatherer // of questions that its replicas may answer
}

func (ms *masters) newMaster(node redis.UniversalClient, address string) *master {
	node.AddHook(dialCounter{&ms.connected})
	ms.connected.Add(1) // a server that is asked for the first time may have connections already, opened to ask for the slots
	m := &master{masters: ms, address: address, node: node, breaker: breaker.Breaker{Now: ms.now}}
	m.reads.exec = func(ctx context.Context, commands []redis.Cmder) []state.Freshness {
		m.sendEach(ctx, ms.question, commands)
		return nil
	}
	m.replicaReads.exec = func(ctx context.Context, commands []redis.Cmder) []state.Freshness {
		return ms.askReplicas(ctx, m, commands)
	}
	return m
}

// ask sends commands of a question to the master, askReplicas to its replicas if they may answer.
func (m *master) ask(commands []redis.Cmder) gathered         { return m.reads.do(commands) }
func (m *master) askReplicas(commands []redis.Cmder) gathered { return m.replicaReads.do(commands) }

// err returns why the master is not asked, or nil if it is.
func (m *master) err() error {
	since, cause := m.breaker.Refusal()
	if cause == nil {
		return nil
	}
	return &unavailableError{Address: m.address, Since: since, Err: cause}
}

// sendEach is send for any number of commands, with several pipelines if necessary, each of which has that time.
func (m *master) sendEach(ctx context.Context, within time.Duration, commands []redis.Cmder) {
	for some := range pipelines(commands) {
		m.send(ctx, within, some)
	}
}

// send sends commands in one pipeline, each of which then has its own error: an *unavailableError
// if the master did not answer in time.
func (m *master) send(ctx context.Context, within time.Duration, commands []redis.Cmder) {
	if err := m.err(); err != nil {
		setErrors(commands, err)
		return
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	m.exec(bounded, commands)
	if ctx.Err() != nil {
		return // the caller's context ended, not the master's time
	}
	for _, c := range commands {
		if err := c.Err(); unanswered(err) || loading(err) {
			m.fail(err)
			break
		}
	}
	for _, c := range commands {
		if err := c.Err(); unanswered(err) || passing(err) {
			c.SetErr(&unavailableError{Address: m.address, Since: m.masters.now(), Err: err})
		}
	}
}

// exec sends commands, each of which then has its own error, through the cluster's client, which
// follows slots that move.
func (m *master) exec(ctx context.Context, commands []redis.Cmder) {
	if len(commands) == 1 {
		_ = m.masters.client.Process(ctx, commands[0])
		return
	}
	if m.masters.cluster == nil {
		pipeline(ctx, m.masters.client, commands)
		return
	}
	pipelineOnce(ctx, m.masters.cluster, commands)
	// Connections that a server has closed fail when they are used.
	lost := slices.DeleteFunc(slices.Clone(commands), func(c redis.Cmder) bool { return !unanswered(c.Err()) })
	if len(lost) > 0 && ctx.Err() == nil {
		pipelineOnce(ctx, m.masters.cluster, lost)
	}
}

func setErrors(commands []redis.Cmder, err error) {
	for _, c := range commands {
		c.SetErr(err)
	}
}

// fail opens the breaker, and starts the probes that close it.
func (m *master) fail(cause error) {
	if m.breaker.Failed(cause) {
		m.masters.note(m.address, cause)
		go m.probe()
	}
}

// probe asks the master repeatedly, until it answers or the client is closed.
func (m *master) probe() {
	for {
		m.masters.sleep(m.breaker.UntilProbe())
		if !m.breaker.HalfOpen() {
			continue
		}
		if m.masters.cluster != nil {
			// A replica may have replaced it.
			m.masters.cluster.ReloadState(context.Background())
		}
		ctx, cancel := context.WithTimeout(context.Background(), breaker.LongestProbe)
		err := m.node.Ping(ctx).Err()
		cancel()
		if errors.Is(err, redis.ErrClosed) {
			m.masters.forget(m)
			return
		}
		if m.breaker.Probed(err) {
			m.masters.note(m.address, nil)
			return
		}
	}
}

// send sends commands, each about a shard, to the masters of the shards concurrently. Each command
// then has its own error.
func (s *Store) send(ctx context.Context, within time.Duration, commands []redis.Cmder, shard func(i int) int) {
	var order []*master
	shares := map[*master][]redis.Cmder{}
	for i, c := range commands {
		m, err := s.masters.of(ctx, s.tags[shard(i)])
		if err != nil {
			c.SetErr(err)
			continue
		}
		if shares[m] == nil {
			order = append(order, m)
		}
		shares[m] = append(shares[m], c)
	}
	var sending sync.WaitGroup
	for i, m := range order {
		if i == len(order)-1 {
			m.sendEach(ctx, within, shares[m]) // a single master needs no goroutine
			break
		}
		sending.Go(func() { m.sendEach(ctx, within, shares[m]) })
	}
	sending.Wait()
	for i, c := range commands {
		if err := c.Err(); frozen(err) {
			if lacks := s.halted.Load().at(shard(i)); lacks != nil {
				c.SetErr(lacks)
			}
		}
	}
}

// sendAbout sends a command about a key of the whole namespace to its master. It returns the
// command's error.
func (s *Store) sendAbout(ctx context.Context, key string, command redis.Cmder) error {
	m, err := s.masters.of(ctx, key)
	if err != nil {
		return err
	}
	m.send(ctx, s.masters.write, []redis.Cmder{command})
	return command.Err()
}

// Available returns nil if the master of a shard answers and the shard has all keys, as far as is known; else an error
// that is a state.ErrUnavailable.
func (s *Store) Available(ctx context.Context, shard int) error {
	if err := s.halted.Load().at(shard); err != nil {
		return err
	}
	m, err := s.masters.of(ctx, s.tags[shard])
	if err != nil {
		return err
	}
	return m.err()
}

// down returns why no shard can be reached; nil if some master answers.
func (s *Store) down(ctx context.Context) (err error) {
	for shard := range s.tags {
		if err = s.Available(ctx, shard); err == nil {
			return nil
		}
	}
	return err
}

// Unavailable lists the masters that do not answer, by address, and the number of shards of each.
func (s *Store) Unavailable(ctx context.Context) (list []unavailableMaster) {
	for shard := range s.tags {
		var e *unavailableError
		if !errors.As(s.Available(ctx, shard), &e) {
			continue
		}
		i := slices.IndexFunc(list, func(u unavailableMaster) bool { return u.Err.Address == e.Address })
		if i < 0 {
			i = len(list)
			list = append(list, unavailableMaster{Err: e})
		}
		list[i].Shards++
	}
	slices.SortFunc(list, func(a, b unavailableMaster) int { return cmp.Compare(a.Err.Address, b.Err.Address) })
	return list
}

// ShardsByMaster returns the number of shards of each master that has any, by address.
func (s *Store) ShardsByMaster(ctx context.Context) (map[string]int, error) {
	held := map[string]int{}
	for _, tag := range s.tags {
		m, err := s.masters.of(ctx, tag)
		if err != nil {
			return nil, err
		}
		held[m.address]++
	}
	return held, nil
}

// unavailableMaster is a master that does not answer.
type unavailableMaster struct {
	Err    *unavailableError
	Shards int // on the master
}

// partlyDown is the error if some masters do not answer, and others do.
type partlyDown struct{ masters []unavailableMaster }

func (e *partlyDown) Error() string {
	var parts []string
	for _, m := range e.masters {
		parts = append(parts, fmt.Sprintf("%v: entities of its %d state shards are UNAVAILABLE", m.Err, m.Shards))
	}
	return strings.Join(parts, "; ")
}

func (e *partlyDown) Unwrap() error { return state.ErrUnavailable }

// Degraded reports that questions about other entities can still be answered.
func (e *partlyDown) Degraded() bool { return true }

// Ready returns nil if the namespace can be used. Its error is a *layoutError, or says that Redis cannot be reached. It
// has a method Degraded if only some masters cannot be reached, or shards lack keys.
func (s *Store) Ready(ctx context.Context) error {
	err := s.CheckLayout(ctx)
	if err != nil && !errors.Is(err, state.ErrUnavailable) {
		return err
	}
	if list := s.Unavailable(ctx); len(list) > 0 && s.down(ctx) == nil {
		return &partlyDown{list}
	}
	if lacking := s.halted.Load(); err == nil && lacking != nil {
		return lacking.err
	}
	return err
}
