package integration_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// shards is the default number of shards.
var shards = config.Default().Shards

// scene is a broker and a Redis namespace for processes of Weir, and the model of all events
// written.
type scene struct {
	t        testing.TB
	broker   *kafkatest.Broker
	kafka    *kafka.Client
	producer *producer
	store    *redisstore.Namespace
	group    string
	settings []string // of every process
	started  []*weir
	kills    int

	began    time.Time
	registry *features.Registry
	model    *model.Model
	earlier  *earlier
	known    map[string]bool // places of the records in the model
	written  int64           // records in the log, aborted ones included
	most     int64           // the most offsets seen applied
	poison   []string        // places of the records that must become dead letters
	clock    int64           // the greatest timestamp of a committed record, in ms
}

// definitions returns the shipped features and those of testdata/functions.yaml.
func definitions(t testing.TB) []string {
	t.Helper()
	var paths []string
	for _, path := range []string{"../config/features", "testdata/functions.yaml"} {
		absolute, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, absolute)
	}
	return paths
}

// newScene makes a scene with a broker of its own, the topics, and a Redis that processes reach
// with the settings.
func newScene(t testing.TB, client redis.UniversalClient, settings ...string) *scene {
	t.Helper()
	return newSceneOf(t, client, definitions(t), settings...)
}

// newSceneOf is newScene with other definitions.
func newSceneOf(t testing.TB, client redis.UniversalClient, paths []string, settings ...string) *scene {
	t.Helper()
	registry, err := definition.Load(paths...)
	if err != nil {
		t.Fatal(err)
	}
	broker := kafkatest.New(t, kafkatest.Options{})
	createTopics(t, broker)
	namespace := testkit.Namespace(t)
	return &scene{
		t: t, broker: broker, kafka: broker.Client(), producer: newProducer(t, broker),
		store: redisstore.NewNamespace(redisstore.New(client, namespace, shards)), group: namespace,
		began: time.Now(), registry: registry, model: model.New(registry), known: map[string]bool{},
		settings: append([]string{
			"--namespace", namespace, "--features", strings.Join(paths, ","),
			"--kafka.brokers", strings.Join(broker.Addrs(), ","), "--kafka.group", namespace,
			"--kafka.session_timeout", "2s", "--kafka.heartbeat_interval", "300ms", "--kafka.rebalance_timeout", "10s",
			"--processor.commit_interval", "100ms", "--processor.batch.max_events", "500",
			"--api.timeout", "30s", // comparisons ask big questions, and the machine may be busy
		}, settings...),
	}
}

// start starts a process in a role; settings in more override the scene's.
func (s *scene) start(role string, more ...string) *weir {
	s.t.Helper()
	settings := slices.Clone(s.settings)
	if slices.Contains(more, "--features") { // it would add to the scene's
		at := slices.Index(settings, "--features")
		settings = slices.Delete(settings, at, at+2)
	}
	w := startWeir(s.t, slices.Concat([]string{"--roles", role}, settings, more)...)
	s.started = append(s.started, w)
	return w
}

// kill ends servers or processes with SIGKILL.
func (s *scene) kill(victims ...interface{ Kill() }) {
	s.t.Helper()
	for _, v := range victims {
		v.Kill()
		s.kills++
	}
}

// restore kills a Redis server and starts it with an older copy of its data.
func (s *scene) restore(server *redistest.Server, older redistest.Copy) {
	s.t.Helper()
	server.RestoreCopy(older)
	s.kills++
}

// rewinds returns how often the processes together have found that Redis went back in time.
func (s *scene) rewinds() (n int) {
	for _, w := range s.started {
		n += w.rewinds()
	}
	return n
}

// write writes the events with how, and applies them to the model.
func (s *scene) write(events []generate.Event, how func([]generate.Event) ([]*kgo.Record, error)) error {
	records, err := how(events)
	if err != nil {
		return err
	}
	s.written += int64(len(records))
	for i, r := range records {
		if err := s.apply(r); (err != nil) != events[i].Poison {
			return fmt.Errorf("event %s is poison: %v; the model says %w", events[i].Value, events[i].Poison, err)
		}
	}
	return nil
}

// apply applies a record to the model; an error means that it is poison.
func (s *scene) apply(r *kgo.Record) error {
	at := place(r.Topic, r.Partition, r.Offset)
	s.known[at] = true
	written := record.Record{
		Partition: state.Partition{Topic: r.Topic, ID: r.Partition}, Offset: r.Offset,
		Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value,
	}
	s.earlier.apply(&written)
	if err := s.model.Apply(written); err != nil {
		s.poison = append(s.poison, at)
		return err
	}
	s.clock = max(s.clock, r.Timestamp.UnixMilli())
	return nil
}

// applyRepeated applies duplicates that the producer does not know of to the model: after a broker was killed, the
// producer repeats records, and the broker no longer knows that it has them.
func (s *scene) applyRepeated() {
	s.t.Helper()
	repeated := 0
	for _, topic := range []string{generate.Transactions, generate.Logins} {
		for _, records := range s.readAll(topic) {
			for _, r := range records {
				if !s.known[place(r.Topic, r.Partition, r.Offset)] {
					repeated++
					_ = s.apply(r) // apply notes poison
				}
			}
		}
	}
	if repeated > 0 {
		s.t.Logf("the broker has %d records twice", repeated)
	}
}

// applied returns the number of offsets applied by all shards.
func (s *scene) applied() (sum int64, err error) { return appliedOf(s.store) }

func appliedOf(of store.Progress) (sum int64, err error) {
	progress, err := of.Progress(ctx, partitions())
	if err != nil {
		return 0, err
	}
	for _, byShard := range progress {
		sum += max(0, state.Lowest(byShard))
	}
	return sum, nil
}

