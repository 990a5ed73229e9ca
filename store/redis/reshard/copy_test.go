package reshard

import (
	"reflect"
	"testing"
)

// A node's own line says which slots it has, also while some are moving.
func TestOwnSlots(t *testing.T) {
	t.Parallel()
	const nodes = `a1 127.0.0.1:1@2 master - 0 1 2 connected 0-100 5461
b2 127.0.0.1:3@4 myself,master - 0 1 3 connected 101-5460 5462 9000-9001 [93-<-a1] [9000->-a1]
c3 127.0.0.1:5@6 slave b2 0 1 3 connected
`
	want := [][2]int{{101, 5460}, {5462, 5462}, {9000, 9001}}
	if id, slots := ownSlots(nodes); id != "b2" || !reflect.DeepEqual(slots, want) {
		t.Errorf("node %s has %v, want b2 with %v", id, slots, want)
	}
	for _, none := range []string{"", "\n", "x", "b2 127.0.0.1:3@4 myself,slave a1 0 1 3 connected\n"} {
		if _, slots := ownSlots(none); slots != nil {
			t.Errorf("%q has %v, want no slots", none, slots)
		}
	}
}
