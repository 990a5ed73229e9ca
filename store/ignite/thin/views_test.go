package thin

import (
	"fmt"
	"testing"
)

// Nodes are of one side only if each sees all others of it.
func TestSides(t *testing.T) {
	a, b, c := UUID{Low: 1}, UUID{Low: 2}, UUID{Low: 3}
	all := []UUID{a, b, c}
	for _, each := range []struct {
		what string
		sees [3][]UUID
		want string
	}{
		{"one cluster", [3][]UUID{all, all, all}, "[[a b c]]"},
		{"one cluster, with a node that is not connected", [3][]UUID{append(all, UUID{Low: 4}), all, all}, "[[a b c]]"},
		{"one of three goes on alone", [3][]UUID{{a, c}, {b}, {a, c}}, "[[a c] [b]]"},
		{"one of three is no longer seen, and does not know it yet", [3][]UUID{{a, c}, all, {a, c}}, "[[a c] [b]]"},
		{"one of three has given up two, who do not know it yet", [3][]UUID{all, {b}, all}, "[[a c] [b]]"},
		{"two have given each other up, and see the third", [3][]UUID{{a, c}, {b, c}, all}, "[[a c] [b]]"},
		{"three clusters", [3][]UUID{{a}, {b}, {c}}, "[[a] [b] [c]]"},
		{"a node that sees none", [3][]UUID{nil, all, all}, "[[a] [b c]]"},
	} {
		var views []view
		for i, sees := range each.sees {
			views = append(views, view{string(rune('a' + i)), all[i], sees})
		}
		if got := fmt.Sprint(sides(views)); got != each.want {
			t.Errorf("%s: the sides are %s, want %s", each.what, got, each.want)
		}
	}
	same := view{"a", a, all}
	if got := sides([]view{same, {"alias", a, all}}); len(got) != 1 {
		t.Errorf("a node with two addresses: the sides are %v", got)
	}
}
