package cost

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

var update = flag.Bool("update", false, "rewrite the files that tests compare with")

// The explanation of the shipped definitions is recorded. The series' IDs in it must not change, or
// stores lose their state.
func TestExplainText(t *testing.T) {
	r, err := definition.Load("../../config/features")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	Explain(r).WriteText(&text)
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
		t.Errorf("explain (-want +got), rewritten by go test -update:\n%s", diff)
	}
}

// A log is explained with what it holds of each event, also to compare it with the event in hand.
func TestExplainLogColumns(t *testing.T) {
	p := Explain(defined.Registry(t, `
streams:
  tx: {topic: transactions, timestamp: ts, fields: {user: string, ip: string, merchant: string, amount: decimal, ok: bool}}
features:
  here: COUNT(1h, tx, user, where='ok and ip == event.ip')
  spent: AVG(7d, tx, amount, user, where='merchant == event.merchant and ip != event.ip', max=50)
  paid: SUM(7d, tx, amount, user)
`))
	for _, s := range p.Series {
		var want []string
		if s.Measure == "record" {
			want = []string{"ip", "ok", "amount", "merchant"}
		}
		if diff := cmp.Diff(want, s.Columns); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.Measure, diff)
		}
	}
	var text strings.Builder
	p.WriteText(&text)
	if !strings.Contains(text.String(), "  record (ip; ok; amount; merchant), newest 1000  ") {
		t.Error(text.String())
	}
	for _, f := range p.Features {
		if of := f.Name != "paid"; of != (f.Event == "tx") || of != strings.HasSuffix(f.Meaning, ", compared with the event in hand") {
			t.Errorf("%s reads the event of %q and means %q", f.Name, f.Event, f.Meaning)
		}
	}
}

