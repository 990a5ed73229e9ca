package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weir-stream/weir/state"
)

// ever counts a device's events in another group, which is stored apart.
var ever = &state.Series{ID: "everx", Group: "etern", By: []string{"device"}, Measure: state.CountEvents}

// testRefusals checks that an entity whose state Weir did not write is counted as refused and read as an error, and hinders
// neither another entity nor its own state in another group.
func testRefusals(t *testing.T, s Namespace) {
	o := newOwner(t, s, "v1")
	o.apply(o.batch(0, 2*devices))
	o.look()
	s.Spoil(events, "d1")
	b := o.batch(2*devices, 4*devices)
	b.EveryShard = true
	b.Update(0, 4*devices-1, []byte("d1"))
	b.Add(state.Mutation{Series: ever, Num: 1})
	if o.apply(b) || b.Refused != 1 || b.Refusal == "" {
		t.Errorf("behind %v, %d refused: %q; want one entity, with a reason", b.Ranges[0].Behind, b.Refused, b.Refusal)
	}
	o.look()
	if state.Lowest(o.progress) != 4*devices {
		t.Errorf("the progress is %v, want it to pass what was refused", o.progress)
	}
	var reads []state.Read
	for d := range devices {
		reads = append(reads, state.Read{Series: events, Entity: fmt.Sprint("d", d), First: 100, Last: 100})
	}
	check := func(what string, got *state.WindowState, entity string) {
		t.Helper()
		if spoiled := entity == "d1"; spoiled != (got.Err != nil) || errors.Is(got.Err, state.ErrUnavailable) || !spoiled && (len(got.Buckets) != 1 || got.Buckets[0].Value.Num != 4) {
			t.Errorf("%s of %s: %v, error %v; want 4 events, or an error if it was spoiled", what, entity, got.Buckets, got.Err)
		}
	}
	found, err := s.Read(t.Context(), reads)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, err := s.Snapshot(t.Context(), reads)
	if err != nil {
		t.Fatal(err)
	}
	for i := range reads {
		check("a read", &found[i], reads[i].Entity)
		held := snapshot.Read(&reads[i])
		check("a snapshot", &held, reads[i].Entity)
	}
	apart, err := s.Read(t.Context(), []state.Read{{Series: ever, Entity: "d1"}})
	if err != nil || apart[0].Err != nil || len(apart[0].Buckets) != 1 {
		t.Errorf("in the other group: %+v, error %v; want one event", apart, err)
	}
}
