package features

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write anew the files that tests compare with")

// The shipped definitions' plan is written down: a series' ID in it must not
// change, or stores lose its state.
func TestExplainText(t *testing.T) {
	r, err := Load("../config/features")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Explain().WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/explain.txt", []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/explain.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text.String(), "\n")); diff != "" {
		t.Errorf("explain (-want +got), written anew by go test -update:\n%s", diff)
	}
}

func TestExplain(t *testing.T) {
	r := load(t,
		"count: COUNT(7d, tx, user)", "longer: COUNT(30d, tx, user, keep=2h)",
		"average: AVG(1d, tx, amount, user, where='ok', description=d, owner=o)",
		"ever: COUNT(lifetime, login, user)",
		"devices: COUNT_DISTINCT(7d, tx, user, device, method=last_seen, max=3)",
		"estimate: APPROX_COUNT_DISTINCT(7d, tx, ip_c, user)")
	p := r.Explain()
	if diff := cmp.Diff([]StreamPlan{
		{Name: "login", Topic: "logins", Entities: 1, Operations: 1},
		{Name: "tx", Topic: "transactions", Entities: 2, Filters: 1, Operations: 5},
	}, p.Streams); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
	// Of a user: the group's hash with 32 tiles of the count, 27 of the sum and
	// of its number; the hash of what is kept for ever; the sorted set.
	if got, want := p.Entities[1].BytesFull, int64(165+(32+27+27)*16+165+16+165+3*20); got != want {
		t.Errorf("a user takes %d bytes, want %d", got, want)
	}
	if got, want := p.Entities[1].BytesOnce, int64(165+3*16+165+16+165+20); got != want {
		t.Errorf("a user seen once takes %d bytes, want %d", got, want)
	}
	if got, want := p.Entities[0].BytesFull, int64(9*(165+14336)); got != want {
		t.Errorf("a segment takes %d bytes, want %d", got, want)
	}
	features := map[string]FeaturePlan{}
	for _, f := range p.Features {
		features[f.Name] = f
	}
	series := map[string]SeriesPlan{}
	for _, s := range p.Series {
		series[s.Features[0]+" "+s.Measure] = s
	}
	if diff := cmp.Diff(FeaturePlan{
		Name: "average", Description: "d", Owner: "o", Definition: "AVG(1d, tx, amount, user, where='ok')",
		State: []string{"tiles"}, Series: []string{series["average sum"].ID, series["average count_values"].ID},
		Keys: 1, RoundTrips: 1, Exact: true,
	}, features["average"]); diff != "" {
		t.Errorf("average (-want +got):\n%s", diff)
	}
	for name, keys := range map[string]int64{"count": 1, "ever": 1, "devices": 1, "estimate": 7} {
		if got := features[name].Keys; got != keys {
			t.Errorf("%s reads %d keys, want %d", name, got, keys)
		}
	}
	if f := features["estimate"]; f.Exact || f.StandardError != 0.0081 {
		t.Errorf("estimate: exact %t, standard error %g", f.Exact, f.StandardError)
	}
	shared := r.Features[1].Series[0]
	if diff := cmp.Diff(SeriesPlan{
		ID: shared.ID, Group: shared.Group, Stream: "tx", By: []string{"user"}, Measure: "count", State: "tiles",
		Tile: "1d", Keep: "722h", Features: []string{"count", "longer"},
	}, series["count count"]); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if s := series["devices touch"]; s.Tile != "exact" || s.Max != 3 || s.Group != "" || s.State != "last seen" {
		t.Errorf("devices: %+v", s)
	}
	if s := series["ever count"]; s.Tile != "lifetime" || s.Keep != "for ever" {
		t.Errorf("ever: %+v", s)
	}
}

func TestExplainJSON(t *testing.T) {
	data, err := json.Marshal(load(t, "f: COUNT(7d, tx, user)").Explain())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"streams":[{"name":"login","topic":"logins","entities":0,"filters":0,"operations":0},` +
		`{"name":"tx","topic":"transactions","entities":1,"filters":0,"operations":1}],` +
		`"entities":[{"by":["user"],"series":["VAgsA"],"bytes_once":181,"bytes_full":309}],` +
		`"series":[{"id":"VAgsA","group":"88w8","stream":"tx","by":["user"],"measure":"count","state":"tiles","tile":"1d","keep":"169h","features":["f"]}],` +
		`"features":[{"name":"f","definition":"COUNT(7d, tx, user)","state":["tiles"],"series":["VAgsA"],"keys":1,"round_trips":1,"exact":true}]}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestShippedDefinitions holds the definitions to what is promised of them.
func TestShippedDefinitions(t *testing.T) {
	r, err := Load("../config/features")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"device_tx_7d":     "COUNT(7d, transaction, device_id)",
		"user_amount_1d":   "SUM(1d, transaction, amount, user_id)",
		"device_users_30d": "COUNT_DISTINCT(30d, login, device_id, user_id)",
	} {
		if f := feature(t, r, name); f.Definition != want {
			t.Errorf("%s is %s, want %s", name, f.Definition, want)
		}
	}
	for _, f := range r.Features {
		if f.Description == "" {
			t.Errorf("%s has no description", f.Name)
		}
	}
	if len(r.Features) != 13 {
		t.Errorf("%d features", len(r.Features))
	}
	used := map[string]bool{}
	for _, s := range r.Services {
		for _, f := range s.Features {
			used[f.Name] = true
		}
	}
	if len(used) != len(r.Features) || len(r.Services) != 2 {
		t.Errorf("%d services ask for %d of %d features", len(r.Services), len(used), len(r.Features))
	}
}
