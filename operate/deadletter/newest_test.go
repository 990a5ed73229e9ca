package deadletter

import (
	"fmt"
	"strings"
	"testing"
)

// shown are the values of letters.
func shown(letters []*Letter) string {
	var values []string
	for _, l := range letters {
		values = append(values, fmt.Sprintf("%.6s,%t", l.Value, l.Replayed))
	}
	return strings.Join(values, " ")
}

func TestNewest(t *testing.T) {
	f := newFixture(t)
	read := func(most int, reasons ...string) string {
		t.Helper()
		letters, err := Newest(f.context(), f.topic, &Filter{Reasons: reasons}, most)
		if err != nil {
			t.Fatal(err)
		}
		return shown(letters)
	}
	if got := read(5); got != "" {
		t.Errorf("an empty topic has the letters %s", got)
	}
	f.setAside(
		letter{source: f.at(0, 1), reason: "wrong_type", value: "a"},
		letter{partition: 1, source: f.at(1, 1), reason: "malformed", value: "b", second: 1},
		letter{source: f.at(0, 2), reason: "wrong_type", value: "c", second: 2},
	)
	f.replay(func(r *Replay) { r.Filter.IDs = []RecordID{f.at(0, 1)} })
	for _, test := range []struct{ got, want string }{
		{read(5), "c,false b,false a,true"},
		{read(2), "c,false b,false"},
		{read(5, "wrong_type"), "c,false a,true"},
	} {
		if test.got != test.want {
			t.Errorf("got %s, want %s", test.got, test.want)
		}
	}
	if _, err := Newest(f.context(), f.topic, &Filter{Reasons: []string{"none"}}, 1); err == nil || !strings.HasPrefix(err.Error(), `"none" is not a reason`) {
		t.Errorf("an unknown reason: got error %v", err)
	}

	// It reads fewer large records, and no record that is too large.
	for i := range 20 {
		f.setAside(letter{source: f.at(0, int64(10+i)), reason: "oversized", value: fmt.Sprintf("%02d", i) + strings.Repeat("x", 100_000), second: 10 + i})
	}
	within := func(bytes int) (string, error) {
		letters, err := newest(f.context(), f.topic, &Filter{}, 2, bytes)
		return shown(letters), err
	}
	if got, err := within(1 << 20); err != nil || got != "19xxxx,false 18xxxx,false" {
		t.Errorf("within 1 MiB: got %s, error %v", got, err)
	}
	if got, err := within(250_000); err != nil || got != "19xxxx,false b,false" {
		t.Errorf("within 250,000 bytes: got %s, error %v", got, err)
	}
	want := "the last records of topic " + f.topic.Name + " have more than 0 MiB; look with weir deadletters"
	if _, err := within(50_000); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
