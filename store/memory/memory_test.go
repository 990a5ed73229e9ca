package memory_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	redisstore "github.com/weir-stream/weir/store/redis"
	"github.com/weir-stream/weir/store/storetest"
	"github.com/weir-stream/weir/value"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var ctx = context.Background()

const day = 24 * 60 * 60 * 1000

// allSeries are series of every measure, as the plan of a registry would make them, those with
// tiles also split by users; the groups of tiles are kept for a while and forever.
func allSeries() []*state.Series {
	var list []*state.Series
	for _, forever := range []bool{false, true} {
		for m := state.CountEvents; m <= state.GreatestText; m++ {
			for _, t := range []value.Type{value.Decimal, value.Float} {
				s := &state.Series{
					ID: fmt.Sprintf("s%04d", len(list)), Group: "kept", By: []string{"device"}, Measure: m, Type: t, Scale: 2,
					Tile: day, Keep: 8 * day, GroupKeep: 9 * day, Max: 30, Rate: 0.05,
				}
				switch {
				case m == state.Earliest || m == state.Latest:
					s.Type, s.Scale = value.Timestamp, 0
				case m.OfEvents():
					s.Type, s.Scale = value.Null, 0
				}
				tiled := m.Layout() != state.LastSeen && m.Layout() != state.Logs
				if !tiled {
					s.Tile = 1
				}
				if forever {
					s.Group, s.Keep, s.GroupKeep = "ever", 0, 0
					if tiled {
						s.Tile = 0
					}
				}
				list = append(list, s)
				if tiled && m != state.Seen && m != state.RememberID {
					by := *s
					by.ID, by.Per, by.Max = fmt.Sprintf("s%04d", len(list)), "user", 12
					list = append(list, &by)
				}
			}
		}
	}
	return list
}

// keptForAWhile are the series that are not kept forever.
func keptForAWhile() []*state.Series {
	return slices.DeleteFunc(allSeries(), func(s *state.Series) bool { return s.Keep == 0 })
}

// addEvent adds the mutations of an event with an amount and a user to all series.
func addEvent(b *state.Batch, list []*state.Series, offset, time, cents int64, device, user string) {
	b.Now, b.Series = max(b.Now, time), list
	b.Ranges[0].To = offset + 1
	b.Update(0, offset, []byte(device))
	for _, s := range list {
		mutation := state.Mutation{Series: s, Tile: s.TileOf(time), Text: new(state.Text)}
		if s.Per != "" {
			mutation.Key = []byte(user)
		}
		switch s.Measure {
		case state.CountEvents, state.CountValues, state.CountHolds:
			mutation.Num = 1
		case state.Earliest, state.Latest:
			mutation.Num = time
		case state.FirstValue, state.LastValue:
			v := value.Value{Type: s.Type, Num: cents, Flt: float64(cents) / 4, Scale: s.Scale}
			mutation.Num, mutation.Member = time, b.Hold(state.AppendValue(nil, v))
		case state.Sum, state.Min, state.Max, state.ValueMoments:
			mutation.Num = cents
			if s.Type == value.Float {
				mutation.Num = int64(math.Float64bits(float64(cents) / 4))
			}
		case state.Record:
			record := state.AppendLogColumn(state.AppendLogTime(nil, time), number, value.Value{Type: value.Int, Num: cents})
			mutation.Member = b.Hold(state.AppendLogRecord(nil, record))
		case state.RememberID:
			mutation.Member = b.Hold(strconv.AppendInt(nil, cents, 10))
		default:
			mutation.Member = []byte(user)
			if s.Measure == state.LastTimes {
				mutation.Num = time
			}
		}
		b.Add(mutation)
	}
}

var number = state.NewColumn(1, value.Int, 0)

