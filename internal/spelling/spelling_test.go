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

func TestNearest(t *testing.T) {
	names := []string{"device_tx_7d", "device_tx_30d", "user_tx_7d", "ip"}
	for name, want := range map[string]string{
		"device_tx_7d":  "device_tx_7d",
		"device_tx_8d":  "device_tx_7d",
		"devicetx7d":    "device_tx_7d",
		"user_tx":       "",
		"users_tx_7d":   "user_tx_7d",
		"id":            "ip",
		"":              "",
		"something_new": "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("nearest to %q: %q, want %q", name, got, want)
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

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "d1": "d1", "Ĝ \"x\"": "Ĝ \"x\"", "a\tb": `"a\tb"`, "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`, "\xff": `"\xff"`, "a\u202eb": `"a\u202eb"`,
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestMoment(t *testing.T) {
	for ms, want := range map[int64]string{0: "1970-01-01T00:00:00Z", 1_700_000_000_120: "2023-11-14T22:13:20.12Z", -1: "1969-12-31T23:59:59.999Z"} {
		if got := Moment(ms); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
