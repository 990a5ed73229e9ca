package inspect

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// Damaged state is restored, together with the kept state, as if nothing had happened, also if events come meanwhile,
// and after any interruption.
func TestRefill(t *testing.T) {
	redis := redistest.Shared(t).Client(t)
	shop := map[string]string{"shop": "7"}
	for name, damage := range map[string]func(l *log, key string) error{
		"the end": func(l *log, key string) error { return redis.Append(l.t.Context(), key, "\x01\x02\x03\x7f").Err() },
		"all":     func(l *log, key string) error { return redis.Set(l.t.Context(), key, "\xff\xff\xff\xff", 0).Err() },
		"foreign": func(l *log, key string) error {
			return errors.Join(redis.Del(l.t.Context(), key).Err(), redis.SAdd(l.t.Context(), key, 1).Err())
		},
		"a series": func(l *log, key string) error {
			list, _ := groups(l.registry, nil)
			tag := list[0].series[0].Tag()
			return redis.Append(l.t.Context(), key, string([]byte{byte(tag >> 16), byte(tag >> 8), byte(tag), 1, 0x80})).Err()
		},
		"the children": func(l *log, key string) error {
			list, _ := groups(l.registry, nil)
			tag := state.EmbeddingTag(list[1].name)
			return redis.Append(l.t.Context(), key, string([]byte{byte(tag >> 16), byte(tag >> 8), byte(tag), 1, 0x80})).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, definitions)
			n := 0
			more := func() {
				for range 7 {
					l.write(paid(n, n%3, 7), paid(n+1, n%40, 7), paid(n+2, 1, 8))
					n += 3
				}
			}
			for range 3 {
				more()
			}
			if err := damage(l, l.key("shop", shop)); err != nil {
				t.Fatal(err)
			}
			again := false
			l.before, l.between = more, func() {
				more()
				l.between = func() { // another process dropped the key again
					more()
					if text := l.text(shop); !strings.Contains(text, "; a refill is under way or was interrupted") {
						t.Errorf("during the refill the entity is not shown as being refilled:\n%s", text)
					}
					panic(errKilled)
				}
				again = true
				if _, err := Drop(t.Context(), l.store, l.registry, Scope{Keys: shop, All: true}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := l.refill(Scope{Keys: shop}); !errors.Is(err, errKilled) || !strings.Contains(err.Error(), "run the command again") || !again {
				t.Fatalf("a refill that was killed: got error %v, want the advice to run it again", err)
			}
			more()
			l.between = more
			dropped := l.mustRefill(Scope{Keys: shop})
			if len(dropped) != 1 || len(dropped[0].Lost) != 0 || dropped[0].Refilled.Records != int64(len(l.written)-21) || dropped[0].Refilled.Children != 40 {
				t.Errorf("unexpected refill: %+v, %+v", dropped[0], dropped[0].Refilled)
			}
			more()
			l.same(shop, 40)
			if dropped := l.mustRefill(Scope{Keys: shop}); len(dropped) != 0 {
				t.Errorf("complete state is refilled: %+v", dropped)
			}
			for _, keys := range []map[string]string{{"shop": "7", "user": "u1"}, {"shop": "8"}} { // readable state, too
				l.between = more
				if dropped := l.mustRefill(Scope{Keys: keys, All: true}); len(dropped) == 0 {
					t.Error("nothing is refilled, although everything was dropped")
				}
				l.same(keys, 40)
			}
			l.same(shop, 40)
		})
	}
}

// Events between reading the log and the drop, which the key of another type refuses, are also restored.
func TestRefillReadsOnAfterTheDrop(t *testing.T) {
	l, shop := newLog(t, definitions), map[string]string{"shop": "7"}
	redis, n := redistest.Shared(t).Client(t), 0
	more := func() {
		for range 5 {
			l.write(paid(n, n%3, 7))
			n++
		}
	}
	more()
	key := l.key("shop", shop)
	if err := errors.Join(redis.Del(t.Context(), key).Err(), redis.SAdd(t.Context(), key, 1).Err()); err != nil {
		t.Fatal(err)
	}
	l.before, l.between = more, more
	if dropped := l.mustRefill(Scope{Keys: shop}); len(dropped) != 1 || dropped[0].Refilled.Events != 10 {
		t.Errorf("want a refill from 10 events, got %+v", dropped)
	}
	l.same(shop, 3)
}