// appliedIn returns the number of offsets applied by all shards of one server.
func (s *scene) appliedIn(server *redistest.Server) int64 {
	s.t.Helper()
	applied, err := appliedOf(redisstore.New(server.Client(s.t), s.group, shards))
	if err != nil {
		s.t.Fatal(err)
	}
	return applied
}

// awaitApplied waits until every shard has applied every partition to its end and the group has
// committed those offsets.
func (s *scene) awaitApplied() {
	s.t.Helper()
	testkit.Eventually(s.t, 2*time.Minute, "everything is applied and committed", func() (bool, string) {
		ends, err := ends(s.kafka)
		if err != nil {
			return false, err.Error()
		}
		progress, err := s.store.Progress(ctx, partitions())
		if err != nil {
			return false, err.Error()
		}
		offsets, err := committed(s.kafka, s.group)
		if err != nil {
			return false, err.Error()
		}
		for i, p := range partitions() {
			low, high := state.Lowest(progress[i]), state.Highest(progress[i])
			if low != ends[p] || high != ends[p] || offsets[p] != ends[p] {
				return false, fmt.Sprintf("%v: applied %d to %d, committed %d, ends at %d; the last process says:\n%s",
					p, low, high, offsets[p], ends[p], s.started[len(s.started)-1].Log())
			}
		}
		return true, ""
	})
}

// compareAll compares all answers with the model, now and at past moments, at and around tile edges
// among them.
func (s *scene) compareAll(api *weir) int {
	s.t.Helper()
	clock, err := s.store.Clock(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if clock != s.clock {
		s.t.Errorf("the clock is %d, want the latest applied timestamp, %d", clock, s.clock)
	}
	c := blackbox.Comparison{T: s.t, URL: api.url, Model: s.model}
	at := moments(clock)
	if testkit.Race {
		at = at[:4] // most of the time goes to the model in this process
	}
	c.All(s.registry, clock, at...)
	return c.Compared
}

// moments returns the current moment and several past ones, at and around tile edges.
func moments(clock int64) []int64 {
	edge := state.FloorDiv(clock, hour) * hour
	moments := []int64{clock, clock + hour, clock - hour + 1, edge, edge - 1, clock - day}
	for days := int64(1); days < 10; days += 3 {
		edge := (state.FloorDiv(clock, day) - days) * day
		moments = append(moments, edge, edge-1)
	}
	return moments
}

// awaitRewind waits until the processors have found that Redis went back in time more often than
// before.
func (s *scene) awaitRewind(before int) {
	s.t.Helper()
	testkit.Eventually(s.t, 2*time.Minute, "the processors find Redis gone back in time", func() (bool, string) {
		return s.rewinds() > before, s.started[len(s.started)-1].Log()
	})
}

// finish waits until all events are applied, compares all answers with the model, and logs the
// figures.
func (s *scene) finish(api *weir, events int) {
	s.t.Helper()
	s.awaitApplied()
	applied := time.Now()
	s.applyRepeated()
	compared := s.compareAll(api)
	s.checkDeadLetters()
	s.t.Logf("seed %d: %d events (%d records with those of aborted transactions, %d poison), %d processes of Weir, %d kills, %d rewinds; %v to apply, %v to compare %d answers",
		seed, events, s.written, len(s.poison), len(s.started), s.kills, s.rewinds(),
		applied.Sub(s.began).Round(time.Second), time.Since(applied).Round(time.Second), compared)
}

// fault is a failure that is injected while events flow.
type fault struct {
	what   string
	happen func()
}

// ahead bounds how many records the writer may be ahead of applying: enough that faults hit work in
// progress, not so many that the writing ends before the faults do.
var ahead = int64(fewer(20_000))

// flow writes n events and runs the faults one after the other, spread evenly over the events.
// Writing continues during a fault, until the next one is due.
func (s *scene) flow(g *generate.Generator, n int, faults ...fault) {
	s.t.Helper()
	flowing, stop := context.WithCancel(ctx)
	defer stop()
	due, done := make(chan struct{}), make(chan error, 1)
	go func() {
		part := n / (len(faults) + 1)
		for range faults {
			if err := s.writeMany(flowing, g, part); err != nil {
				done <- err
				return
			}
			due <- struct{}{} // waits until the previous fault is over
		}
		done <- s.writeMany(flowing, g, n-part*len(faults))
	}()
	for _, f := range faults {
		select {
		case <-due:
			began := time.Now()
			f.happen()
			s.t.Logf("%-50s %v", f.what, time.Since(began).Round(time.Millisecond))
		case err := <-done:
			s.t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		s.t.Fatal(err)
	}
}

// writeMany writes n events in every way, as fast as they are applied.
func (s *scene) writeMany(ctx context.Context, g *generate.Generator, n int) error {
	const chunk = 1000
	for i := 0; n > 0; i++ {
		events := make([]generate.Event, min(n, chunk))
		for i := range events {
			events[i] = g.Next()
		}
		n -= len(events)
		how := s.producer.write
		if i%4 == 0 {
			how = s.producer.commit
		}
		if err := s.write(events, how); err != nil {
			return err
		}
		if i%10 == 5 {
			// The events are written once more and aborted: they would count twice if the abort
			// failed.
			if err := s.producer.abort(events); err != nil {
				return err
			}
			s.written += int64(len(events))
		}
		if err := s.keepUp(ctx); err != nil {
			return err
		}
	}
	return nil
}

// keepUp waits until at most ahead records are unapplied; records that were applied before Redis
// went back in time count as applied.
func (s *scene) keepUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		applied, err := s.applied()
		if err == nil {
			s.most = max(s.most, applied)
		}
		if s.written-s.most <= ahead {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d records are applied: %w", applied, s.written, errors.Join(ctx.Err(), err))
		}
	}
}
