package protocol

import (
	"slices"
	"testing"

	"github.com/weir-stream/weir/state"
)

// A shard that does not answer counts as read from the server that it was last read from, and from none if it never was:
// whatever server answers later has not been seen.
func TestServersOfShardsThatDoNotAnswer(t *testing.T) {
	a, b, away := &Server{Run: "a"}, &Server{Run: "b"}, state.ErrUnavailable
	var p past
	for i, step := range []struct {
		servers []*Server
		missing []error
		want    []string
	}{
		{[]*Server{a, nil, nil}, []error{nil, away, nil}, []string{"a", state.Unread, ""}},
		{[]*Server{a, b, a}, []error{away, nil, nil}, []string{"a", "b", "a"}},
		{[]*Server{b, nil, b}, []error{away, away, nil}, []string{"a", "b", "b"}},
	} {
		if got := p.keepRuns(step.servers, step.missing); !slices.Equal(got, step.want) {
			t.Errorf("step %d: runs %q, want %q", i, got, step.want)
		}
	}
}
