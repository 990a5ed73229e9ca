package cost

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// The page on sizing shows the output of each command in it.
func TestSizingPage(t *testing.T) {
	const page, use = "../../docs/sizing.md", "$ weir explain config/features --load "
	r, err := definition.Load("../../config/features")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	uses := strings.Split(string(data), use)
	want := uses[0]
	for _, rest := range uses[1:] {
		load, rest, _ := strings.Cut(rest, "\n")
		_, rest, _ = strings.Cut(rest, "```")
		w, err := ParseWorkload(r, load)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		Size(r, w).WriteText(&text)
		want += use + load + "\n" + text.String() + "```" + rest
	}
	if len(uses) != 2 {
		t.Errorf("the page has %d commands, want 1", len(uses)-1)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(data), "\n")); diff != "" {
		t.Errorf("%s (-want +got), rewritten by go test -update:\n%s", page, diff)
	}
}

// The figures are computed by hand, for a user with 10 events a day and a device with one.
func TestSize(t *testing.T) {
	r := defined.Features(t,
		"count: COUNT(7d, tx, user)",
		"ever: COUNT(lifetime, login, user)",
		"devices: COUNT_DISTINCT(7d, login, user, device, method=last_seen, max=3)",
		"spent: SUM(1h, tx, amount, device)")
	w, err := ParseWorkload(r, " tx=10/s, login=1/s, user=86400, device=864k, questions=1k/s, memory=1GiB")
	if err != nil {
		t.Fatal(err)
	}
	z := Size(r, w)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	device, user := z.Entities[0], z.Entities[1]
	// 169 hours are kept of days: 10 events in each of at most 9. There are 7 logins, and 3 devices
	// of them are kept.
	near("bytes of a user", user.Bytes, 150+3*8+9*5+5+3*16)
	near("events of a user", user.Events, 10.0*169/24)
	// A device has less than one event in two hours; it counts the one by which it exists.
	near("bytes of a device", device.Bytes, 150+8+5)
	near("memory", z.Memory, 86400*user.Bytes+864e3*device.Bytes)
	near("cores of processors", z.ProcessorCores, 10*(2.0e-6+2*1.1e-6)+1*(2.0e-6+1*1.1e-6))
	near("cores of Redis", z.RedisCores, 10*2*1.9e-6+1*1*1.9e-6+1000*2*2.5e-6)
	all, some := map[*state.Series]bool{}, map[*state.Series]bool{}
	for _, s := range r.Series {
		all[s], some[s] = true, s.By[0] == "user"
	}
	near("a backfill of all series", FillSeconds(r, r.FillOf(all), "transactions", 1000), 1000*(2.0e-6+2*(1.1e-6+1.9e-6)))
	near("a backfill of some series", FillSeconds(r, r.FillOf(some), "transactions", 1000), 1000*(2.0e-6+1.1e-6+1.9e-6))
	near("cores of the API", z.APICores, 1000*(70e-6+4*0.3e-6))
	if z.QuestionKeys != 2 || z.QuestionValues != 4 {
		t.Errorf("a question reads %d values in %d keys, want 4 in 2", z.QuestionValues, z.QuestionKeys)
	}
	if z.Masters != 1 || z.Processors != 1 || z.APIs != 1 || z.Shards != 4 {
		t.Errorf("%d masters, %d processors, %d APIs, %d shards; want 1, 1, 1 and 4", z.Masters, z.Processors, z.APIs, z.Shards)
	}
	if _, err := json.Marshal(z); err != nil {
		t.Error(err)
	}
}

// Covers what is bound by CPU and what by memory, on a topic of two streams.
func TestSizeOfLargeWorkloads(t *testing.T) {
	r := defined.Features(t, "count: COUNT(7d, tx, user)", "logins: COUNT(7d, login, user)")
	for _, c := range []struct {
		load string
		want string
	}{
		{"events=2M/s,entities=1000", "masters 1 8 8, shards 64, processors 13, partitions 200 200"},
		{"events=1k/s,entities=1G,memory=16GiB", "masters 19 1 19, shards 128, processors 1, partitions 1 1"},
		{"events=20/s,login=10/s,entities=1", "masters 1 1 1, shards 4, processors 1, partitions 1 1"},
	} {
		w, err := ParseWorkload(r, c.load)
		if err != nil {
			t.Fatal(err)
		}
		z := Size(r, w)
		got := fmt.Sprintf("masters %d %d %d, shards %d, processors %d, partitions", z.MastersByMemory, z.MastersByCPU, z.Masters, z.Shards, z.Processors)
		for _, topic := range z.Topics {
			got += fmt.Sprint(" ", topic.Partitions)
		}
		if got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.load, got, c.want)
		}
	}
}

func TestBadWorkloads(t *testing.T) {
	r := defined.Features(t, "count: COUNT(7d, tx, user)", "logins: COUNT(7d, login, device)")
	const amount = "it must be a number above 0, such as 2500, 100k, 1.5M or 64GiB, and /s for a rate"
	for text, want := range map[string]string{
		"":                                `"": write events=100k/s,entities=100M, and optionally questions=5k/s or memory=64GiB`,
		"events":                          `"events": write events=100k/s,entities=100M, and optionally questions=5k/s or memory=64GiB`,
		"events=many":                     "events=many: " + amount,
		"events=0/s":                      "events=0/s: " + amount,
		"events=1e5/s":                    "events=1e5/s: " + amount,
		"events=-1/s":                     "events=-1/s: " + amount,
		"events=1.2.3/s":                  "events=1.2.3/s: " + amount,
		"entities=9999999G":               "entities=9999999G: " + amount,
		"events=100k":                     "events=100k: it must be a rate, such as 100k/s",
		"tx=100k":                         "tx=100k: it must be a rate, such as 100k/s",
		"entities=100k/s":                 "entities=100k/s: it must be a number, not a rate",
		"memory=1GiB/s":                   "memory=1GiB/s: it must be a number, not a rate",
		"memory=64":                       "memory=64: it must be at least 1GiB",
		"events=1/s,events=2/s":           "events=2/s: events is given twice",
		"payment=5/s":                     `payment=5/s: there is no stream "payment" with features; write events, questions, or a stream: login, tx`,
		"card=5M":                         `card=5M: there are no features of the entity "card"; write entities, memory, or an entity: device, user`,
		"events=1/s":                      "device, user: no value for entities; write entities=100M for all",
		"tx=1/s,entities=1":               "login: no value for events; write events=100k/s for all",
		"events=1/s,tx=2/s,entities=1":    "events: less than those of tx together",
		"events=1/s,entities=1M,user=2M":  "entities: less than those of user together",
		"questions=5":                     "questions=5: it must be a rate, such as 100k/s",
		"events=1/s,entities=1,user=1G/s": `user=1G/s: it must be a number, not a rate`,
	} {
		if _, err := ParseWorkload(r, text); fmt.Sprint(err) != want {
			t.Errorf("%q\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// Numbers have three digits and no exponent, also where rounding gives them another digit.
func TestAmount(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0", 0.00001234: "0.0000123", 1: "1", 12.345: "12.3", 999.4: "999", 999.5: "1k", 1000: "1k", 1234: "1.23k",
		999_499: "999k", 999_500: "1M", 86_400_000: "86.4M", 1e9: "1G", 1.234e15: "1230000G",
	} {
		if got := amount(n); got != want {
			t.Errorf("%v is written %s, want %s", n, got, want)
		}
	}
}
