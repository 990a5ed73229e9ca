package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
)

// An operator backfills new features by hand, while processors have backfill switched off, and sees
// the progress.
func TestBackfillByHand(t *testing.T) {
	flags, _ := servers(t, allTopics)
	file := filepath.Join(t.TempDir(), "features.yaml")
	flags[1] = file
	define := func(more string) {
		t.Helper()
		text := "streams: {tx: {topic: transactions, timestamp: at, fields: {user: string}}}\nfeatures:\n  paid: COUNT(1d, tx, user, tile=1h)\n" + more
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	define("")
	p := start(t, append([]string{"run", "--processor.commit_interval", "10ms", "--backfill.mode", "off"}, flags...)...)
	ready(t, p.address(t))
	writer := generate.NewKafkaWriter(&kafka.Transport{}, []string{flags[7]})
	defer writer.Close()
	now := time.Now()
	for i := range 20 {
		value := fmt.Appendf(nil, `{"at": %d, "user": "u%d"}`, now.UnixMilli(), i%3)
		if err := writer.WriteMessages(t.Context(), kafka.Message{Topic: "transactions", Key: []byte{byte(i)}, Value: value, Time: now}); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) []string { return append(args, flags...) }
	testkit.Eventually(t, patience, "everything is applied", func() (bool, string) {
		out, err := weir(t, command("progress", "--max-lag", "0")...)
		return err == nil && strings.HasSuffix(out, "\nlag 0 in all\n"), fmt.Sprint(out, err)
	})
	look(t, `there is no feature "more"`, command("backfill", "--of", "more")...)
	look(t, "--rate 7 is not allowed: 0.01 to 1", command("backfill", "--rate", "7")...)
	look(t, errNothingToFill.Error(), command("backfill")...)
	define("  more: COUNT(1d, tx, user, tile=2h)\n  long: COUNT(5d, tx, user, tile=1h)\n")
	testkit.Eventually(t, patience, "the definitions are taken", func() (bool, string) {
		out, err := weir(t, command("progress")...)
		return err == nil && strings.Contains(out, "long, more, of transactions: backfill not begun"), fmt.Sprint(out, err)
	})
	out := look(t, "", command("backfill", "--of", "long", "--rate", "1")...)
	if !regexp.MustCompile(`(?m)^long, more: done, 20 records$`).MatchString(out) {
		t.Errorf("backfill says\n%s", out)
	}
	if out := look(t, "", command("backfill")...); !strings.Contains(out, ": done, 20 records\n") {
		t.Errorf("once more it says\n%s", out)
	}
	if out := look(t, "", command("progress")...); strings.Contains(out, "backfill") {
		t.Errorf("progress says\n%s", out)
	}
}
