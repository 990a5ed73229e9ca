package spelling

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3},
		{"device_tx_7d", "devise_tx_7d", 1}, {"flaw", "lawn", 2}, {"ab", "ba", 2},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("the distance from %q to %q is %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestUnknown(t *testing.T) {
	known := []string{"k", "max", "window"}
	for name, want := range map[string]string{
		"windows": `unknown option "windows"; did you mean "window"?`,
		"mx":      `unknown option "mx"; did you mean "max"?`,
		"K":       `unknown option "K"; did you mean "k"?`,
		"q":       `unknown option "q"; known: k, max, window`,
		"":        `unknown option ""; known: k, max, window`,
		"columns": `unknown option "columns"; known: k, max, window`,
	} {
		if got := Unknown("option", name, known); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
