package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/operate/inspect"
	"github.com/weir-stream/weir/operate/refill"
	"github.com/weir-stream/weir/pipeline/scan"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	redisstore "github.com/weir-stream/weir/store/redis"
	"github.com/weir-stream/weir/store/redis/inspector"
)

// Keys of every kind are damaged, dropped and refilled while events flow and processors and Redis
// are killed. In the end the entities, their neighbours and the entities in the same keys equal the
// model over the whole log, and are complete.
func TestRefill(t *testing.T) {
	t.Parallel()
	events := fewer(40_000)
	server := redistest.New(t, redistest.Options{AOF: true})
	s := newScene(t, server.Client(t), "--redis.addresses", server.Addr())
	api := s.start("api")
	first, second := s.start("processor"), s.start("processor")
	d := &damager{t: t, scene: s, redis: server.Client(t), random: rand.New(rand.NewPCG(seed, 1))}
	var copied redistest.Copy
	s.flow(generate.New(seed, stream(100)), events,
		fault{"keys are refilled", func() {
			awaitShared(t, first, second)
			d.refill(20, redisDoes)
		}},
		fault{"others again", func() { d.refill(20, redisDoes) }},
		fault{"refills are killed once they have dropped, and done again", func() {
			d.refill(20, killed)
			copied = server.SaveCopy()
			d.refill(20, redisDoes)
		}},
		fault{"the last call is sent twice", func() { d.refill(20, sentTwice) }},
		fault{"its reply is lost", func() { d.refill(20, replyLost) }},
		fault{"Redis is put back to a copy of when some were dropped", func() {
			before := s.rewinds()
			s.restore(server, copied)
			s.awaitRewind(before)
			d.again()
		}},
		fault{"a processor is killed in between", func() {
			d.refill(10, func(r *refilling, refill func() error) error {
				if r.refilled++; r.refilled == 1 {
					s.kill(first)
					first = s.start("processor")
				}
				return refill()
			})
		}},
	)
	s.awaitApplied()
	s.applyRepeated()
	d.all()
	c := blackbox.Comparison{T: t, URL: api.url, Model: s.model}
	c.All(s.registry, s.clock, moments(s.clock)[:5]...)
	if len(c.Incomplete) > 0 {
		t.Errorf("these answers are incomplete: %v", c.Incomplete)
	}
	t.Logf("%d keys were refilled, %d of them with children; %d answers compared; %d kills", d.refilled, d.withChildren, c.Compared, s.kills)
	if d.withChildren == 0 {
		t.Error("no key with children was refilled")
	}
}

// damager damages keys and refills them.
type damager struct {
	t      testing.TB
	scene  *scene
	redis  *redis.Client
	random *rand.Rand
	broken []map[string]string // entities whose refill was interrupted

	refilled, withChildren int
}

// refilling is a store that injects a fault into the calls of a refill.
type refilling struct {
	*redisstore.Store
	happens  func(r *refilling, refill func() error) error
	refilled int
}

func (r *refilling) Refill(ctx context.Context, held packed.Held, what inspector.Refill) error {
	return r.happens(r, func() error { return r.Store.Refill(ctx, held, what) })
}

var errKilled = errors.New("killed")

func redisDoes(_ *refilling, refill func() error) error { return refill() }

func killed(*refilling, func() error) error { return errKilled }

func sentTwice(_ *refilling, refill func() error) error {
	err := refill()
	if err != nil {
		return err
	}
	if again := refill(); !errors.Is(again, inspector.ErrChanged) {
		return fmt.Errorf("the second one: %w", again)
	}
	return nil
}

func replyLost(r *refilling, refill func() error) error {
	err := refill()
	if r.refilled++; err == nil && r.refilled == 1 {
		return inspector.ErrChanged
	}
	return err
}

// refill damages some keys and refills them.
func (d *damager) refill(keys int, happens func(*refilling, func() error) error) {
	d.t.Helper()
	store := &refilling{Store: d.scene.store.Store(), happens: happens}
	for _, key := range d.some(keys) {
		d.damage(key)
		if err := d.drop(store, inspect.Scope{Keys: key.entity}); errors.Is(err, errKilled) {
			d.broken = append(d.broken, key.entity)
		} else if err != nil {
			d.t.Fatalf("%v: %v", key.entity, err)
		}
		store.refilled = 0
	}
	if len(d.broken) > keys/2 && d.random.IntN(2) == 0 {
		d.again()
	}
}

