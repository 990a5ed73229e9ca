package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A fill has the columns that were not kept before, or not as long, by topic.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		change []string // pairs of what is replaced
		want   string
	}{
		{nil, "map[]"},
		{[]string{"COUNT(30d, login", "COUNT(10d, login"}, "map[]"},
		{[]string{"COUNT(30d, login", "COUNT(60d, login"}, "map[logins:[logins]]"},
		{[]string{"  ratio: {expr", "  devices: COUNT(1d, pay, device)\n  ratio: {expr"}, "map[payments:[devices]]"},
		{[]string{`kind == "pay"`, `kind == "payment"`}, "map[payments:[count ever near paid ratio seen]]"},
	} {
		before, after := load(t, before), load(t, strings.NewReplacer(c.change...).Replace(before))
		fill, got := Fill(before, after), map[string][]string{}
		b := &Backfill{Rate: 1}
		for topic := range fill.Columns {
			b.Add(after, fill, topic, Topic{})
			got[topic] = b.Topics[len(b.Topics)-1].Features
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%q: %v, want %s", c.change, got, c.want)
		}
	}
}

// The time is that of the records, at the rate; a topic that retention has shortened says so.
func TestBackfill(t *testing.T) {
	old := load(t, before)
	after := load(t, strings.NewReplacer("COUNT(30d, login", "COUNT(60d, login", "  ratio: {expr", "  ips: COUNT(1d, pay, note)\n  ratio: {expr").Replace(before))
	fill := Fill(old, after)
	b := &Backfill{Rate: 0.5}
	b.Add(after, fill, "logins", Topic{Records: 1_000_000, CompleteSince: 1532496076032})
	b.Add(after, fill, "payments", Topic{Records: 40_000_000})
	d := &Difference{Backfill: b}
	var got strings.Builder
	d.WriteText(&got)
	// One key each: 2.0 + 1.1 + 1.9 us, at half of a core.
	want := `backfill, about 6m50s with 0.5 of a core; processes share the partitions
  logins: up to 1000000 records, about 10s, for logins
      retention has removed records that are needed: complete since 2018-07-25T05:21:16.032Z
  payments: up to 40000000 records, about 6m40s, for ips
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	for want, b := range map[string]*Backfill{
		"backfill: nothing is to be read\n": {Rate: 1},
		"backfill, about 0s with 1 of a core; processes share the partitions\n  x: there is no such topic yet, for f\n": {
			Rate: 1, Topics: []Topic{{Name: "x", Features: []string{"f"}, Missing: true}},
		},
	} {
		got.Reset()
		(&Difference{Backfill: b}).WriteText(&got)
		if got.String() != want {
			t.Errorf("got  %s\nwant %s", got.String(), want)
		}
	}
}
