package state

import (
	"cmp"
	"slices"
	"time"
)

// Busiest lists the entities that events have changed most lately, by field. Entities of several fields are not among
// them.
type Busiest struct {
	Keys []BusiestKey `json:"busiest"` // in the order of names
	// Since is the moment, in ms, from which applied events are counted.
	Since int64 `json:"since"`
	// Hashed means that entities are named by their hashes, as in the keys of the store.
	Hashed bool `json:"hashed,omitempty"`
}

// BusiestKey lists the busiest entities of one field.
type BusiestKey struct {
	Key      string       `json:"key"`
	Entities []BusyEntity `json:"entities"` // those with the most events first
	Rest     int64        `json:"rest"`     // no entity that is not listed has had more events than this
}

// BusyEntity is an entity that had at least Events events, and at most Error more.
type BusyEntity struct {
	Entity string `json:"entity"` // its text, see AppendEntity
	Events int64  `json:"events"`
	Error  int64  `json:"error"`
}

// BusiestFor is how long the store keeps what a processor reports as its busiest entities.
const BusiestFor = 10 * time.Second

// MergeBusiest adds up the counts of several processors, and keeps `most` entities of each field.
func MergeBusiest(all []Busiest, most int) Busiest {
	sum := Busiest{Keys: []BusiestKey{}}
	parts := map[string][]BusiestKey{}
	for i, b := range all {
		if i == 0 || b.Since < sum.Since {
			sum.Since = b.Since
		}
		sum.Hashed = sum.Hashed || b.Hashed
		for _, k := range b.Keys {
			parts[k.Key] = append(parts[k.Key], k)
		}
	}
	for _, of := range parts {
		sum.Keys = append(sum.Keys, mergeKey(of, most))
	}
	slices.SortFunc(sum.Keys, func(a, b BusiestKey) int { return cmp.Compare(a.Key, b.Key) })
	return sum
}

// mergeKey adds up the entities of one field. A part may have counted up to Rest events of an entity that it does not
// list.
func mergeKey(parts []BusiestKey, most int) BusiestKey {
	sum := BusiestKey{Key: parts[0].Key, Entities: []BusyEntity{}}
	for _, k := range parts {
		sum.Rest += k.Rest
	}
	at := map[string]int{}
	for _, k := range parts {
		for _, e := range k.Entities {
			i, known := at[e.Entity]
			if !known {
				i = len(sum.Entities)
				at[e.Entity] = i
				sum.Entities = append(sum.Entities, BusyEntity{Entity: e.Entity, Error: sum.Rest})
			}
			sum.Entities[i].Events += e.Events
			sum.Entities[i].Error += e.Error - k.Rest
		}
	}
	sum.Keep(most)
	return sum
}

// Keep sorts the entities and drops those beyond `most`.
func (k *BusiestKey) Keep(most int) {
	slices.SortFunc(k.Entities, func(a, b BusyEntity) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(b.Error, a.Error), cmp.Compare(a.Entity, b.Entity))
	})
	if len(k.Entities) <= most {
		return
	}
	for _, e := range k.Entities[most:] {
		k.Rest = max(k.Rest, e.Events+e.Error)
	}
	k.Entities = k.Entities[:most]
}