// again repeats interrupted refills.
func (d *damager) again() {
	d.t.Helper()
	for _, entity := range d.broken {
		if err := d.drop(d.scene.store.Store(), inspect.Scope{Keys: entity}); err != nil {
			d.t.Fatalf("%v: %v", entity, err)
		}
	}
	d.broken = nil
}

// all refills every key, because an older copy brings back damaged keys and interrupted refills.
func (d *damager) all() {
	d.t.Helper()
	for _, key := range d.some(1 << 30) {
		if err := d.drop(d.scene.store.Store(), inspect.Scope{Keys: key.entity}); err != nil {
			d.t.Fatalf("%v: %v", key.entity, err)
		}
	}
}

// drop refills an entity, as weir state drop --refill does.
func (d *damager) drop(store inspect.Dropper, scope inspect.Scope) error {
	d.t.Helper()
	plan, history, err := d.scene.store.Bind(ctx, d.scene.registry.Plan())
	if err != nil {
		return err
	}
	scope.Refill = &refill.Config{
		Config:         scan.Config{Transport: d.scene.kafka.Transport.(*kafka.Transport), Bootstrap: kafka.TCP(d.scene.broker.Addrs()...), Patience: time.Minute},
		MaxRecordBytes: 1 << 20,
	}
	dropped, err := inspect.Drop(ctx, store, d.scene.registry.Keeping(plan, history), scope)
	for _, one := range dropped {
		d.refilled++
		if one.Refilled.Children > 0 {
			d.withChildren++
		}
		if len(one.Lost) > 0 {
			d.t.Errorf("%v lacks %v", one.Entity, one.Lost)
		}
	}
	return err
}

// stateKey is a key of the namespace.
type stateKey struct {
	name   string
	entity map[string]string
	tags   []uint32 // of the series in it, and of children
}

// some draws keys that hold state.
func (d *damager) some(most int) (list []stateKey) {
	d.t.Helper()
	by, tags := map[string][]string{}, map[string][]uint32{}
	for _, s := range d.scene.registry.Series {
		by[s.Group] = s.By
		tags[s.Group] = append(tags[s.Group], s.Tag())
		if s.Parent != "" && !slices.Contains(tags[s.Parent], state.EmbeddingTag(s.Group)) {
			tags[s.Parent] = append(tags[s.Parent], state.EmbeddingTag(s.Group))
		}
		if s.Parent != "" && by[s.Parent] == nil {
			by[s.Parent] = s.By[:1]
		}
	}
	keys := d.redis.Scan(ctx, 0, "{"+d.scene.group+":*", 10_000).Iterator()
	for keys.Next(ctx) {
		_, rest, _ := strings.Cut(keys.Val(), "}")
		group, text, ok := strings.Cut(rest, ":")
		if !ok || by[group] == nil {
			continue
		}
		entity := map[string]string{}
		for i, value := range state.SplitEntity(nil, text) {
			entity[by[group][i]] = value
		}
		list = append(list, stateKey{keys.Val(), entity, tags[group]})
	}
	if err := keys.Err(); err != nil {
		d.t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b stateKey) int { return strings.Compare(a.name, b.name) })
	d.random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(most, len(list))]
}

// damage damages a key in one of several ways.
func (d *damager) damage(key stateKey) {
	d.t.Helper()
	const broken = "\x01\x80" // the length of a section's body, and an unterminated number
	err := d.redis.Get(ctx, key.name).Err()
	if err == nil {
		switch ways := d.random.IntN(4 + len(key.tags)); ways {
		case 0:
			// A section whose body is longer than all that is appended before the key is dropped: it would make a
			// shorter one complete, and not damaged.
			err = d.redis.Append(ctx, key.name, "\x01\x02\x03\xff\xff\xff\x7f").Err()
		case 1:
			err = d.redis.Set(ctx, key.name, "\xff\xff\xff\xff", 0).Err()
		case 2, 3:
			_, err = d.redis.TxPipelined(ctx, func(both redis.Pipeliner) error {
				return errors.Join(both.Del(ctx, key.name).Err(), both.SAdd(ctx, key.name, "foreign").Err())
			})
		default:
			tag := key.tags[ways-4]
			err = d.redis.Append(ctx, key.name, string([]byte{byte(tag >> 16), byte(tag >> 8), byte(tag)})+broken).Err()
		}
	}
	if err != nil && !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		d.t.Fatal(err)
	}
}
