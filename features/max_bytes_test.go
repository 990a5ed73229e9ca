package features_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// Values that are too long are kept as a prefix and a hash in every layout: they stay distinct, questions find them,
// and they take no more bytes than their fields allow.
func TestLongValuesAreShortened(t *testing.T) {
	r := defined.Registry(t, `
streams:
  tx:
    topic: tx
    timestamp: t
    fields: {user: string, agent: {type: string, max_bytes: 60}, page: string, shop: string}
features:
  events: COUNT(7d, tx, user)
  agents: COUNT_DISTINCT(7d, tx, user, agent)
  newest: LAST(7d, tx, agent, user)
  least:  MIN(7d, tx, agent, user)
  pages:  LAST_K(7d, tx, page, user, k=2)
  top:    TOP_K(7d, tx, agent, user, k=2)
  bots:   COUNT(7d, tx, user, where='agent endsWith "bot"')
  through: COUNT(7d, tx, shop, through=SET(7d, tx, user, shop))
`)
	const now = 1_532_496_076_032
	long := strings.Repeat("é", 100_000)
	stored, mapper := memory.New(), r.NewMapper()
	for i := range 4 {
		b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
		rec := record.Record{Partition: state.Partition{Topic: "tx"}, Timestamp: now, Value: fmt.Appendf(nil,
			`{"t":%d,"user":%q,"agent":"%s %d bot","page":"%s %d","shop":%q}`, now-10+i, "u"+long, long, i/2, long, i, "s"+long)}
		if _, err := mapper.Map(&rec, 0, b); err != nil {
			t.Fatal(err)
		}
		for _, mutation := range b.Mutations {
			if mutation.Text != nil && (len(mutation.Member) > 2*value.MaxText || len(mutation.Key) > 60) {
				t.Errorf("%s keeps %d bytes under %d", mutation.Series.Measure, len(mutation.Member), len(mutation.Key))
			}
		}
		for _, update := range b.Updates {
			if len(update.Entity) > value.MaxText {
				t.Errorf("an entity has %d bytes, more than allowed", len(update.Entity))
			}
		}
		if err := stored.Apply(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	entity := string(state.AppendEntity(nil, true, value.Value{Type: value.String, Str: []byte("u" + long)}))
	ask := func(name string, members ...value.Value) query.Answer {
		f, _ := r.Feature(name)
		if members != nil {
			f = f.AskedAbout(members)
		}
		var reading query.Reading
		reading.Reset(now)
		reading.Want(f, entity, now)
		if err := reading.Read(context.Background(), stored); err != nil {
			t.Fatal(err)
		}
		var a query.Answer
		reading.Next(&a)
		return a
	}
	for name, want := range map[string]int64{"events": 4, "agents": 2, "bots": 4, "through": 4} {
		if got := ask(name).Value.Num; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	shortened := string(value.Shorten(nil, []byte(long+" 1 bot"), 60))
	if got := string(ask("newest").Value.Str); got != shortened || len(got) > 60 || !strings.HasPrefix(got, "éééé") || strings.Count(got, "~") != 1 {
		t.Errorf("the newest agent is %q, want %q", got, shortened)
	}
	if pages := ask("pages").Items; len(pages) != 2 || string(pages[0].Value.Str) == string(pages[1].Value.Str) || len(pages[0].Value.Str) > value.MaxText {
		t.Errorf("%d pages, or pages of the wrong length or text; want 2", len(pages))
	}
	if top := ask("top").Items; len(top) != 2 || top[0].Count != 2 {
		t.Errorf("the top agents are %v, want 2, the first with 2 events", top)
	}
	met := value.Value{Type: value.String, Str: []byte(long + " 0 bot")}
	never := value.Value{Type: value.String, Str: []byte(long + " 2 bot")}
	if items := ask("agents", met, never).Items; items[0].Value.Num != 1 || items[1].Value.Num != 0 {
		t.Errorf("members of a long value that occurred and one that did not: %v, want 1 and 0", items)
	}
}
