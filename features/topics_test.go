package features_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

const overTopics = `
streams:
  tx:
    %s
    timestamp: at
    id: id
    dedup: 1h
    fields: {user: string, amount: {type: decimal, scale: 2}, large: {type: bool, expr: amount > 100}}
features:
  count: COUNT(1d, tx, user)
  sum: SUM(1d, tx, amount, user, where='large')
  exact: MAX(1h, tx, amount, user, tile=exact, where='large')
`

const twoTopics = `topics:
      payments:
      transfers:
        match: kind == "out"
        timestamp: {path: head.time, unit: s}
        id: head.id
        fields: {user: from.user, amount: {path: cents, exponent: -2}}`

func over(t *testing.T, topics string) *features.Registry {
	t.Helper()
	return mustParse(t, fmt.Sprintf(overTopics, topics))
}

func written(topic, value string) *record.Record {
	return &record.Record{Partition: state.Partition{Topic: topic}, Timestamp: 1_700_000_000_000, Value: []byte(value)}
}

// An event counts alike, whichever topic of its stream it is in, live and where a fill reads it.
func TestTopicsOfAStream(t *testing.T) {
	r := over(t, twoTopics)
	all := map[*state.Series]bool{}
	for _, s := range r.Series {
		all[s] = true
	}
	fill := r.FillOf(all)
	for name, mapper := range map[string]*features.Mapper{"live": r.NewMapper(), "filled": r.NewFillMapper(fill)} {
		var states []string
		for _, rec := range []*record.Record{
			written("payments", `{"id":"a","at":1700000000000,"user":"u","amount":150.25}`),
			written("transfers", `{"kind":"out","head":{"id":"a","time":1700000000},"from":{"user":"u"},"cents":15025}`),
		} {
			batch := &state.Batch{}
			out, err := mapper.Map(rec, 0, batch)
			if err != nil || len(out.Events) != 1 || string(out.Events[0].ID) != "a" || out.Events[0].Stream != r.Streams[0] {
				t.Fatalf("%s, %s: error %v, events %+v, want one with the ID a of the stream itself", name, rec.Partition.Topic, err, out.Events)
			}
			var mutations []string
			for _, m := range batch.Mutations {
				mutations = append(mutations, fmt.Sprint(m.Series.ID, m.Tile, m.Num))
			}
			states = append(states, strings.Join(mutations, " "))
		}
		if states[0] != states[1] || states[0] == "" {
			t.Errorf("%s: the same event of both topics changes\n%s and\n%s", name, states[0], states[1])
		}
	}
	for topic, want := range map[string]string{"payments": "stream tx: user: ", "transfers": "stream tx: from.user: "} {
		value := map[string]string{"payments": `{"at":1700000000000,"user":7}`, "transfers": `{"kind":"out","head":{"time":1700000000},"from":{"user":7}}`}[topic]
		if _, err := r.NewMapper().Map(written(topic, value), 0, &state.Batch{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("poison of %s: %v, want %q and why", topic, err, want)
		}
	}
	if out, err := r.NewMapper().Map(written("transfers", `{"kind":"in"}`), 0, &state.Batch{}); err != nil || len(out.Events) > 0 {
		t.Errorf("an event that the topic's own match refuses: %v, %+v", err, out)
	}
	for _, topic := range []string{"payments", "transfers"} {
		if reach := r.FillReach(fill, topic); reach.Reach < 86_400_000 {
			t.Errorf("a fill reaches back %+v in %s, want a day", reach, topic)
		}
		if record.NewEarlier(r.Streams, topic, state.NewSecret()) == nil || record.Reach(r.Streams, topic) != 3_600_000 {
			t.Errorf("repetitions are not known in %s", topic)
		}
		part := &state.Fill{Columns: map[string][]string{topic: fill.Columns[topic]}}
		if got := r.FillHas(part); !maps.Equal(got, all) {
			t.Errorf("the part of a fill in %s has %d series, want all %d", topic, len(got), len(all))
		}
	}
	if got := r.Topics(); !slices.Equal(got, []string{"payments", "transfers"}) || !slices.Equal(features.TopicsOf(r.Features), got) {
		t.Errorf("the registry reads %v, its features %v", got, features.TopicsOf(r.Features))
	}
}

// What features count depends on the set of topics and on how each is read, but not on their order.
func TestPlansOfTopics(t *testing.T) {
	plan := over(t, twoTopics).Plan()
	for topics, same := range map[string]bool{
		"topics: [payments, transfers]": false,
		"topic: payments":               false,
		"topic: transfers":              false,
		twoTopics + "\n      refunds:":  false,
		strings.Replace(twoTopics, "      payments:\n", "", 1) + "\n      payments: {}": true,
		strings.Replace(twoTopics, "from.user", "to.user", 1):                           false,
	} {
		other := over(t, topics).Plan()
		if kept := plan.Covers(other); kept != same || other.Covers(plan) != same {
			t.Errorf("%s: the plan keeps the same: %v, want %v", topics, kept, same)
		}
	}
}

// A feature is complete once it is for each topic.
func TestCompletenessOfTopics(t *testing.T) {
	r := over(t, twoTopics)
	h := state.History{Plans: map[string]*state.Plan{"now": r.Plan(), "before": {}}, PlanEpochs: []state.PlanEpoch{
		{Topic: "payments", Version: "now", Last: state.MaxTime}, {Topic: "payments", Version: "before", Last: 100},
	}}
	count, _ := r.Feature("count")
	if since := h.CompleteSince(count.Retained()); since != state.MaxTime {
		t.Errorf("complete since %d while nobody reads transfers, want never", since)
	}
	h.PlanEpochs = append(h.PlanEpochs, state.PlanEpoch{Topic: "transfers", Version: "now", Last: state.MaxTime})
	if since := h.CompleteSince(count.Retained()); since != 101 {
		t.Errorf("complete since %d, want 101: payments are", since)
	}
	h.PlanEpochs = append(h.PlanEpochs, state.PlanEpoch{Topic: "transfers", Version: "before", Last: 200})
	if since := h.CompleteSince(count.Retained()); since != 201 {
		t.Errorf("complete since %d, want 201: transfers are", since)
	}
}