func TestRefillRefuses(t *testing.T) {
	t.Run("an unavailable log", func(t *testing.T) {
		l := newLog(t, definitions)
		l.write(paid(1, 1, 7))
		l.brokers = []string{"127.0.0.1:1"}
		l.refused("connect: connection refused")
	})
	t.Run("a recreated topic", func(t *testing.T) {
		l := newLog(t, definitions)
		l.write(paid(1, 1, 7))
		l.remake()
		l.refused("what was applied cannot be read again: fetch: payments/0 is another log: topic ID")
	})
	t.Run("a log that was truncated", func(t *testing.T) {
		l := newLog(t, definitions)
		l.write(paid(1, 1, 7))
		l.written = append(l.written, &kgo.Record{Offset: 1, Timestamp: time.UnixMilli(noon), Value: []byte(paid(2, 1, 7))})
		l.apply(l.written[1:]) // the log has lost them
		l.refused("payments/0 is applied up to offset 2, and can be read up to 1 only: its log was truncated, or a transaction is open")
	})
	t.Run("other definitions", func(t *testing.T) {
		l := newLog(t, definitions)
		l.write(paid(1, 1, 7))
		l.registry = registry(t, streams+"  shop_pays: COUNT(2d, pay, shop)\n")
		l.refused("other definitions are applied to payments/0 than these: refill with those of the processors, or once they have loaded these")
	})
}

// Events that the log no longer has stay lost, and are reported; everything else is restored.
func TestRefillOfAShorterLog(t *testing.T) {
	l := newLog(t, definitions)
	for i := range 10 {
		l.write(paid(i, 1, 7))
	}
	l.deleteRecords(4)
	redis := redistest.Shared(t).Client(t)
	if err := redis.Set(t.Context(), l.key("shop", map[string]string{"shop": "7"}), "\xff", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false, false} {
		dropped := l.mustRefill(Scope{Keys: map[string]string{"shop": "7"}, DryRun: dry})
		want := map[string]int64{"shop_pays": noon + 5, "pair_pays": noon + 5}
		if len(dropped) != 1 || !maps.Equal(dropped[0].Lost, want) || dropped[0].Refilled.Events != 6 {
			t.Errorf("dry run %t: unexpected refill: %+v, %+v", dry, dropped, dropped[0].Refilled)
		}
	}
	if text := l.text(map[string]string{"shop": "7", "user": "u1"}); strings.Count(text, " changed in ") != 2 || !strings.Contains(text, "what records up to 2025-01-01T12:00:00.004Z changed in ") ||
		strings.Count(text, "    2025-01-01T12:00:00Z  6\n") != 2 {
		t.Errorf("the refilled state is shown as\n%s", text)
	}
}

// A deleted key is made again, and a key with only children is restored.
func TestRefillOfKeysWithoutSeries(t *testing.T) {
	l := newLog(t, streams+"  pair_pays: COUNT(1d, pay, shop, user)\n")
	for i := range 30 {
		l.write(paid(i, i%5, 7))
	}
	shop := map[string]string{"shop": "7"}
	if err := redistest.Shared(t).Client(t).Del(t.Context(), l.key("shop", shop)).Err(); err != nil {
		t.Fatal(err)
	}
	dropped := l.mustRefill(Scope{Keys: shop, All: true})
	if len(dropped) != 1 || dropped[0].Refilled.Children != 5 {
		t.Fatalf("want a refill of 5 children, got %+v", dropped)
	}
	l.same(shop, 5)
	var text strings.Builder
	WriteDropped(&text, dropped, Scope{})
	if want := "  refilled  from 30 events of 30 records in the log, with 5 children\n"; !strings.HasSuffix(text.String(), want) {
		t.Errorf("got %s\nwant it to end with %s", text.String(), want)
	}
}

// Series that a backfill is still filling are left to it, and reported as missing.
func TestRefillDuringABackfill(t *testing.T) {
	l := newLog(t, definitions)
	for i := range 10 {
		l.write(paid(i, 1, 7))
	}
	l.take(definitions + "  shop_sum: SUM(1d, pay, amount, shop)\n")
	l.write(paid(10, 1, 7))
	shop := map[string]string{"shop": "7"}
	if err := redistest.Shared(t).Client(t).Set(t.Context(), l.key("shop", shop), "\xff", 0).Err(); err != nil {
		t.Fatal(err)
	}
	dropped := l.mustRefill(Scope{Keys: shop})
	want := map[string]int64{"shop_sum": noon + 11}
	if len(dropped) != 1 || !maps.Equal(dropped[0].Lost, want) || !slices.Equal(dropped[0].Refilled.Waiting, []string{"shop_sum"}) {
		t.Errorf("want shop_sum to be left to the backfill, got %+v, %+v", dropped, dropped[0].Refilled)
	}
	if text := l.text(shop); !strings.Contains(text, "  2025-01-01T12:00:00Z  11\n") || strings.Contains(text, "sum of amount in pay") {
		t.Errorf("during the backfill the state is shown as\n%s", text)
	}
}

