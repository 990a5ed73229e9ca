package query_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

// runningDefinitions have each Incremental function, and windows of every clocked type, some over logs that reach their
// cap.
const runningDefinitions = `
streams:
  pay: {topic: t, timestamp: at, fields: {user: string, shop: string, till: {type: string, path: shop}, amount: decimal, score: float, text: string, ok: bool}}
features:
  above: {expr: avg_per_sum + count} # before what it is computed from
  count: COUNT(1m, pay, user, tile=exact)
  count_of_some: COUNT(1m, pay, user, tile=exact, where=ok)
  count_later: COUNT(10s, pay, user, tile=exact, delay=30s)
  count_closed: COUNT(10s, pay, user, tile=exact, bounds='[)')
  sum: SUM(1m, pay, amount, user, tile=exact, where=ok)
  sum_of_floats: SUM(10s, pay, score, user, tile=exact)
  avg: AVG(1m, pay, amount, user, tile=exact)
  avg_of_floats: AVG(calendar hour, pay, score, user, tile=exact)
  avg_per_sum: {expr: avg / sum_of_floats, default: -1}
  ever: SUM(lifetime, pay, amount, shop, tile=exact)
  least: MIN(1m, pay, text, user, tile=exact)
  greatest: MAX(tumbling 1m, pay, score, user, tile=exact)
  distinct: COUNT_DISTINCT(1m, pay, user, text, tile=exact)
  ratio: RATIO(10s, pay, user, condition=ok, tile=exact)
  of_few: SUM(1m, pay, score, till, tile=exact, max=7)
  greatest_of_few: MAX(10s, pay, amount, till, tile=exact, delay=10s, max=7)
`

// Answers of moved windows equal fresh ones, in any order of events and of moments.
func TestRunningEqualsReading(t *testing.T) {
	r := defined.Registry(t, runningDefinitions)
	functions := map[string]bool{}
	for _, f := range r.Features {
		if f.Function != nil {
			functions[f.Function.Spec().Name] = true
		}
	}
	for _, k := range aggregate.All {
		if _, ok := k.(aggregate.Incremental); ok && !functions[k.Spec().Name] {
			t.Errorf("no feature of this test uses the function %s", k.Spec().Name)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		ctx, mapper, store := context.Background(), r.NewMapper(), memory.New()
		var running query.Running
		places := make([]int, len(r.Features))
		for i, f := range r.Features {
			var ok bool
			if places[i], ok = running.Take(f); !ok {
				t.Fatalf("%s is not incremental", f.Name)
			}
		}
		now, inOrder := int64(1_700_000_000_000), rapid.Bool().Draw(t, "in order")
		for i := range rapid.IntRange(1, 60).Draw(t, "events") {
			now += rapid.SampledFrom([]int64{0, 1, 999, 4_000, 30_000, 200_000}).Draw(t, "later")
			at := now
			if !inOrder {
				at -= rapid.SampledFrom([]int64{0, 0, 0, 1, 1000, 9000, 50_000}).Draw(t, "late")
			}
			var b state.Batch
			b.Ranges = make([]state.PartitionRange, 1)
			_, err := mapper.Map(&record.Record{Partition: state.Partition{Topic: "t"}, Offset: int64(i), Timestamp: now, Value: drawPayment(t, at)}, 0, &b)
			if err == nil {
				err = store.Apply(ctx, &b)
			}
			if err != nil {
				t.Fatal(err)
			}
			asked := now
			if !inOrder {
				asked -= rapid.SampledFrom([]int64{0, 0, 500, 20_000}).Draw(t, "ago")
			}
			compareRunning(t, r.Features, &running, places, store, asked, now)
		}
	})
}

// A feature that is also part of others is computed once.
func TestRunningTakesFeaturesOnce(t *testing.T) {
	var running query.Running
	slots := map[int]string{}
	for _, f := range defined.Registry(t, runningDefinitions).Features {
		for range 2 {
			i, ok := running.Take(f)
			if !ok || slots[i] != "" && slots[i] != f.Name {
				t.Fatalf("%s has slot %d of %s", f.Name, i, slots[i])
			}
			slots[i] = f.Name
		}
	}
	for i := range len(slots) {
		if slots[i] == "" {
			t.Errorf("slot %d of %d is of no feature", i, len(slots))
		}
	}
}

func drawPayment(t *rapid.T, at int64) []byte {
	amount, score, text := "null", "null", "null"
	if rapid.IntRange(0, 3).Draw(t, "has an amount") > 0 {
		amount = fmt.Sprintf("%d.25", rapid.IntRange(-9, 9).Draw(t, "amount"))
	}
	if rapid.IntRange(0, 3).Draw(t, "has a score") > 0 {
		score = fmt.Sprint(float64(rapid.IntRange(-99, 99).Draw(t, "score")) * 0.1)
	}
	if rapid.IntRange(0, 3).Draw(t, "has a text") > 0 {
		text = fmt.Sprintf("%q", rapid.StringMatching("[abc]{0,2}").Draw(t, "text"))
	}
	return fmt.Appendf(nil, `{"at":%d,"user":%q,"shop":"s","amount":%s,"score":%s,"text":%s,"ok":%v}`,
		at, rapid.SampledFrom([]string{"u", "v"}).Draw(t, "user"), amount, score, text, rapid.Bool().Draw(t, "ok"))
}

// compareRunning compares the answers of a user, and of one without events.
func compareRunning(t *rapid.T, all []*features.Feature, running *query.Running, places []int, store *memory.Store, at, now int64) {
	for _, user := range []string{"u", "nobody"} {
		entityOf := func(by string) string { return map[string]string{"user": user, "shop": "s", "till": "s"}[by] }
		for i, log := range running.Logs {
			held, beside := store.Log(log.Series, []byte(entityOf(log.Series.By[0])))
			var windows *query.Windows
			if beside != nil {
				if *beside == nil {
					*beside = new(query.Windows)
				}
				windows = (*beside).(*query.Windows)
			}
			if err := running.Move(i, windows, held, at); err != nil {
				t.Fatal(err)
			}
		}
		var reading query.Reading
		reading.Reset(now)
		for _, f := range all {
			reading.Want(f, entityOf(f.By[0]), at)
		}
		if err := reading.Read(context.Background(), store); err != nil {
			t.Fatal(err)
		}
		for i, f := range all {
			var want query.Answer
			reading.Next(&want)
			if got := running.Answer(places[i]); !reflect.DeepEqual(*got, want) {
				t.Fatalf("%s of %s at %d is\n%+v, want\n%+v", f.Name, user, at, *got, want)
			}
		}
	}
}