// Memory and Redis hold the same after random batches with late events and events out of order, for
// every window that is kept.
func TestMemoryEqualsRedis(t *testing.T) {
	client, namespace := redistest.Shared(t).Client(t), testkit.Namespace(t)
	redis := redisstore.New(client, namespace, 2)
	if err := redis.Create(ctx); err != nil {
		t.Fatal(err)
	}
	secret, err := state.ParseSecret(client.HGet(ctx, namespace+":layout", "secret").Val())
	if err != nil {
		t.Fatal(err)
	}
	partition := state.Partition{Topic: "transactions"}
	if _, err := redis.Place(ctx, testkit.FirstPlacement(partition, redis.Shards(), 0)); err != nil {
		t.Fatal(err)
	}
	list := allSeries()
	random := rand.New(rand.NewPCG(5, 6))
	writer, held := redis.NewWriter(), memory.NewKeyed(secret)
	now, offset := int64(100*day), int64(0)
	for range 24 {
		progress, err := redis.Progress(ctx, []state.Partition{partition})
		if err != nil {
			t.Fatal(err)
		}
		b := &state.Batch{Ranges: []state.PartitionRange{{Partition: partition, Progress: progress[0]}}}
		for range 1 + random.IntN(60) {
			now += random.Int64N(day / 20)
			at := now - random.Int64N(2*day)
			addEvent(b, list, offset, at, random.Int64N(2000)-500, fmt.Sprint("d", random.IntN(4)), fmt.Sprint("u|", random.IntN(80)))
			offset++
		}
		if err := held.Apply(ctx, b); err != nil || b.Refused > 0 {
			t.Fatal(err, b.Refusal)
		}
		if err := writer.Apply(ctx, b); err != nil || b.Refused > 0 {
			t.Fatal(err, b.Refusal)
		}
		var reads []state.Read
		for _, s := range list {
			for device := range 5 { // the last has no events
				reads = append(reads, randomRead(random, s, fmt.Sprint("d", device), now))
			}
		}
		want, err := redis.Read(ctx, reads)
		if err != nil {
			t.Fatal(err)
		}
		got, err := held.Read(ctx, reads)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range reads {
			g, w := described(t, r, &got[i], now), described(t, r, &want[i], now)
			if g != w {
				t.Fatalf("after %d events, %s of type %s, %s, tiles %d to %d\nmemory %s\nredis  %s",
					offset, r.Series.Measure, r.Series.Type, r.Entity, r.First, r.Last, g, w)
			}
		}
	}
}

// The store passes the part of the conformance suite that needs no progress.
func TestConformance(t *testing.T) {
	storetest.TestState(t, func() storetest.State { return memory.New() })
}

// randomRead asks for a window within the kept state.
func randomRead(random *rand.Rand, s *state.Series, entity string, now int64) state.Read {
	r := state.Read{Series: s, Entity: entity, Last: s.TileOf(now)}
	switch {
	case s.Keep > 0:
		r.First = s.Horizon(now)
		r.First += random.Int64N(r.Last - r.First + 1)
		r.Last -= random.Int64N(r.Last - r.First + 1)
	case s.Tile == 1 && random.IntN(2) == 0:
		r.First = math.MinInt64
	case s.Tile == 1:
		r.First = now - 4*day
	}
	return r
}

