package integration_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// Rows that are written into events count once and as they were first written, while the table changes, processors are killed and
// Redis goes back in time: a stream of enriched events joins a table to aggregations.
func TestRowsJoinedToEvents(t *testing.T) {
	t.Parallel()
	const users, merchants, rounds, each = 7, 10, 40, 100
	server := redistest.New(t, redistest.Options{AOF: true})
	definitions, err := filepath.Abs("testdata/joined.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t, server.Client(t), "--redis.addresses", server.Addr())
	s.makeTable("categories")
	categories := []string{"food", "games", "travel"}
	row := func(merchant, category int) generate.Event {
		return generate.Event{Topic: "categories", Key: fmt.Append(nil, "m", merchant), Timestamp: time.Now().UnixMilli(),
			Value: fmt.Appendf(nil, `{"merchant_id":"m%d","category":%q}`, merchant, categories[category%len(categories)])}
	}
	write := func(events ...generate.Event) {
		t.Helper()
		if _, err := s.producer.write(events); err != nil {
			t.Fatal(err)
		}
	}
	for m := range merchants {
		write(row(m, m))
	}
	api, processor := s.start("api", "--features", definitions), s.start("processor", "--features", definitions)
	processor.awaitReady()
	written, old := 0, redistest.Copy{}
	awaitJoined := func() {
		t.Helper()
		testkit.Eventually(t, 3*time.Minute, "all events are joined", func() (bool, string) {
			joined := 0
			firsts, _ := s.firsts("transactions.enriched")
			for _, records := range firsts {
				joined += len(records)
			}
			return joined == written, fmt.Sprintf("%d of %d", joined, written)
		})
	}
	for round := range rounds {
		var events []generate.Event
		for range each {
			now := time.Now().UnixMilli()
			events = append(events, generate.Event{Topic: "transactions", Key: fmt.Append(nil, "u", written%users), Timestamp: now,
				Value: fmt.Appendf(nil, `{"event_id":"e%d","timestamp":%d,"user_id":"u%d","merchant_id":"m%d","amount":%d.25}`,
					written, now, written%users, written%merchants, written%97)})
			written++
		}
		write(append(events, row(round%merchants, round))...)
		switch round {
		case 10, 20:
			s.kill(processor)
			processor = s.start("processor", "--features", definitions)
		case 15:
			awaitJoined()
			old = server.SaveCopy()
		case 30: // what came since the copy is joined again, with other rows
			awaitJoined()
			before := s.rewinds()
			s.restore(server, old)
			s.awaitRewind(before)
		}
	}
	awaitJoined()

	amounts, games := map[string]map[string]int{}, map[string]int{} // by user; amounts by category, in cents
	firsts, repeated := s.firsts("transactions.enriched")
	for _, records := range firsts {
		for _, r := range records {
			var e struct {
				Event struct {
					User   string      `json:"user_id"`
					Amount json.Number `json:"amount"`
				}
				Features map[string]struct{ Value string }
			}
			if err := json.Unmarshal(r.Value, &e); err != nil {
				t.Fatal(err)
			}
			amount, _ := e.Event.Amount.Float64()
			category := e.Features["merchant_category"].Value
			if amounts[e.Event.User] == nil {
				amounts[e.Event.User] = map[string]int{}
			}
			amounts[e.Event.User][category] += int(amount * 100) // quarters are exact
			if category == "games" {
				games[e.Event.User]++
			}
		}
	}
	t.Logf("%d events were written again", repeated)
	for _, user := range slices.Sorted(maps.Keys(amounts)) {
		want := fmt.Sprintf("%v, %d", amounts[user], games[user])
		testkit.Eventually(t, time.Minute, user+" has the amounts of the joined events", func() (bool, string) {
			results, err := api.ask(question{
				Features: []string{"user_amount_by_category", "user_games"},
				Entities: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"user_id":%q}`, user))},
			})
			if err != nil {
				return false, err.Error()
			}
			var sums map[string]float64
			if err := json.Unmarshal(results[0]["user_amount_by_category"].Value, &sums); err != nil {
				return false, err.Error()
			}
			got := map[string]int{}
			for category, sum := range sums {
				got[category] = int(sum * 100)
			}
			have := fmt.Sprintf("%v, %s", got, results[0]["user_games"].Value)
			return have == want, have + "; want " + want
		})
	}
	if repeated == 0 {
		t.Error("no event was written again: the faults had no effect")
	}
}

// makeTable creates a topic for the rows of a table.
func (s *scene) makeTable(topic string) {
	s.t.Helper()
	made, err := s.kafka.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: topic, NumPartitions: 1, ReplicationFactor: 1, ConfigEntries: []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"}},
	}}})
	if err == nil {
		err = made.Errors[topic]
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
