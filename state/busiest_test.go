package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The counts of two processors are added up. An entity that one does not list may have had as many events there as its
// Rest.
func TestMergeBusiest(t *testing.T) {
	a := Busiest{Since: 200, Keys: []BusiestKey{
		{Key: "user", Rest: 4, Entities: []BusyEntity{{"u1", 100, 10}, {"u2", 50, 0}}},
		{Key: "device", Entities: []BusyEntity{{"d1", 1, 0}}},
	}}
	b := Busiest{Since: 100, Keys: []BusiestKey{
		{Key: "user", Rest: 3, Entities: []BusyEntity{{"u3", 120, 1}, {"u1", 40, 2}}},
	}}
	want := Busiest{Since: 100, Keys: []BusiestKey{
		{Key: "device", Entities: []BusyEntity{{"d1", 1, 0}}},
		{Key: "user", Rest: 53, Entities: []BusyEntity{{"u1", 140, 12}, {"u3", 120, 1 + 4}}}, // u2 had at most 50+3
	}}
	for _, order := range [][]Busiest{{a, b}, {b, a}} {
		if diff := cmp.Diff(want, MergeBusiest(order, 2)); diff != "" {
			t.Error(diff)
		}
	}
	if got := MergeBusiest([]Busiest{{Since: 1}, {Since: 2, Hashed: true}}, 2); !got.Hashed || got.Since != 1 {
		t.Errorf("%+v, want hashed, since 1", got)
	}
	if diff := cmp.Diff(Busiest{Keys: []BusiestKey{}}, MergeBusiest(nil, 2)); diff != "" {
		t.Error(diff)
	}
}
