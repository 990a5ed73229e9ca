package record

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/state"
)

func deduplicating(name string, within time.Duration) *Stream {
	return &Stream{Name: name, Topic: "events", Dedup: within}
}

// came is a record as a plain model keeps it.
type came struct {
	offset, timestamp, newest int64
	stream, id                string
	copied                    bool
}

// plainRepeats is the definition of a repetition, by a loop over all earlier records.
func plainRepeats(earlier []came, of came, within time.Duration) bool {
	before := func(a, b int64) bool { // a is at most within before b
		return a >= b || uint64(b)-uint64(a) <= uint64(within.Milliseconds())
	}
	for _, c := range earlier {
		if c.stream == of.stream && c.id == of.id && c.copied == of.copied && before(c.timestamp, of.timestamp) &&
			before(c.newest, of.newest) && of.offset-c.offset <= MaxEarlier {
			return true
		}
	}
	return false
}

// records draws records of two streams with few IDs: late, equal and extreme timestamps, repetitions, gaps of offsets.
func records(t *rapid.T) (list []came) {
	at := came{newest: state.MinTime, timestamp: rapid.SampledFrom([]int64{0, 1_700_000_000_000, -5, math.MinInt64}).Draw(t, "first")}
	for range rapid.IntRange(0, 300).Draw(t, "records") {
		at.offset += rapid.SampledFrom([]int64{1, 1, 1, 1, 1, 2, 50, MaxEarlier - 1, MaxEarlier, MaxEarlier + 1, 1 << 33}).Draw(t, "gap")
		step := rapid.SampledFrom([]int64{0, 0, 0, 1, 1, 7, 99, 100, 101, 1000, 1001, -1, -50, -100, -101, -5000, MaxDedup.Milliseconds(), 1 << 32}).Draw(t, "step")
		if next := at.timestamp + step; (next > at.timestamp) == (step > 0) {
			at.timestamp = next
		}
		if rapid.IntRange(0, 150).Draw(t, "extreme") == 0 {
			at.timestamp = rapid.SampledFrom([]int64{0, -1, math.MaxInt64, math.MinInt64, 1 << 50}).Draw(t, "timestamp")
		}
		at.newest = max(at.newest, at.timestamp)
		at.stream = rapid.SampledFrom([]string{"", "a", "a", "a", "b", "c"}).Draw(t, "stream") // "" is no event, c without dedup
		at.id = rapid.SampledFrom([]string{"", "1", "2", "3", "x", "\xff"}).Draw(t, "id")
		at.copied = rapid.IntRange(0, 9).Draw(t, "copied") == 0
		list = append(list, at)
	}
	return list
}

var dedups = map[string]time.Duration{"a": 100 * time.Millisecond, "b": time.Second}

func (c came) play(e *Earlier) bool {
	e.Pass(c.offset, c.timestamp)
	if c.stream == "" {
		return false
	}
	event := Event{Stream: deduplicating(c.stream, dedups[c.stream]), Now: c.timestamp}
	if c.id != "" {
		event.ID = []byte(c.id)
	}
	return e.Repeats(&event, c.copied)
}

func newEarlier() *Earlier {
	return NewEarlier([]*Stream{deduplicating("a", dedups["a"]), deduplicating("b", dedups["b"]), {Name: "c", Topic: "events"},
		{Name: "d", Topic: "others", Dedup: time.Hour}}, "events", state.NewSecret())
}

// Events repeat what the plain definition says, also for one who begins to read in the middle of the log: at the first record
// that is not older, by its timestamp, than the time of the log less the longest dedup, or anywhere before it.
func TestEventsThatRepeatEarlierOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list, e := records(t), newEarlier()
		var want []bool
		for i, c := range list {
			repeats := dedups[c.stream] > 0 && c.id != "" && plainRepeats(list[:i], c, dedups[c.stream])
			want = append(want, repeats)
			if got := c.play(e); got != repeats {
				t.Fatalf("record %d, %+v: it repeats an earlier one: %v, want %v\n%+v", i, c, got, repeats, list[:i])
			}
		}
		if len(list) == 0 {
			return
		}
		from, first := rapid.IntRange(0, len(list)-1).Draw(t, "from"), 0
		if from > 0 {
			for reach := Reach([]*Stream{deduplicating("b", dedups["b"])}, "events"); first < from && list[first].timestamp < list[from-1].newest &&
				uint64(list[from-1].newest)-uint64(list[first].timestamp) > uint64(reach); first++ {
			}
		}
		e = newEarlier()
		for i := rapid.IntRange(0, first).Draw(t, "first"); i < len(list); i++ {
			if got := list[i].play(e); i >= from && got != want[i] {
				t.Fatalf("read from record %d on, record %d, %+v: it repeats an earlier one: %v, want %v\n%+v", first, i, list[i], got, want[i], list[:i])
			}
		}
	})
}

// Many events of few timestamps, of which some come again: the ring and the table grow, and go round, and the filter turns.
func TestManyEarlierEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, ids := newEarlier(), rapid.SampledFrom([]int{1, 20, 400, 1_000_000}).Draw(t, "ids")
		var list []came
		c := came{stream: "a", timestamp: 1000, newest: state.MinTime}
		for i := range 1200 {
			c.offset++
			c.timestamp += rapid.SampledFrom([]int64{0, 0, 0, 1, 1, -1, 30, -28}).Draw(t, "step")
			if rapid.IntRange(0, 300).Draw(t, "pause") == 0 {
				c.timestamp += 200
			}
			c.newest = max(c.newest, c.timestamp)
			if c.id = fmt.Sprint(rapid.IntRange(0, ids).Draw(t, "id")); i > 0 && rapid.IntRange(0, 3).Draw(t, "again") == 0 {
				c.id = list[max(0, i-rapid.IntRange(1, 300).Draw(t, "of"))].id
			}
			if got, want := c.play(e), plainRepeats(list, c, dedups["a"]); got != want {
				t.Fatalf("record %d: it repeats an earlier one: %v, want %v", i, got, want)
			}
			list = append(list, c)
		}
	})
}

