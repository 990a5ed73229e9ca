package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// enriching returns the flags of a process that enriches transactions.
func enriching(t *testing.T, topics map[string]int) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "features.yaml")
	err := os.WriteFile(file, []byte(`
streams:
  transaction:
    topic: transactions
    timestamp: timestamp
    fields: {user_id: string}
    enrich: {service: risk, topic: transactions.enriched}
features:
  user_tx: COUNT(1d, transaction, user_id)
services:
  risk: [user_tx]
`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	flags, _ := servers(t, topics)
	flags[1] = file
	return flags
}

func TestRunCreatesTheTopicOfEnrichedEvents(t *testing.T) {
	t.Parallel()
	flags := append(enriching(t, map[string]int{"transactions": 5}),
		"--kafka.create_topics", "--kafka.topic_partitions", "7", "--kafka.topic_replication", "1")
	p := start(t, append([]string{"run"}, flags...)...)
	ready(t, p.address(t))
	out, err := weir(t, append([]string{"run", "--check"}, flags...)...)
	for _, want := range []string{
		"ok    topic transactions           5 partitions\n",
		"ok    topic transactions.enriched  5 partitions\n",
		"ok    topic weir.dead-letters      7 partitions\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("error %v; the line\n%s\nis not in\n%s", err, want, out)
		}
	}
}

func TestCheckOfTheTopicOfEnrichedEvents(t *testing.T) {
	t.Parallel()
	out, _ := weir(t, append([]string{"run", "--check"}, enriching(t, map[string]int{"transactions": 3})...)...)
	if want := "FAIL  topic transactions.enriched  no topic transactions.enriched: create it, or set kafka.create_topics; with ACLs, allow Describe on it\n"; !strings.Contains(out, want) {
		t.Errorf("the line\n%s\nis not in\n%s", want, out)
	}
	out, _ = weir(t, append([]string{"run", "--check"}, enriching(t, map[string]int{"transactions": 3, "transactions.enriched": 2})...)...)
	if want := "warn  topic transactions.enriched  has 2 partitions, and transactions has 3: enriched events go by their keys, not to the partition of the same number\n"; !strings.Contains(out, want) {
		t.Errorf("the line\n%s\nis not in\n%s", want, out)
	}
}

func TestDeadLettersAmongEnrichedEvents(t *testing.T) {
	t.Parallel()
	flags := append(enriching(t, map[string]int{"transactions": 1, "transactions.enriched": 1}),
		"--kafka.dead_letter_topic", "transactions.enriched")
	want := `kafka.dead_letter_topic is transactions.enriched, to which stream "transaction" writes its enriched events: name another one`
	if _, err := weir(t, append([]string{"run"}, flags...)...); fmt.Sprint(err) != want {
		t.Errorf("\ngot  %v\nwant %s", err, want)
	}
	out, _ := weir(t, append([]string{"run", "--check"}, flags...)...)
	if !strings.Contains(out, "FAIL  topics                       "+want) {
		t.Errorf("run --check does not report the same failure:\n%s", out)
	}
}
