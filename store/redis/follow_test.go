package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/state"
)

// What is followed in memory answers as the store does once it has applied the
// same, for every kind and window, and every member that a list has by then.
func TestFollowingIsAsApplying(t *testing.T) {
	registry, err := features.Parse("conformance.yaml", []byte(conformanceDefinitions()))
	if err != nil {
		t.Fatal(err)
	}
	onEach(t, 4, func(t *testing.T, s *Store) {
		ctx, compared := context.Background(), 0
		for seed := range uint64(3) {
			c := &conformance{
				T: t, random: rand.New(rand.NewPCG(seed, 12)), registry: registry, model: model.New(registry),
				store: newStore(t, s.redis, 4), now: 1_532_496_076_032,
			}
			c.writer, c.mapper = c.store.newWriter(), registry.NewMapper()
			start(t, c.store, transactions)
			for range 6 {
				b := c.batch()
				var asked []asking
				var thought, stored features.Reading
				thought.Reset(c.now)
				stored.Reset(c.now)
				for _, f := range registry.Features {
					for _, entity := range append(c.model.Entities(f), "nobody") {
						a := asking{feature: f, entity: entity, at: c.moment(f, c.now)}
						thought.Want(f, entity, a.at)
						stored.Want(f, entity, a.at)
						asked = append(asked, a)
					}
				}
				followed, err := c.store.Follow(ctx, thought.Reads())
				if err != nil {
					t.Fatal(err)
				}
				lists := followed.Copy(thought.Reads())
				for i := range b.Touched {
					lists.Add(b, &b.Touched[i])
				}
				if err := errors.Join(thought.ReadLists(ctx, features.Followed{State: lists}), followed.Extend(ctx, thought.Reads())); err != nil {
					t.Fatal(err)
				}
				for i := range b.Touched {
					followed.Add(b, &b.Touched[i])
				}
				apply(t, c.writer, b)
				thought.Reset(c.now)
				for _, a := range asked {
					thought.Want(a.feature, a.entity, a.at)
				}
				if err := errors.Join(thought.Read(ctx, features.Followed{State: followed}), stored.Read(ctx, c.store)); err != nil {
					t.Fatal(err)
				}
				for _, a := range asked {
					var got, want features.Answer
					thought.Next(&got)
					stored.Next(&want)
					compared++
					if got, want := string(got.AppendJSON(nil)), string(want.AppendJSON(nil)); got != want {
						t.Fatalf("seed %d: %s of %q at %d\nfollowed %s\napplied  %s", seed, a.feature.Definition, a.entity, a.at, got, want)
					}
				}
			}
		}
		t.Logf("%d answers compared", compared)
	})
}

// What another has written into a key is an error, and no empty state.
func TestFollowingOfWhatIsNotPacked(t *testing.T) {
	registry, err := features.Parse("test.yaml", []byte(`
streams:
  event: {topic: transactions, timestamp: at, fields: {user: string}}
features:
  events: COUNT(lifetime, event, user)
`))
	if err != nil {
		t.Fatal(err)
	}
	onEach(t, 4, func(t *testing.T, s *Store) {
		ctx := context.Background()
		var reading features.Reading
		reading.Reset(0)
		reading.Want(registry.Features[0], "u", 0)
		reads := reading.Reads()
		key := s.lookups(reads)[0].key
		shown := `key "` + strings.TrimSuffix(key, "u") + `…": `
		for name, damage := range map[string]func() error{
			"the state is damaged: the section at byte 0 reaches beyond the end, at byte 4": func() error {
				return s.redis.Set(ctx, key, "\x01\x02\x03\xff", 0).Err()
			},
			errForeign.Error(): func() error {
				return errors.Join(s.redis.Del(ctx, key).Err(), s.redis.SAdd(ctx, key, "not ours").Err())
			},
		} {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			f, err := s.Follow(ctx, reads)
			if err != nil {
				t.Fatal(err)
			}
			b := new(state.Batch)
			b.Touch(0, 0, []byte("u"))
			b.Add(state.Mutation{Series: reads[0].Series, Num: 1})
			f.Add(b, &b.Touched[0])
			for _, held := range []state.Snapshot{f, f.Copy(reads)} {
				if slice := held.Read(&reads[0]); slice.Err == nil || slice.Err.Error() != shown+name {
					t.Errorf("error %v, want %s", slice.Err, name)
				}
			}
		}
	})
}
