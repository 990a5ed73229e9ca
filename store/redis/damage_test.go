package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// section is a section of packed state.
func section(tag uint32, body string) string {
	return string([]byte{byte(tag >> 16), byte(tag >> 8), byte(tag), byte(len(body))}) + body
}

func childSection(group, name, sections string) string {
	return string(packed.AppendChild(nil, packed.Child{Tag: state.EmbeddingTag(group), Name: []byte(name), Sections: []byte(sections)}))
}

// unending is the beginning of a section that is longer than any key.
const unending = "\x01\x02\x03\xff\xff\xff\x7f"

// Names of what is read, see nameOf.
const own, child, neighbour = "count sumsu users ", "d1|u1 ", "d1|u2 "

// holding is the content of a key at the start, and what it damages.
type holding struct {
	ofChild bool   // the key is that of d1|u1, not of d1
	content string // none: a value of another type
	damaged string
}

func holdings() map[string]holding {
	other := &state.Series{ID: "other", Group: "devic", By: []string{"device"}, Measure: state.Distinct, Tile: day}
	sound := padded(users, 3000, 1)
	return map[string]holding{
		"garbage":           {content: strings.Repeat("\xfe", fullAt), damaged: own + child + neighbour},
		"zeros":             {content: strings.Repeat("\x00", fullAt), damaged: own + child + neighbour},
		"a cut header":      {content: "\x00\x01", damaged: own + child + neighbour},
		"a false header":    {content: "\x00\xff\xff\xffabcd" + sound},
		"an unended one":    {content: sound + unending, damaged: own + child + neighbour},
		"a loss":            {content: sound + section(packed.LossTag, "?"), damaged: own + child + neighbour},
		"a series":          {content: sound + section(amount.Tag(), "\x02"), damaged: "sumsu "},
		"a child":           {content: sound + childSection("pairs", "u1", unending), damaged: child},
		"a child's series":  {content: sound + childSection("pairs", "u1", section(metBy.Tag(), "\x02")), damaged: child},
		"names of children": {content: sound + section(state.EmbeddingTag("pairs"), "\x7f"), damaged: child + neighbour},
		"another type":      {damaged: own + child + neighbour},
		"unknown series":    {content: padded(other, fullAt, 1)},
		"unknown children":  {content: childSection("gone", "c1", padded(other, fullAt, 1))},
		"a child's garbage": {ofChild: true, content: strings.Repeat("\xfe", fullAt), damaged: child},
		"in a child's key":  {ofChild: true, content: section(metBy.Tag(), "\x02"), damaged: child},
		"a child's type":    {ofChild: true, damaged: child},
	}
}

// A key with any content stays below 1 MiB under eight writers. What cannot be read is damaged until it is dropped;
// everything else is counted, and states after the drop what was lost.
func TestKeyWithAnyContentStaysShort(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		for name, test := range holdings() {
			t.Run(name, func(t *testing.T) {
				d := &damaging{T: t, s: newStore(t, s.redis, 1), series: metBy, entity: "d1|u1"}
				if !test.ofChild {
					d.series, d.entity = events, "d1"
				}
				list := d.run(test.content)
				if got := d.damaged(); got != test.damaged {
					t.Errorf("damaged series: %q, want %q", got, test.damaged)
				}
				d.drop(test.damaged)
				d.check(list, test.damaged)
			})
		}
	})
}

// damaging is a test with damage in the key of an entity.
type damaging struct {
	*testing.T
	s      *Store
	series *state.Series
	entity string
}

// run lets eight writers append to d1 and d1|u1, after one of their keys was set to the content.
func (d *damaging) run(content string) (list []event) {
	const writers, rounds, size = 8, 2, 650
	key, random := childKey(d.s, d.series, d.entity), rand.New(rand.NewPCG(7, 8))
	var each []*writer
	for id := range int32(writers) {
		start(d.T, d.s, state.Partition{Topic: "tx", ID: id})
		each = append(each, d.s.newWriter())
	}
	if content == "" {
		d.s.redis.HSet(d.Context(), key, "not", "ours")
	} else {
		d.s.redis.Set(d.Context(), key, content, 0)
	}
	longest := int64(0)
	for range rounds {
		for id, w := range each {
			b, more := crowdBatch(d.T, d.s, state.Partition{Topic: "tx", ID: int32(id)}, random, size, true)
			b.Update(0, b.Ranges[0].To, []byte("d1|u2"))
			b.Add(state.Mutation{Series: metBy, Tile: 100, Text: &state.Text{Member: []byte("u2")}})
			b.Ranges[0].To++
			list = append(list, more...)
			apply(d.T, w, b)
			for _, key := range []string{deviceKey(d.s, "d1"), childKey(d.s, metBy, "d1|u1")} {
				longest = max(longest, d.s.redis.StrLen(d.Context(), key).Val())
			}
		}
	}
	if longest > 1<<20 || longest < 300<<10 && d.s.redis.Type(d.Context(), key).Val() == "string" {
		d.Errorf("the longest key had %d bytes, want between 300 KiB and 1 MiB", longest)
	}
	return list
}

