package generate

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

const definitions = `
streams:
  transaction:
    topic: transactions
    match: type == "transaction"
    timestamp: {path: timestamp, unit: ms}
    fields:
      {event_id: {type: string, required: true}, user_id: string, device_id: string, card_id: string,
       merchant_id: string, ip: string, amount: {type: decimal, scale: 2, required: true}, status: string}
  login:
    topic: logins
    match: type == "login"
    timestamp: {path: timestamp, unit: ms}
    fields: {event_id: {type: string, required: true}, user_id: string, device_id: string, ip: string, success: bool}
features: {}
`

func everything() Options {
	return Options{
		Users: 300, Spacing: time.Second, Logins: 0.3, Nulls: 0.05, OutOfOrder: 0.1, Late: 0.05, Duplicates: 0.05, Poison: 0.1,
	}
}

// The decoder rejects exactly the events that are marked as poison.
func TestPoison(t *testing.T) {
	r := defined.Registry(t, definitions)
	d, g := r.NewDecoder(), New(1, everything())
	reasons := map[record.Reason]int{}
	for range 20_000 {
		e := g.Next()
		events, err := d.Decode(&record.Record{
			Partition: state.Partition{Topic: e.Topic}, Timestamp: e.Timestamp, Key: e.Key, Value: e.Value,
		})
		if (err != nil) != e.Poison {
			t.Fatalf("poison %t, but error %v: %s", e.Poison, err, e.Value)
		}
		if err == nil && len(events) != 1 {
			t.Fatalf("%d streams take %s, want 1", len(events), e.Value)
		}
		var p *record.Poison
		if errors.As(err, &p) {
			reasons[p.Reason]++
		}
	}
	want := []record.Reason{
		record.BadTimestamp, record.FutureTimestamp, record.Malformed, record.MissingField,
		record.MissingTimestamp, record.WrongType,
	}
	if got := slices.Sorted(maps.Keys(reasons)); !slices.Equal(got, want) {
		t.Errorf("reasons %v, want %v", got, want)
	}
}

func TestSameSeedSameEvents(t *testing.T) {
	a, b, other := New(7, everything()), New(7, everything()), New(8, everything())
	differ := false
	for range 5000 {
		x, y, z := a.Next(), b.Next(), other.Next()
		if x.Topic != y.Topic || !bytes.Equal(x.Key, y.Key) || !bytes.Equal(x.Value, y.Value) ||
			x.Timestamp != y.Timestamp || x.Poison != y.Poison {
			t.Fatalf("the same seed makes different events:\n%s\n%s", x.Value, y.Value)
		}
		differ = differ || !bytes.Equal(x.Value, z.Value)
	}
	if !differ {
		t.Error("another seed makes the same events")
	}
}

// The shares made are close to those requested.
func TestShares(t *testing.T) {
	o := everything()
	g := New(3, o)
	const n = 20_000
	counts, seen, users := map[string]float64{}, map[string]bool{}, map[string]int{}
	var first, last int64
	for i := range n {
		e := g.Next()
		if i == 0 {
			first = e.Timestamp
		}
		if e.Timestamp < last {
			t.Fatal("a record is older than the previous one")
		}
		last = e.Timestamp
		if e.Poison {
			counts["poison"]++
			continue
		}
		if seen[string(e.Value)] {
			counts["duplicates"]++
		}
		seen[string(e.Value)] = true
		var event struct {
			Type      string  `json:"type"`
			Timestamp int64   `json:"timestamp"`
			User      string  `json:"user_id"`
			Device    *string `json:"device_id"`
		}
		if err := json.Unmarshal(e.Value, &event); err != nil {
			t.Fatal(err)
		}
		users[event.User]++
		counts[event.Type]++
		if string(e.Key) != event.User {
			t.Fatalf("the key %s is not the user of %s", e.Key, e.Value)
		}
		if age := e.Timestamp - event.Timestamp; age > time.Hour.Milliseconds() {
			counts["late"]++
		} else if age > 0 {
			counts["out of order"]++
		}
		if event.Device == nil {
			counts["no device"]++
		}
	}
	for what, want := range map[string]float64{
		"poison": 0.1, "duplicates": 0.045, "login": 0.27, "transaction": 0.63, "late": 0.045, "no device": 0.017,
	} {
		if share := counts[what] / n; share < want*0.8 || share > want*1.2 {
			t.Errorf("%s: %.3f of the events, want about %.3f", what, share, want)
		}
	}
	if share := counts["out of order"] / n; share < 0.07 {
		t.Errorf("out of order: %.3f of the events, want at least 0.07", share)
	}
	if hot := slices.Max(slices.Collect(maps.Values(users))); hot < 5*n/o.Users || len(users) < o.Users/2 {
		t.Errorf("%d users, the busiest with %d events, are too few", len(users), hot)
	}
	if span := last - first; span < n*900 || span > n*1100 {
		t.Errorf("the events span %d ms, want about a second for each", span)
	}
}

func TestClock(t *testing.T) {
	o := everything()
	o.Clock = func() time.Time { return time.UnixMilli(1234) }
	if e := New(1, o).Next(); e.Timestamp != 1234 {
		t.Errorf("timestamp %d, want 1234", e.Timestamp)
	}
}

func TestDemo(t *testing.T) {
	g := New(1, Demo())
	topics := map[string]int{}
	for range 1000 {
		topics[g.Next().Topic]++
	}
	if topics[Logins] < 200 || topics[Transactions] < 500 {
		t.Errorf("events by topic: %v, want at least 200 logins and 500 transactions", topics)
	}
}

func TestAppendNDJSON(t *testing.T) {
	for value, want := range map[string]string{`{"a":1}`: `{"a":1}`, `{"a":1`: `"{\"a\":1"`} {
		got := string(AppendNDJSON([]byte("x\n"), Event{Topic: Logins, Key: []byte("u1"), Value: []byte(value), Timestamp: 7}))
		if want := "x\n" + `{"topic":"logins","key":"u1","value":` + want + `,"timestamp":7}` + "\n"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	g := New(1, Demo())
	b.ReportAllocs()
	for b.Loop() {
		g.Next()
	}
}