// A part of a fill that only definitions without partitions have is filled with the whole of it: nothing waits for a backfill.
func TestRefillWithAPartOfAFillThatNoPartitionKnows(t *testing.T) {
	l := newLog(t, definitions)
	l.take(definitions + "  shop_sum: SUM(1d, pay, amount, shop)\n  shop_max: MAX(1d, pay, amount, shop)\n")
	fills, err := l.store.Fills(t.Context(), l.registry.Plan())
	if err != nil || len(fills) != 1 {
		t.Fatal(fills, err)
	}
	start := state.FillStart{Fill: fills[0], Partition: payments, Since: noon, Log: l.progress[0].Log}
	if err := l.store.StartFill(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		l.write(paid(i, 1, 7))
	}
	canary := registry(t, definitions+"  shop_sum: SUM(1d, pay, amount, shop)\n").Plan()
	if _, err := l.store.Register(t.Context(), state.Registration{Plan: canary, Group: "canary", Begins: true}); err != nil {
		t.Fatal(err)
	}
	shop := map[string]string{"shop": "7"}
	if err := redistest.Shared(t).Client(t).Set(t.Context(), l.key("shop", shop), "\xff", 0).Err(); err != nil {
		t.Fatal(err)
	}
	dropped := l.mustRefill(Scope{Keys: shop})
	if len(dropped) != 1 || len(dropped[0].Refilled.Waiting) > 0 || dropped[0].Refilled.Events != 10 {
		t.Errorf("want all of the key refilled, got %+v, %+v", dropped, dropped[0].Refilled)
	}
	if text := l.text(shop); !strings.Contains(text, "sum of amount in pay") {
		t.Errorf("after the refill the state is shown as\n%s", text)
	}
}

// A store that has gone back in time is refilled up to its present progress.
func TestRefillGoesBackWithTheStore(t *testing.T) {
	l := newLog(t, definitions)
	for i := range 10 {
		l.write(paid(i, 1, 7))
	}
	redis, shop := redistest.Shared(t).Client(t), map[string]string{"shop": "7"}
	key := l.key("shop", shop)
	tag, _, _ := strings.Cut(key, "}")
	if err := redis.Set(t.Context(), key, "\xff", 0).Err(); err != nil {
		t.Fatal(err)
	}
	l.before = func() {
		name := payments.Topic + "@" + l.registry.Plan().Version + "/0"
		at, _ := state.ParsePosition(redis.HGet(t.Context(), tag+"}progress", name).Val())
		at.Offset = 6
		redis.HSet(t.Context(), tag+"}progress", name, at.String())
	}
	if dropped := l.mustRefill(Scope{Keys: shop}); len(dropped) != 1 || dropped[0].Refilled.Events != 6 {
		t.Errorf("want a refill from 6 events, got %+v", dropped)
	}
}

// Many children are restored in several calls. If they are spilled meanwhile, everything is repeated.
func TestRefillOfManyChildren(t *testing.T) {
	l := newLog(t, definitions)
	const users = 1300
	n := 0
	more := func() {
		var events []string
		for range users {
			events = append(events, paid(n, n%users, 7))
			n++
		}
		l.write(events...)
	}
	more()
	shop := map[string]string{"shop": "7"}
	redis := redistest.Shared(t).Client(t)
	key := l.key("shop", shop)
	if err := redis.Set(t.Context(), key, "\xff", 0).Err(); err != nil {
		t.Fatal(err)
	}
	spilled := false
	l.between = func() { // until the children that came meanwhile are spilled
		for range 20 {
			more()
		}
		spilled = redis.StrLen(t.Context(), key).Val() < 64<<10
	}
	dropped := l.mustRefill(Scope{Keys: shop})
	if len(dropped) != 1 || dropped[0].Refilled.Children != users || !spilled {
		t.Errorf("unexpected refill: %+v, %+v, spilled %t", dropped, dropped[0].Refilled, spilled)
	}
	more()
	l.same(shop, 50)
}