// reads returns one read of each series.
func (d *damaging) reads() []state.Read {
	return []state.Read{
		{Series: events, Entity: "d1", First: 100, Last: 100}, {Series: amount, Entity: "d1", First: 100, Last: 100},
		{Series: users, Entity: "d1", First: 100, Last: 100},
		{Series: metBy, Entity: "d1|u1", First: 100, Last: 100}, {Series: metBy, Entity: "d1|u2", First: 100, Last: 100},
	}
}

func nameOf(r *state.Read) string {
	if r.Series == metBy {
		return r.Entity + " "
	}
	return r.Series.ID + " "
}

func (d *damaging) read(r state.Read) state.WindowState {
	d.Helper()
	got, err := d.s.Read(d.Context(), []state.Read{r})
	if err != nil {
		d.Fatal(err)
	}
	return got[0]
}

// damaged names what reads say is damaged.
func (d *damaging) damaged() (names string) {
	for _, r := range d.reads() {
		if d.read(r).Err != nil {
			names += nameOf(&r)
		}
	}
	return names
}

// drop drops the damage as an operator would.
func (d *damaging) drop(damaged string) {
	of, entity := d.series, d.entity
	if damaged == child {
		of, entity = metBy, "d1|u1"
	}
	held, err := d.s.Inspect(d.Context(), of, entity)
	if err != nil || held.ParentDamage != nil {
		d.Fatal(err, held.ParentDamage)
	}
	kept := packed.Salvaged(held.Packed, func(tag uint32) *state.Series {
		series := []*state.Series{events, amount, users, metBy}
		if i := slices.IndexFunc(series, func(s *state.Series) bool { return s.Tag() == tag && s.Group == of.Group }); i >= 0 {
			return series[i]
		}
		return nil
	})
	if (kept.Wrong != nil || held.Type != "") != (damaged != "") {
		d.Errorf("an operator sees %v, %q", kept.Wrong, held.Type)
	}
	if damaged == "" {
		return
	}
	if _, err := d.s.Drop(d.Context(), held, kept.Kept, packed.Loss{Tags: kept.Tags}, of.GroupKeep); err != nil {
		d.Fatal(err)
	}
}

// check compares what was never damaged with its events, and fails unless the rest says that it lost
// some.
func (d *damaging) check(list []event, damaged string) {
	sum, all := int64(0), map[string]bool{}
	for _, e := range list {
		sum += e.cents
		all[e.user] = true
	}
	for i, r := range d.reads() {
		got, broken := d.read(r), strings.Contains(damaged, nameOf(&r))
		lost := got.LostUntil != nil && *got.LostUntil == 100*day
		if got.Err != nil || lost != broken {
			d.Errorf("%slacks what records up to %v did: %v", nameOf(&r), got.LostUntil, got.Err)
		}
		if broken {
			continue
		}
		if want := []int64{int64(len(list)), sum, 0, 0, 0}[i]; i < 2 && (len(got.Buckets) != 1 || got.Buckets[0].Value.Num != want) {
			d.Errorf("%sis %+v, want %d", nameOf(&r), got.Buckets, want)
		}
		had := 0
		for _, m := range got.Members {
			if all[m] || m == "u2" {
				had++
			}
		}
		if want := []int{0, 0, len(all), len(all), 1}[i]; had != want {
			d.Errorf("%shas %d members, want %d", nameOf(&r), had, want)
		}
	}
}

// A note of damage survives compactions, moves and appends.
func TestDamageStaysUntilItIsDropped(t *testing.T) {
	t.Parallel()
	s := newStore(t, miniredis(t), 1)
	start(t, s, transactions)
	s.redis.Set(t.Context(), childKey(s, beside, "d1"), childSection("pairs", "u1", unending), 0)
	d, w := &damaging{T: t, s: s}, s.newWriter()
	for i := range int64(400) {
		b := begin(t, s, transactions)
		fillPairs(b, event{offset: i, device: "d1", user: fmt.Sprint("u", i%100), time: 100 * day})
		apply(t, w, b)
		if got := d.read(state.Read{Series: pairs, Entity: "d1|u1", Last: 1000}); i > 3 && got.Err == nil {
			t.Fatalf("after %d events the pair has %+v", i, got)
		}
	}
	if own := s.redis.StrLen(t.Context(), childKey(s, pairs, "d1|u1")).Val(); own == 0 || count(t, s, pairs, "d1|u2") != 4 {
		t.Errorf("%d bytes were spilled, so nothing was tested", own)
	}
}
