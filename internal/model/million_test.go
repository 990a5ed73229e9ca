package model

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

const million = 1_000_000

// replay applies records to a store in batches, as a processor does, and answers from it.
type replay struct {
	testing.TB
	registry *features.Registry
	mapper   *features.Mapper
	store    *memory.Store
	batch    state.Batch
	record   record.Record
}

func newReplay(t *testing.T, definitions string) *replay {
	t.Helper()
	r := defined.Registry(t, definitions)
	return &replay{
		TB: t, registry: r, mapper: r.NewMapper(), store: memory.New(), batch: state.Batch{Ranges: make([]state.PartitionRange, 1), Now: recorded * 1000},
		record: record.Record{Partition: state.Partition{Topic: "pay"}, Timestamp: recorded * 1000},
	}
}

// event applies one event; format and args make the text of its record.
func (r *replay) event(format string, args ...any) {
	r.record.Value = fmt.Appendf(r.record.Value[:0], format, args...)
	if _, err := r.mapper.Map(&r.record, 0, &r.batch); err != nil {
		r.Fatal(err)
	}
	if r.record.Offset++; r.record.Offset%500 == 0 {
		r.flush()
	}
}

func (r *replay) flush() {
	if err := r.store.Apply(context.Background(), &r.batch); err != nil || r.batch.Refused > 0 {
		r.Fatal(err, r.batch.Refusal)
	}
	r.batch.Reset()
}

// answer returns a feature's answer as of the recorded hour.
func (r *replay) answer(name, entity string) query.Answer {
	r.flush()
	f, ok := r.registry.Feature(name)
	if !ok {
		r.Fatal("no feature ", name)
	}
	return r.answerOf(f, entity)
}

// answerOf returns a feature's answer as of the recorded hour.
func (r *replay) answerOf(f *features.Feature, entity string) query.Answer {
	var reading query.Reading
	reading.Reset(recorded * 1000)
	reading.Want(f, entity, recorded*1000)
	if err := reading.Read(context.Background(), r.store); err != nil {
		r.Fatal(err)
	}
	var a query.Answer
	reading.Next(&a)
	return a
}

// A million amounts in random order add up to the cent; a sum of floats does not.
func TestMillionAmounts(t *testing.T) {
	r := newReplay(t, `
streams:
  pay:
    topic: pay
    timestamp: t
    fields: {user: string, amount: {type: decimal, scale: 2}}
features:
  ever:   SUM(lifetime, pay, amount, user)
  month:  SUM(30d, pay, amount, user)
  hours:  SUM(30h, pay, amount, user, tile=1m)
  mean:   AVG(30d, pay, amount, user)
`)
	const day = int64(86_400_000)
	midnight := state.FloorDiv(recorded*1000, day) * day
	minute := state.FloorDiv(recorded*1000, 60_000) * 60_000
	random := rand.New(rand.NewPCG(3, 4))
	sums, counts := map[string]int64{}, map[string]int64{}
	floats := 0.0
	for range million {
		cents := random.Int64N(20_000_000) - 5_000_000
		if random.IntN(1000) == 0 {
			cents = random.Int64N(1e15)
		}
		at := recorded*1000 - random.Int64N(30*day)
		sign := ""
		if cents < 0 {
			sign = "-"
		}
		magnitude := max(cents, -cents)
		r.event(`{"t":%d,"user":"u","amount":%s%d.%02d}`, at, sign, magnitude/100, magnitude%100)
		floats += float64(cents) / 100
		for name, from := range map[string]int64{"ever": math.MinInt64, "month": midnight - 29*day, "hours": minute - (30*60-1)*60_000} {
			if at >= from {
				sums[name] += cents
				counts[name]++
			}
		}
	}
	for name, want := range sums {
		a := r.answer(name, "u")
		if a.Value.Num != want || a.Value.Scale != 2 || !a.Exact {
			t.Errorf("%s is %s, exact %t; want %d cents", name, a.Value.AppendText(nil), a.Exact, want)
		}
		if counts[name] < 10_000 {
			t.Errorf("%s has %d amounts, want at least 10,000", name, counts[name])
		}
	}
	if got, want := r.answer("mean", "u").Value.Flt, float64(sums["month"])/100/float64(counts["month"]); got != want {
		t.Errorf("the mean is %v, want %v", got, want)
	}
	if math.Round(floats*100) == float64(sums["ever"]) {
		t.Error("the sum of floats is exact, too, so that these amounts prove nothing")
	}
}

// The estimated number of distinct values is within three standard errors of the true one, all the
// way to a million, both in one sketch and in the merged sketches of many tiles.
func TestMillionDistinctValues(t *testing.T) {
	r := newReplay(t, `
streams:
  pay:
    topic: pay
    timestamp: t
    fields: {device: string, user: string}
features:
  ever:  APPROX_COUNT_DISTINCT(lifetime, pay, device, user)
  month: APPROX_COUNT_DISTINCT(30d, pay, device, user)
`)
	random := rand.New(rand.NewPCG(5, 6))
	for n := 1; n <= million; n++ {
		at := recorded*1000 - random.Int64N(29*86_400_000)
		r.event(`{"t":%d,"device":"d","user":"u%07d"}`, at, n)
		if n%10 == 0 {
			r.event(`{"t":%d,"device":"d","user":"u%07d"}`, recorded*1000, 1+random.IntN(n)) // again
		}
		if n%(million/10) != 0 && n != 1000 && n != 10_000 {
			continue
		}
		for _, name := range []string{"ever", "month"} {
			a := r.answer(name, "d")
			off := math.Abs(float64(a.Value.Num)-float64(n)) / float64(n)
			if off > 3*a.StandardError || a.StandardError == 0 || a.Exact {
				t.Errorf("%s of %d different values is %d, %.2f standard errors of %v away", name, n, a.Value.Num, off/a.StandardError, a.StandardError)
			}
		}
	}
}