// described returns a window state as text. A log is reduced to what its readers use: the newest records since the
// horizon, up to its cap.
func described(t *testing.T, r state.Read, s *state.WindowState, now int64) string {
	t.Helper()
	slices.Sort(s.Members)
	if s.Filter != nil {
		for user := range 1000 { // more than there are: false positives must be the same too
			if s.Filter.Has(fmt.Append(nil, "u|", user)) {
				s.Members = append(s.Members, strconv.Itoa(user))
			}
		}
		return fmt.Sprintf("%q %v", s.Members, s.Filter.FalsePositiveRate())
	}
	if r.Series.Layout() == state.Groups {
		// The first keys are complete; the number of further ones may differ.
		text, of := fmt.Sprint(len(s.Groups) > r.Series.Max), *r.Series
		of.Per = ""
		for _, g := range s.Groups[:min(len(s.Groups), of.Max)] {
			text += fmt.Sprintf(" %s: %s", g.Key, described(t, state.Read{Series: &of}, &g.WindowState, now))
		}
		return text
	}
	if r.Series.Measure != state.Record {
		m := s.Moments // the last digits of floats depend on the order of events
		return fmt.Sprintf("%+v %q %d %d %v %d %.9g %.9g %v %v", s.Buckets, s.Members, s.Count, s.After, s.Capped, m.N, m.Mean, m.Squares, m.Sum, m.SquareSum)
	}
	var records []string
	var times []int64
	err := s.Log.Records(func(l state.LogRecord) bool {
		var v value.Value
		_, err := l.Column(number, &v)
		records = append(records, fmt.Sprint(l.Time, " ", v.Num, err))
		times = append(times, l.Time)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	cut, _ := s.Log.CutOff()
	over := max(0, len(records)-r.Series.Max)
	for _, time := range times[:over] {
		cut = max(cut, time)
	}
	horizon := int64(math.MinInt64)
	if r.Series.Keep > 0 {
		horizon = r.Series.Horizon(now)
	}
	records, times = records[over:], times[over:]
	for i, time := range times {
		if time < horizon {
			records[i] = ""
		}
	}
	records = slices.DeleteFunc(records, func(r string) bool { return r == "" })
	return fmt.Sprint(records, " cut ", max(cut, horizon))
}

// Estimates are as exact as they state under any secret, for few values and for many.
func TestEstimatesUnderAnySecret(t *testing.T) {
	s := &state.Series{ID: "hllog", Measure: state.Approx, Tile: day}
	held, values := memory.NewKeyed(state.NewSecret()), int64(0)
	for n := 1; n <= 300_000; n *= 3 {
		b := &state.Batch{}
		b.Update(0, 0, []byte("d"))
		for i := range n {
			values++
			b.Add(state.Mutation{Series: s, Tile: int64(i % 3), Text: &state.Text{Member: fmt.Append(nil, values)}})
		}
		if err := held.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
		states, err := held.Read(ctx, []state.Read{{Series: s, Entity: "d", First: 0, Last: 2}})
		if err != nil {
			t.Fatal(err)
		}
		most := max(1, 6*0.0081*float64(values)) // six standard errors
		if got := states[0].Count; math.Abs(float64(got-values)) > most {
			t.Errorf("the estimate of %d values is %d, want at most %.0f more or less", values, got, most)
		}
	}
}

// A sum beyond 64 bits is exact, also if it later fits into 64 bits. A sum of floats beyond their range stays
// saturated.
func TestSumsBeyond64Bits(t *testing.T) {
	ints := &state.Series{ID: "sumup", Measure: state.Sum, Type: value.Int}
	floats := &state.Series{ID: "sumup", Measure: state.Sum, Type: value.Float}
	bits := func(f float64) int64 { return int64(math.Float64bits(f)) }
	for _, c := range []struct {
		series    *state.Series
		nums      []int64
		want      string
		saturated bool
	}{
		{ints, []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}, "27670116110564327421", false},
		{ints, []int64{math.MinInt64, math.MinInt64, math.MinInt64}, "-27670116110564327424", false},
		{ints, []int64{9e18, 9e18, -9e18}, "9000000000000000000", false},
		{floats, []int64{bits(math.MaxFloat64), bits(math.MaxFloat64), bits(-math.MaxFloat64)}, "+Inf", true},
		{floats, []int64{bits(-math.MaxFloat64), bits(-math.MaxFloat64), bits(1)}, "-Inf", true},
	} {
		s := memory.New()
		b := &state.Batch{}
		b.Update(0, 0, []byte("d"))
		for _, num := range c.nums {
			b.Add(state.Mutation{Series: c.series, Num: num})
		}
		if err := s.Apply(ctx, b); err != nil {
			t.Fatal(err)
		}
		got, _ := s.Read(ctx, []state.Read{{Series: c.series, Entity: "d"}})
		if v := got[0].Buckets[0].Value; string(v.AppendText(nil)) != c.want || v.Saturated() != c.saturated {
			t.Errorf("the sum of %v is %s, %+v; want %s, saturated %v", c.nums, v.AppendText(nil), v, c.want, c.saturated)
		}
	}
}
