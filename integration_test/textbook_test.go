package integration_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// The worked example of the textbook is a payment of 166.6 at 1532496076032, which lies in day
// 17737 and hour 425693 since 1970.
const (
	textbookTime = 1532496076032
	textbookDay  = 17737
	textbookHour = 425693
)

const (
	hour = 60 * 60 * 1000 // in ms
	day  = 24 * hour
)

func textbookEvent(at int64, amount string) generate.Event {
	return generate.Event{
		Topic: generate.Transactions, Key: []byte("ud000001"), Timestamp: at,
		Value: fmt.Appendf(nil, `{"event_id":"e%d","timestamp":%[1]d,"type":"transaction","status":"approved",`+
			`"user_id":"ud000001","device_id":"d000001","card_id":"c1","amount":%s}`, at, amount),
	}
}

func TestTextbook(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{})
	s := newScene(t, server.Client(t), "--redis.addresses", server.Addr())
	w := s.start("processor,api")
	if err := s.write([]generate.Event{textbookEvent(textbookTime, "166.6")}, s.producer.write); err != nil {
		t.Fatal(err)
	}
	s.awaitApplied()

	// The state is laid out as documented: a string for each entity and group of series, in the
	// shard of the entity's hash, with a section for each series. The state of a pair is embedded
	// in that of the user.
	for _, c := range []struct {
		entity, feature string
		tile            int64
		want            string
	}{
		{"d000001", "device_tx_7d", textbookDay, "1"},
		{"ud000001", "user_amount_1d", textbookHour, "166.6"},
		{"ud000001", "user_approved_amount_1d", textbookHour, "166.6"}, // in the same string
		{"ud000001", "user_max_amount_30d", textbookDay, "166.6"},
		{"ud000001", "user_tx_lifetime", 0, "1"},
		{"ud000001|d000001", "user_device_tx_30d", textbookDay, "1"},
	} {
		f, _ := s.registry.Feature(c.feature)
		series := f.Series[0]
		shard := state.Shard(state.EntityHash([]byte(c.entity)), shards)
		group, entity, child := series.Group, c.entity, ""
		if series.Parent != "" {
			group = series.Parent
			entity, child, _ = strings.Cut(entity, "|")
		}
		key := keyspace.ShardTag(s.group, shard, shards) + group + ":" + entity
		data := []byte(server.Client(t).Get(ctx, key).Val())
		if child != "" {
			var err error
			if data, _, err = packed.WithEmbedded(nil, data, state.EmbeddingTag(series.Group), []byte(child)); err != nil {
				t.Fatal(err)
			}
		}
		held := packed.New(series)
		err := packed.Sections(data, func(tag uint32, body []byte) error {
			if tag == series.Tag() {
				return held.Merge(body)
			}
			return nil
		})
		windowState := held.Read(&state.Read{Series: series, First: math.MinInt64, Last: math.MaxInt64})
		if err != nil || len(windowState.Buckets) != 1 || windowState.Buckets[0].Tile != c.tile || string(windowState.Buckets[0].Value.AppendText(nil)) != c.want {
			t.Errorf("%s of %s: key %s has %+v, error %v; want %s in tile %d", c.feature, c.entity, key, windowState.Buckets, err, c.want, c.tile)
		}
	}

	// Two more payments lie on the edges of the day, in the neighbouring tiles.
	const edge = textbookDay * day
	more := []generate.Event{textbookEvent(edge, "10.01"), textbookEvent(edge-1, "5")}
	if err := s.write(more, s.producer.write); err != nil {
		t.Fatal(err)
	}
	s.awaitApplied()
	for _, c := range []struct {
		feature string
		at      int64
		want    string
	}{
		{"device_tx_7d", textbookTime, "3 PRESENT"},
		{"device_tx_7d", textbookTime - hour, "3 PRESENT"}, // the current tile counts as a whole
		{"device_tx_7d", (textbookDay+6)*day - 1, "3 PRESENT"},
		{"device_tx_7d", (textbookDay + 6) * day, "2 PRESENT"},
		{"device_tx_7d", (textbookDay+7)*day - 1, "2 PRESENT"},
		{"device_tx_7d", (textbookDay + 7) * day, "0 NOT_FOUND"},
		{"user_amount_1d", textbookTime, "181.61 PRESENT"},
		{"user_amount_1d", edge + 23*hour - 1, "181.61 PRESENT"},
		{"user_amount_1d", edge + 23*hour, "176.61 PRESENT"},
		{"user_amount_1d", edge + 24*hour - 1, "176.61 PRESENT"},
		{"user_amount_1d", edge + 24*hour, "166.6 PRESENT"},
		{"user_amount_1d", (textbookHour+24)*hour - 1, "166.6 PRESENT"},
		{"user_amount_1d", (textbookHour + 24) * hour, "0 NOT_FOUND"},
		{"user_tx_lifetime", 0, "3 PRESENT"},
	} {
		answers, err := w.ask(question{
			Features: []string{c.feature}, At: c.at,
			Entities: []json.RawMessage{json.RawMessage(`{"device_id":"d000001","user_id":"ud000001"}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		a := answers[0][c.feature]
		status := a.Status
		if status == query.LaterEvents { // the moment lies in a tile with events, which may be later
			status = query.Present
		}
		if got := fmt.Sprintf("%s %s", a.Value, status); got != c.want {
			t.Errorf("%s at %d: %s, want %s", c.feature, c.at, got, c.want)
		}
	}

	// An answer reports that state is no longer kept, instead of a wrong value.
	for feature, at := range map[string]int64{
		"device_tx_7d?device_id=d000001": textbookTime - hour - 1,
		"card_count_today?card_id=c1":    textbookTime - 1, // keep=0s
	} {
		status, body := w.get(fmt.Sprintf("/v1/features/%s&at=%d", feature, at))
		want := fmt.Sprintf(`"exact":false,"oldest":%d}`, at+1)
		if status != http.StatusOK || !strings.Contains(body, `{"value":null,"status":"OUTSIDE_MAX_AGE",`) || !strings.Contains(body, want) {
			t.Errorf("%s at %d: %d %s; want %s", feature, at, status, body, want)
		}
	}
}