// However great the rate and dedup are, what is remembered is bounded. What is cut off is counted.
func TestEarlierEventsAreBounded(t *testing.T) {
	e := NewEarlier([]*Stream{deduplicating("a", MaxDedup)}, "events", state.NewSecret())
	event, text := Event{Stream: deduplicating("a", MaxDedup)}, []byte("abcdefgh")
	const most = MaxEarlier + 1000
	for i := range int64(most) {
		text[0], text[1], text[2] = byte(i), byte(i>>8), byte(i>>16)
		e.Pass(i, i/1000)
		event.ID, event.Now = text, i/1000
		if e.Repeats(&event, false) {
			t.Fatalf("the event at offset %d repeats an earlier one", i)
		}
	}
	if w := &e.windows[0]; w.size != MaxEarlier || len(w.ring)*int(unsafe.Sizeof(w.ring[0]))+len(w.chains)*int(unsafe.Sizeof(w.chains[0]))+
		len(w.met)*int(unsafe.Sizeof(w.met[0])) != MaxEarlier*EarlierBytes || e.Cut != most-MaxEarlier {
		t.Errorf("%d events are remembered in %d places, and %d were cut off", w.size, len(w.ring), e.Cut)
	}
	for again, of := range []int64{most - 1 - MaxEarlier, most + 1 - MaxEarlier} {
		offset := most + int64(again)
		text[0], text[1], text[2] = byte(of), byte(of>>8), byte(of>>16)
		e.Pass(offset, most/1000)
		if got, want := e.Repeats(&event, false), offset-of <= MaxEarlier; got != want {
			t.Errorf("the event of offset %d comes again at offset %d: it repeats it: %v, want %v", of, offset, got, want)
		}
	}
}

// However often an ID comes, its chain stays short, for those it shares it with.
func TestEarlierEventsOfOneID(t *testing.T) {
	s := deduplicating("a", time.Hour)
	e, event := NewEarlier([]*Stream{s}, "events", state.NewSecret()), Event{Stream: s, ID: []byte("1")}
	for i := range int64(1000) {
		e.Pass(i, i)
		if event.Now = i; e.Repeats(&event, false) != (i > 0) {
			t.Fatalf("event %d repeats an earlier one: %v", i, i == 0)
		}
	}
	w := &e.windows[0]
	w.chain()
	length := 0
	for number, age := w.chains[e.secret.Hash(event.ID)>>w.shift], w.size; number-w.first < age; number = w.ring[number&uint32(len(w.ring)-1)].before {
		age = number - w.first
		length++
	}
	if length > 10 { // one that each growth has put back, and the newest
		t.Errorf("its chain has %d events", length)
	}
}

// A filter has what was added since the last turn but one, and little else.
func TestHashFilter(t *testing.T) {
	const hashes = 1 << 14
	f, random := newHashFilter(hashes), rand.New(rand.NewPCG(1, 2))
	had := func(seed uint64) (share float64) {
		for h, i := rand.New(rand.NewPCG(seed, 0)), 0; i < hashes; i++ {
			if f.mayHave(h.Uint64()) {
				share += 1.0 / hashes
			}
		}
		return share
	}
	for seed := range uint64(5) {
		for h, i := rand.New(rand.NewPCG(seed, 0)), 0; i < hashes; i++ {
			f.add(h.Uint64())
		}
		if others := had(random.Uint64()); others > 0.1 {
			t.Errorf("after %d turns, it has %.3f of the hashes that were not added", seed, others)
		}
		for before := range seed + 1 {
			if share := had(before); before+1 >= seed && share != 1 || before+1 < seed && share > 0.1 {
				t.Errorf("after %d turns, it has %.3f of those added after %d", seed, share, before)
			}
		}
		f.turn()
	}
}

// A topic without dedup costs nothing.
func TestNoEarlierEvents(t *testing.T) {
	var e *Earlier
	if e = NewEarlier([]*Stream{{Name: "a", Topic: "events"}, deduplicating("b", time.Hour)}, "others", state.Secret{}); e != nil {
		t.Fatalf("got %+v for a topic without dedup, want nil", e)
	}
	e.Pass(1, 1)
	if e.Repeats(&Event{Stream: &Stream{Name: "a"}, ID: []byte("1")}, false) {
		t.Error("an event repeats another one without dedup")
	}
}

// An event costs no allocation once as many are remembered as dedup asks for.
func BenchmarkEarlier(b *testing.B) {
	for _, most := range []int64{1000, 100_000, 900_000} {
		b.Run(fmt.Sprint(most), func(b *testing.B) {
			s := deduplicating("a", time.Duration(most)*time.Millisecond)
			e, event, text := NewEarlier([]*Stream{s}, "events", state.NewSecret()), Event{Stream: s}, []byte("tx-00000000-0000-4000-8000")
			add := func(i int64) {
				text[3], text[4], text[5], text[6] = byte(i), byte(i>>8), byte(i>>16), byte(i>>24)
				e.Pass(i, i)
				event.ID, event.Now = text, i
				if e.Repeats(&event, false) {
					b.Fatal("it repeats an earlier one")
				}
			}
			i := int64(0)
			for ; i < 2*most; i++ {
				add(i)
			}
			b.ReportAllocs()
			for b.Loop() {
				add(i)
				i++
			}
		})
	}
}