// The explanation of a stream also says where its enriched events are written.
func TestExplainStreams(t *testing.T) {
	r := defined.Registry(t, `
streams:
  login: {topic: logins, timestamp: ts, fields: {user: string}}
  tx:
    topic: transactions
    timestamp: ts
    id: id
    fields: {user: string}
    remember_ids: 10m
    dedup: 1h
    enrich: {service: risk, topic: transactions.enriched, format: avro}
features:
  payments: COUNT(7d, tx, user)
services:
  risk: [payments]
`)
	p := Explain(r)
	if diff := cmp.Diff([]Stream{
		{Name: "login", Topics: []string{"logins"}},
		{
			Name: "tx", Topics: []string{"transactions"}, Entities: 1, Mutations: 2, RememberIDs: "10m",
			Dedup:  &Dedup{Within: "1h", EventBytes: 72, PartitionBytes: 36 << 20},
			Enrich: &Enrichment{Service: "risk", Topic: "transactions.enriched", Format: "avro"},
		},
	}, p.Streams); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
	var text strings.Builder
	p.WriteText(&text)
	const want = `EVENT OF  TOPIC         ENTITIES  FILTERS  MUTATIONS  IDS KEPT  WRITTEN TO                    WITH SERVICE
login     logins        0         0        0          -         -                             -
tx        transactions  1         0        2          10m       transactions.enriched (avro)  risk

ONCE BY ID  WITHIN  MEMORY, AN EVENT WITHIN IT  MEMORY, A PARTITION
tx          1h      up to 72 bytes              up to 36 MiB
`
	if got, _, _ := strings.Cut(text.String(), "\nENTITY"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What is kept for centuries is explained as well.
func TestExplainTheLongestWindow(t *testing.T) {
	r := defined.Features(t, "ages: COUNT(36500d, tx, user, delay=36500d, keep=36500d, tile=exact)")
	if got := Explain(r).Series[0].Keep; got != "109500d" {
		t.Errorf("the log is kept for %s, want 109500d", got)
	}
	size := Size(r, &Workload{Events: map[string]float64{"tx": 1}, Entities: map[string]float64{"user": 1000}, Memory: 1 << 30})
	if got, want := size.Entities[0].Events, 109500*86.4; got < want-1 || got > want+1 {
		t.Errorf("an entity has %v events, want about %v", got, want)
	}
}

func TestExplain(t *testing.T) {
	r := defined.Features(t,
		"count: COUNT(7d, tx, user)", "longer: COUNT(30d, tx, user, keep=2h)",
		"average: AVG(1d, tx, amount, user, where='ok', description=d, owner=o)",
		"ever: COUNT(lifetime, login, user)",
		"devices: COUNT_DISTINCT(7d, tx, user, device, method=last_seen, max=3)",
		"estimate: APPROX_COUNT_DISTINCT(7d, tx, ip_c, user)",
		"known: SEEN(10d, login, device, user, max=100)")
	p := Explain(r)
	if diff := cmp.Diff([]Stream{
		{Name: "login", Topics: []string{"logins"}, Entities: 2, Mutations: 2},
		{Name: "tx", Topics: []string{"transactions"}, Entities: 2, Filters: 1, Mutations: 5},
	}, p.Streams); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
	// A user has a key with 32 tiles of the count, 26 of the sum and of its number, one that is
	// kept forever, and three values.
	if got, want := p.Entities[2].BytesFull, int64(150+5*8+(32+26+26+1)*5+3*16); got != want {
		t.Errorf("a user takes %d bytes, want %d", got, want)
	}
	if got, want := p.Entities[2].BytesOnce, int64(150+5*8+4*5+16); got != want {
		t.Errorf("a user seen once takes %d bytes, want %d", got, want)
	}
	if got, want := p.Entities[1].BytesFull, int64(150+8+9*12288); got != want {
		t.Errorf("a segment takes %d bytes, want %d", got, want)
	}
	// The filters of 12 days hold 100 values each, at half of a tenth of a hundredth: 15.8 bits a
	// value.
	if got, want := p.Entities[0].BytesFull, int64(150+8+12*198); got != want {
		t.Errorf("a device takes %d bytes, want %d", got, want)
	}
	if got, want := p.Entities[0].BytesOnce, int64(150+8+12); got != want {
		t.Errorf("a device seen once takes %d bytes, want %d", got, want)
	}
	features := map[string]Feature{}
	for _, f := range p.Features {
		features[f.Name] = f
	}
	series := map[string]Series{}
	for _, s := range p.Series {
		series[s.Features[0]+" "+s.Measure] = s
	}
	if diff := cmp.Diff(Feature{
		Name: "average", Description: "d", Owner: "o", Definition: "AVG(1d, tx, amount, user, where='ok')", Meaning: "avg of amount for each user",
		State: []string{"tiles"}, Series: []string{series["average sum"].ID, series["average count_values"].ID},
		Keys: 1, RoundTrips: 1, Exact: true,
	}, features["average"]); diff != "" {
		t.Errorf("average (-want +got):\n%s", diff)
	}
	for name, keys := range map[string]int{"count": 1, "ever": 1, "devices": 1, "estimate": 1} {
		if got := features[name].Keys; got != keys {
			t.Errorf("%s reads %d keys, want %d", name, got, keys)
		}
	}
	if f := features["estimate"]; f.Exact || f.StandardError != 0.0081 {
		t.Errorf("estimate: exact %t, standard error %g; want an estimate with 0.0081", f.Exact, f.StandardError)
	}
	if f := features["known"]; f.Exact || f.FalsePositiveRate != 0.01 || f.State[0] != "filters" {
		t.Errorf("known: exact %t, rate of false positives %g, state %s; want an estimate with 0.01 from filters", f.Exact, f.FalsePositiveRate, f.State)
	}
	shared := r.Features[1].Series[0]
	if diff := cmp.Diff(Series{
		ID: shared.ID, Group: shared.Group, Stream: "tx", By: []string{"user"}, Measure: "count", State: "tiles",
		Tile: "1d", Keep: "722h", Features: []string{"count", "longer"},
	}, series["count count"]); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	if s := series["devices last_times"]; s.Tile != "exact" || s.Max != 3 || s.Group != shared.Group || s.State != "last seen" {
		t.Errorf("unexpected series of last_times: %+v", s)
	}
	if s := series["ever count"]; s.Tile != "lifetime" || s.Keep != "forever" {
		t.Errorf("ever is not kept forever in one lifetime tile: %+v", s)
	}
}

func TestExplainTilesByKey(t *testing.T) {
	p := Explain(defined.Features(t,
		"spent: SUM(7d, tx, amount, user, per=device)", "sizes: HISTOGRAM(7d, tx, amount, user, bins=[1])",
		"rough: QUANTILE(7d, tx, amount, user, p=0.5, error=0.02)", "sharp: QUANTILE(7d, tx, amount, user, p=0.5, tile=exact)",
		"share: RATIO(7d, tx, user, condition='ok', where='fee > 1')", "spread: STDDEV(7d, tx, amount, user)",
		"last: LAST(7d, tx, device, user)"))
	var text strings.Builder
	p.WriteText(&text)
	for _, want := range []string{
		"tx        transactions  1         2        8          -         -           -\n",
		// One key with eight series of 9 days each (of 100 devices, and of one range each; two of
		// the ratio, of moments and of values) and the log.
		fmt.Sprintf("user    8       %d               %d\n", 150+8*8+3*(5+14)+2*5+18+14+25, 150+8*8+100*(9*5+14)+2*(9*5+14)+2*9*5+9*18+9*14+1000*25),
		"rough    tiles by key  1     1      ±2%    quantile of amount for each user ",
		"sharp    log           1     1      yes    quantile of amount for each user ",
		"sum of amount per device, first 100  1d",
		"count per range of amount",
		"fee > 1, ok",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	for _, f := range p.Features {
		if (f.RelativeError > 0) != (f.Name == "rough") || f.Exact == (f.Name == "rough") {
			t.Errorf("%s: exact %v, relative error %v; only rough is an estimate", f.Name, f.Exact, f.RelativeError)
		}
	}
}

func TestExplainJSON(t *testing.T) {
	data, err := json.Marshal(Explain(defined.Features(t, "f: COUNT(7d, tx, user)")))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"streams":[{"name":"login","topics":["logins"],"entities":0,"filters":0,"mutations":0},` +
		`{"name":"tx","topics":["transactions"],"entities":1,"filters":0,"mutations":1}],` +
		`"entities":[{"by":["user"],"series":["VAgsA"],"bytes_once":163,"bytes_full":203}],` +
		`"series":[{"id":"VAgsA","group":"ch8w","stream":"tx","by":["user"],"measure":"count","state":"tiles","tile":"1d","keep":"169h","features":["f"]}],` +
		`"features":[{"name":"f","definition":"COUNT(7d, tx, user)","meaning":"count of tx events for each user","state":["tiles"],"series":["VAgsA"],"keys":1,"round_trips":1,"exact":true}]}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestShippedDefinitions checks the documentation's statements about the shipped definitions.
func TestShippedDefinitions(t *testing.T) {
	r, err := definition.Load("../../config/features")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"device_tx_7d":     "COUNT(7d, transaction, device_id)",
		"user_amount_1d":   "SUM(1d, transaction, amount, user_id)",
		"device_users_30d": "COUNT_DISTINCT(30d, login, device_id, user_id)",
	} {
		if f := defined.Feature(t, r, name); f.Definition != want {
			t.Errorf("%s is %s, want %s", name, f.Definition, want)
		}
	}
	for _, f := range r.Features {
		if f.Description == "" {
			t.Errorf("%s has no description", f.Name)
		}
	}
	if len(r.Features) != 24 {
		t.Errorf("%d features, want 24", len(r.Features))
	}
	// The page draws these; no rule engine asks for them.
	used := map[string]bool{"device_user_ids_30d": true, "user_device_ids_30d": true}
	for _, s := range r.Services {
		for _, f := range s.Features {
			used[f.Name] = true
		}
	}
	if len(used) != len(r.Features) || len(r.Services) != 4 {
		t.Errorf("%d services and the page use %d of %d features, want 4 services and all features", len(r.Services), len(used), len(r.Features))
	}
}
