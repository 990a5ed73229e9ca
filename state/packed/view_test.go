package packed

import (
	"errors"
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Tags are unique only within a group: a mutation of an entity with the same text in another group
// may have the tag of a series of the view.
func TestViewAppliesMutationsOfItsGroup(t *testing.T) {
	device := &state.Series{ID: "same", Group: "device", Measure: state.CountEvents, Tile: day, Type: value.Int}
	user := *device
	user.Group = "user"
	var v View
	v.Add(device)
	v.Begin()
	v.Apply(&state.Mutation{Series: device, Num: 1})
	v.Apply(&state.Mutation{Series: &user, Num: 1})
	if i := v.Index(&user); i != -1 {
		t.Errorf("the series of another group has index %d, want -1", i)
	}
	var answer state.WindowState
	v.Read(0, &state.Read{Series: device, Last: 1}, &answer)
	if len(answer.Buckets) != 1 || answer.Buckets[0].Value.Num != 1 {
		t.Errorf("the view holds %+v, want one event", answer)
	}
}

// A view of a damaged key stays damaged after mutations and in copies.
func TestViewOfADamagedKey(t *testing.T) {
	s := &state.Series{ID: "log", Group: "g", Measure: state.Record, Tile: 1}
	v := View{Err: errors.New("damaged")}
	v.Add(s)
	v.Begin()
	_ = v.Merge(appendSection(nil, s.Tag(), []byte("no log")))
	v.Apply(&state.Mutation{Series: s, Text: &state.Text{Member: []byte("no record")}})
	for _, of := range []*View{&v, v.Copy(0)} {
		var answer state.WindowState
		if of.Read(0, &state.Read{Series: s}, &answer); answer.Err != v.Err {
			t.Errorf("error %v, want %v", answer.Err, v.Err)
		}
	}
}

// A damaged state may be left in a form that cannot be packed, such as a sketch without registers. So the copy of a
// damaged view does not pack it.
func TestCopyOfADamagedView(t *testing.T) {
	s := &state.Series{ID: "sketch", Group: "g", Measure: state.Approx, Tile: 1, Type: value.Int}
	var v View
	v.Add(s)
	v.Begin()
	if v.Err = v.Merge(appendSection(nil, s.Tag(), []byte{0, 0})); v.Err == nil {
		t.Fatal("no error for damaged state")
	}
	var answer state.WindowState
	if v.Copy(0).Read(0, &state.Read{Series: s}, &answer); answer.Err != v.Err {
		t.Errorf("error %v, want %v", answer.Err, v.Err)
	}
}
