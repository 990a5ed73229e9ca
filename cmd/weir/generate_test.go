package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
)

func TestGenerateLines(t *testing.T) {
	t.Parallel()
	out, err := weir(t, "generate", "--output", "-", "--events", "2500", "--seed", "7")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 2500 {
		t.Fatalf("%d lines, want 2500", len(lines))
	}
	events := generate.New(7, generate.Demo())
	for i, line := range lines {
		var got struct {
			Topic, Key string
			Value      json.RawMessage
			Timestamp  int64
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		want := events.Next()
		if got.Topic != want.Topic || got.Key != string(want.Key) || string(got.Value) != string(want.Value) || got.Timestamp != want.Timestamp {
			t.Fatalf("line %d is %v, want %s", i+1, got, want.Value)
		}
	}

	file := filepath.Join(t.TempDir(), "events")
	if _, err := weir(t, "generate", "--output", file, "--events", "2500", "--seed", "7"); err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadFile(file); string(written) != out || err != nil {
		t.Errorf("the same seed makes other events in a file, or it cannot be read: %v", err)
	}
	if other, err := weir(t, "generate", "--output", "-", "--events", "2500", "--seed", "8"); other == out || err != nil {
		t.Errorf("another seed makes the same events, or fails: %v", err)
	}
}

// The rows of the shipped tables come before the events, each with a feature that finds it.
func TestGenerateTables(t *testing.T) {
	t.Parallel()
	out, err := weir(t, "generate", "--output", "-", "--events", "1000", "--tables")
	if err != nil {
		t.Fatal(err)
	}
	events, err := weir(t, "generate", "--output", "-", "--events", "1000")
	rows, ok := strings.CutSuffix(out, events)
	if err != nil || !ok || events == "" {
		t.Fatalf("error %v; the rows are not before the same events", err)
	}
	dir := t.TempDir()
	merchants, blocked := "", ""
	for line := range strings.Lines(rows) {
		if strings.Contains(line, `"topic":"merchants"`) {
			merchants += line
		} else {
			blocked += line
		}
	}
	training := look(t, "", "materialize", "--features", shipped, "--stream", "transaction", "--input", writeFile(t, dir, "events.ndjson", events), "--output", "-",
		"--columns", "merchant_id,merchant_risk,merchant_limit_exceeded,card_blocked",
		"--table", "merchant="+writeFile(t, dir, "merchants.ndjson", merchants), "--table", "blocked_cards="+writeFile(t, dir, "blocked.ndjson", blocked))
	for _, want := range []string{",m00001,low,false,false\n", ",m00002,high,true,false\n", ",m00005,medium,true,false\n", ",,,,false\n"} {
		if !strings.Contains(training, want) {
			t.Errorf("no row ends with %q:\n%.2000s", want, training)
		}
	}
	if !strings.Contains(blocked, `"value":"c900002"`) {
		t.Errorf("no card is blocked: %s", blocked)
	}
}

func TestGenerateToKafka(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Embedded(t, map[string]int{generate.Logins: 2, generate.Transactions: 3})
	const n = 2500
	before := time.Now()
	if _, err := weir(t, "generate", "--brokers", broker.ListenAddrs()[0], "--events", "2500", "--seed", "7"); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events in %v", n, time.Since(before))

	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...),
		kgo.ConsumeTopics(generate.Logins, generate.Transactions), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	type event struct {
		topic, key, value string
		timestamp         int64
	}
	found := map[event]int{}
	partitions := map[string]int32{}
	for got := 0; got < n; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d records: %v", got, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			got++
			found[event{r.Topic, string(r.Key), string(r.Value), r.Timestamp.UnixMilli()}]++
			id := r.Topic + "/" + string(r.Key)
			if p, ok := partitions[id]; ok && p != r.Partition {
				t.Errorf("%s is in partitions %d and %d", id, p, r.Partition)
			}
			partitions[id] = r.Partition
		})
	}
	events := generate.New(7, generate.Demo())
	for range n {
		e := events.Next()
		id := event{e.Topic, string(e.Key), string(e.Value), e.Timestamp}
		if found[id]--; found[id] < 0 {
			t.Fatalf("Kafka lacks the event %+v", id)
		}
	}
}

func TestGenerateReportsAMissingTopic(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Embedded(t, nil)
	_, err := weir(t, "generate", "--brokers", broker.ListenAddrs()[0], "--events", "10")
	if err == nil || message(err) != "weir: write to the topics logins, transactions: there is no such topic or partition: check the name, or create the topic" {
		t.Errorf("got error %v, want that of an unknown topic", err)
	}
}

func TestRateIsKept(t *testing.T) {
	t.Parallel()
	before := time.Now()
	if _, err := weir(t, "generate", "--output", "-", "--events", "100", "--rate", "200"); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(before); took < 400*time.Millisecond {
		t.Errorf("100 events at 200 a second took %v, want at least 400ms", took)
	}
}
