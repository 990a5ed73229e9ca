package busiest

import (
	"github.com/weir-stream/weir/state"
)

// A sketch finds the entities with the most events of a key, in constant space, as MV-Sketch does
// (Tang, Huang, Lee: "MV-Sketch: A Fast and Compact Invertible Sketch for Heavy Flow Detection in
// Network Data Streams", INFOCOM 2019). Each entity falls into one bucket of each row by its hash.
// A bucket counts its events and, by the majority vote of Boyer and Moore, finds the entity with
// most of them: each event of another entity cancels one of the entity that leads. So in a bucket
//
//	the entity that leads has had at least lead events, and at most (events+lead)/2
//	any other has had at most (events-lead)/2
//
// since each cancelled pair has at most one event of an entity.
type sketch [rows][buckets]bucket

const (
	rows = 2
	// An entity with more than about one in so many events is found.
	buckets = 1024
)

// bucket is 40 bytes, and the name of an entity.
type bucket struct {
	hash         uint64 // of the entity that leads
	events, lead uint32
	entity       []byte // its text; valid if lead is not 0
}

func (s *sketch) bucketOf(row int, hash uint64) *bucket {
	return &s[row][hash>>(32*row)%buckets]
}

// add counts an event of an entity. It copies the entity's text.
func (s *sketch) add(hash uint64, entity []byte) {
	for row := range s {
		b := s.bucketOf(row, hash)
		b.events++
		switch {
		case b.lead == 0:
			b.hash, b.lead, b.entity = hash, 1, append(b.entity[:0], entity...)
		case b.hash == hash:
			b.lead++
		default:
			b.lead--
		}
	}
}

// forget removes all events. The memory of names stays.
func (s *sketch) forget() {
	for row := range s {
		for i := range s[row] {
			b := &s[row][i]
			b.events, b.lead = 0, 0
		}
	}
}

// bounds returns how many events an entity has had at least and at most.
func (s *sketch) bounds(hash uint64) (least, most int64) {
	for row := range s {
		b := s.bucketOf(row, hash)
		atMost := b.others()
		if b.lead > 0 && b.hash == hash {
			least = max(least, int64(b.lead))
			atMost += int64(b.lead)
		}
		if row == 0 || atMost < most {
			most = atMost
		}
	}
	return least, most
}

// others returns how many events any entity of the bucket, except the leader, may have had.
func (b *bucket) others() int64 { return int64(b.events-b.lead) / 2 }

// rest returns how many events any entity may have had that leads in no bucket.
func (s *sketch) rest() (most int64) {
	for row := range s {
		var ofRow int64
		for i := range s[row] {
			ofRow = max(ofRow, s[row][i].others())
		}
		if row == 0 || ofRow < most {
			most = ofRow
		}
	}
	return most
}

// list lists the entities that lead in a bucket of any of the sketches, at most so many of those with the most events, with
// how many events they have had in all of them.
func list(key string, sketches []*sketch, most int) state.BusiestKey {
	k := state.BusiestKey{Key: key, Entities: []state.BusyEntity{}}
	for _, s := range sketches {
		k.Rest += s.rest()
	}
	floor := int64(0) // as many as are listed have had at least so many events
	for n, s := range sketches {
		for row := range s {
			for i := range s[row] {
				b := &s[row][i]
				if b.lead == 0 || leads(sketches[:n], rows, b.hash) || leads(sketches[n:n+1], row, b.hash) {
					continue // or listed already
				}
				least, atMost := sum(sketches, b.hash)
				if least < floor {
					k.Rest = max(k.Rest, atMost)
					continue
				}
				k.Entities = append(k.Entities, state.BusyEntity{Entity: string(b.entity), Events: least, Error: atMost - least})
				if len(k.Entities) == 4*most {
					k.Keep(most)
					floor = k.Entities[most-1].Events
				}
			}
		}
	}
	k.Keep(most)
	return k
}

// leads reports whether an entity leads in a bucket of the first rows of any of the sketches.
func leads(sketches []*sketch, rows int, hash uint64) bool {
	for _, s := range sketches {
		for row := range rows {
			if b := s.bucketOf(row, hash); b.lead > 0 && b.hash == hash {
				return true
			}
		}
	}
	return false
}

// sum returns how many events an entity has had at least and at most, over the sketches.
func sum(sketches []*sketch, hash uint64) (least, most int64) {
	for _, s := range sketches {
		l, m := s.bounds(hash)
		least, most = least+l, most+m
	}
	return least, most
}
