package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/objectstore"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/state"
)

// An operator backfills new features by hand, while processors have backfill switched off, and sees
// the progress.
func TestBackfillByHand(t *testing.T) {
	t.Parallel()
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
	base := p.address(t)
	ready(t, base)
	writer := generate.NewKafkaWriter(&kafka.Transport{}, []string{flags[7]})
	defer writer.Close()
	now := time.Now()
	for i := range 20 {
		value := fmt.Appendf(nil, `{"at": %d, "user": "u%d", "note": "%*d"}`, now.UnixMilli(), i%3, 2000*(i/19), i)
		if err := writer.WriteMessages(t.Context(), kafka.Message{Topic: "transactions", Key: []byte{byte(i)}, Value: value, Time: now}); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) []string { return append(args, flags...) }
	testkit.Eventually(t, patience, "everything is applied", func() (bool, string) {
		out, err := weir(t, command("progress", "--max-lag", "0")...)
		return err == nil && strings.HasSuffix(out, "\ntotal lag 0\n"), fmt.Sprint(out, err)
	})
	look(t, `there is no feature "more"`, command("backfill", "--of", "more")...)
	look(t, "--rate 7 is not allowed: 0.01 to 1", command("backfill", "--rate", "7")...)
	if out := look(t, "", command("backfill")...); out != "nothing to fill: no feature is new to the namespace\n" {
		t.Errorf("a backfill without new features says:\n%s", out)
	}
	ahead := slices.Clone(flags)
	ahead[1] = filepath.Join(t.TempDir(), "ahead.yaml")
	text := "streams: {tx: {topic: transactions, timestamp: at, fields: {user: string}}}\nfeatures: {paid: 'COUNT(1d, tx, user, tile=1h)', more: 'COUNT(1d, tx, user, tile=2h)', long: 'COUNT(5d, tx, user, tile=1h)', later: 'COUNT(2d, tx, user, tile=3h)'}\n"
	if err := os.WriteFile(ahead[1], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const notLoaded = "the processors have not loaded these definitions yet, so later cannot be filled: try again when they have"
	look(t, notLoaded, append([]string{"backfill", "--of", "later"}, ahead...)...)
	look(t, "", append([]string{"backfill", "--of", "paid"}, ahead...)...)
	define("  more: COUNT(1d, tx, user, tile=2h)\n  long: COUNT(5d, tx, user, tile=1h)\n")
	testkit.Eventually(t, patience, "the definitions are taken", func() (bool, string) {
		out, err := weir(t, command("progress")...)
		return err == nil && strings.Contains(out, "long, more, of transactions: backfill not begun"), fmt.Sprint(out, err)
	})
	out := look(t, "", command("backfill", "--of", "long", "--rate", "1", "--kafka.max_record_bytes", "1KiB")...)
	if !regexp.MustCompile(`(?m)^long, more: done, 20 records$`).MatchString(out) {
		t.Errorf("backfill does not report 20 records:\n%s", out)
	}
	if out := look(t, "", command("backfill")...); !strings.Contains(out, ": done, 20 records\n") {
		t.Errorf("a second backfill does not report the 20 records:\n%s", out)
	}
	if out := look(t, notLoaded, append([]string{"backfill"}, ahead...)...); !strings.Contains(out, ": done, 20 records\n") {
		t.Errorf("a backfill of definitions that are not loaded says:\n%s", out)
	}
	if out := look(t, "", command("progress")...); strings.Contains(out, "backfill") {
		t.Errorf("progress still shows the finished backfill:\n%s", out)
	}
	testkit.Eventually(t, patience, "answers without the record that was too long for the backfill", func() (bool, string) {
		answer := look(t, "", "query", "--address", base, "--json", "long", "user=u1") // of 7 events
		return strings.Contains(answer, `"value":6,"status":"PRESENT"`), answer
	})
}

// An operator fills features from files with events that the log never had, while processors have backfill switched
// off. Every mistake is reported before anything changes.
func TestBackfillFromFiles(t *testing.T) {
	flags, _ := servers(t, allTopics)
	folder := t.TempDir()
	define := filepath.Join(folder, "features.yaml")
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("features.yaml", `streams: {tx: {topic: transactions, timestamp: at, fields: {user: string}}, in: {topic: logins, timestamp: at, fields: {user: string}}}
features:
  paid: COUNT(30d, tx, user, tile=1h)
  last_hour: COUNT(1h, tx, user, tile=1m, keep=1h)
`)
	flags[1] = define
	processor := append([]string{"run", "--processor.commit_interval", "10ms", "--backfill.mode", "off"}, flags...)
	p := start(t, processor...)
	base := p.address(t)
	ready(t, base)
	writer := generate.NewKafkaWriter(&kafka.Transport{}, []string{flags[7]})
	defer writer.Close()
	now := time.Now().Truncate(time.Second)
	cut := now.Add(-5 * 24 * time.Hour)
	row := func(at time.Time) string { return fmt.Sprintf("%d,u1", at.UnixMilli()) }
	// The log has two events before the cut, one at the cut, and two after it.
	for _, at := range []time.Time{cut.Add(-time.Hour), cut.Add(-time.Millisecond), cut, cut.Add(time.Millisecond), now} {
		value := fmt.Appendf(nil, `{"at": %d, "user": "u1"}`, at.UnixMilli())
		if err := writer.WriteMessages(t.Context(), kafka.Message{Topic: "transactions", Value: value, Time: at}); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) []string { return append(append([]string{"backfill"}, args...), flags...) }
	testkit.Eventually(t, patience, "everything is applied", func() (bool, string) {
		out, err := weir(t, append([]string{"progress", "--max-lag", "0"}, flags...)...)
		return err == nil && strings.HasSuffix(out, "\ntotal lag 0\n"), fmt.Sprint(out, err)
	})
	// The files have them too, but for the last, and two more from before.
	old := now.Add(-20 * 24 * time.Hour)
	file := put("a.csv", strings.Join([]string{"at,user", row(cut), row(old), row(cut.Add(-time.Millisecond)), row(cut.Add(-time.Hour)), row(cut.Add(time.Millisecond)), row(old.Add(time.Hour))}, "\n"))
	until := cut.UTC().Format(time.RFC3339)
	for want, args := range map[string][]string{
		`--until: "yesterday" is neither a moment such as 2026-01-31T23:59:59Z nor milliseconds since 1970`: {"--input", "tx=" + file, "--until", "yesterday"},
		`--since 1700000000000 is not before --until 1700000000000`:                                         {"--input", "tx=" + file, "--until", "1700000000000", "--since", "1700000000000"},
		"--input: " + file + ": name the stream of its events: STREAM=" + file:                              {"--input", file, "--until", until},
		`--input: pay=x: unknown stream "pay"; known: in, tx`:                                               {"--input", "pay=x", "--until", until},
		"open " + folder + "/none.csv: no such file or directory":                                           {"--input", "tx=" + folder + "/none.csv", "--until", until},
		file + `:1: field record time of tx: unknown column "came"; known: at, user`:                        {"--input", "tx=" + file, "--until", until, "--record-time", "came"},
	} {
		look(t, want, command(args...)...)
	}
	put("bad.csv", "at,user\n1,u1\nx,u1")
	_, err := weir(t, command("--input", "tx="+folder+"/bad.csv", "--until", until)...)
	if got := fmt.Sprint(err); !strings.HasPrefix(got, "1 of 2 events of transactions cannot be used; the first: "+folder+"/bad.csv:3: ") || !strings.HasSuffix(got, "; --set-aside leaves them out") {
		t.Errorf("unexpected error for a file with a bad event:\n%s", got)
	}
	later := now.Add(time.Hour)
	_, err = weir(t, command("--input", "tx="+file, "--until", later.Format(time.RFC3339))...)
	if got := fmt.Sprint(err); !strings.Contains(got, "is later than the newest record applied") {
		t.Errorf("unexpected error for --until in the future:\n%s", got)
	}
	p.stop()
	_ = p.wait(t)
	fill := start(t, command("--input", "tx="+file, "--until", until, "--rate", "1")...)
	testkit.Eventually(t, patience, "it waits for processors", func() (bool, string) {
		return strings.Contains(fill.out.String(), "waiting until processors take the files into account for paid: "), fill.out.String() + fill.err.String()
	})
	p = start(t, processor...)
	base = p.address(t)
	ready(t, base)
	if err := fill.wait(t); err != nil {
		t.Fatal(err, fill.out.String())
	}
	ask := func() string {
		return look(t, "", "query", "--address", base, "--json", "paid", "last_hour", "user=u1")
	}
	if answer, out := ask(), fill.out.String(); !strings.Contains(answer, `"value":5,"status":"PRESENT"`) ||
		!strings.Contains(out, "\npaid: complete since the beginning, without the files: they reach back less far than the present state, so features keep that.") {
		t.Errorf("a topic that has all events: answer %s, output\n%s", answer, out)
	}
	answers := func(want string) {
		t.Helper()
		testkit.Eventually(t, patience, "the answer is "+want, func() (bool, string) {
			answer := ask()
			return strings.Contains(answer, want), answer
		})
	}
	since := func(moment time.Time) []string {
		return command("--input", "tx="+file, "--until", until, "--since", moment.UTC().Format(time.RFC3339))
	}
	look(t, "--since "+old.Add(time.Second).UTC().Format(time.RFC3339)+": the files of transactions were registered as having all events since "+
		old.UTC().Format(time.RFC3339)+": choose another cut, which fills everything again", since(old.Add(time.Second))...)
	if out, want := look(t, "", since(old)...), "\npaid: complete since "+old.UTC().Format(time.RFC3339)+"\n"; !strings.Contains(out, want) {
		t.Errorf("with --since %v the output is\n%swant\n%s", old, out, want)
	}
	answers(`"value":7,"status":"INCOMPLETE"`)
	answers(fmt.Sprintf(`"complete_since":%d`, old.UnixMilli()))
	if out := look(t, "", command("--input", "tx="+file, "--until", until, "--since", "beginning")...); !strings.Contains(out, "\npaid: complete since the beginning\n") {
		t.Errorf("with --since beginning the output does not say so:\n%s", out)
	}
	counts := func(n int) {
		t.Helper()
		answers(fmt.Sprintf(`"value":%d,"status":"PRESENT"`, n))
	}
	counts(7)
	if out := look(t, "", command("--input", "tx="+file, "--until", until)...); !strings.Contains(out, "done") {
		t.Errorf("a repeated backfill is not done:\n%s", out)
	}
	counts(7)
	// A copy in an object store is the same file.
	object := objectstore.New(t).Put(t, "history/a.csv", []byte(read(t, file)))
	if out := look(t, "", command("--input", "tx="+object, "--until", until)...); !strings.Contains(out, object+": 6 events of tx, 4 before --until\n") {
		t.Errorf("a backfill from an object does not count its events:\n%s", out)
	}
	counts(7)
	put("a.csv", "at,user\n"+row(old))
	_, err = weir(t, command("--input", "tx="+file, "--until", until)...)
	if got := fmt.Sprint(err); !strings.HasPrefix(got, file+" was changed since it was backfilled, when it had 6 rows") {
		t.Errorf("unexpected error for a file that has changed:\n%s", got)
	}
	put("b.csv", "at,user\n"+row(old.Add(2*time.Hour))+"\nx,u1")
	look(t, "", command("--input", "tx="+folder+"/b.csv", "--until", until, "--rate", "1", "--set-aside")...)
	counts(8)
	more := slices.Clone(flags)
	more[1] = put("more.yaml", "streams: {tx: {topic: transactions, timestamp: at, fields: {user: string}}}\nfeatures: {other: 'COUNT(20d, tx, user, tile=2h)'}\n")
	fill = start(t, append([]string{"backfill", "--input", "tx=" + folder + "/b.csv", "--until", until, "--set-aside"}, more...)...)
	testkit.Eventually(t, patience, "it waits for processors with its definitions", func() (bool, string) {
		return strings.Contains(fill.out.String(), "waiting until processors take the files into account for other: a minute at most, if they have these definitions"), fill.out.String() + fill.err.String()
	})
	fill.stop()
	if err := fill.wait(t); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped backfill ends with the error %v, want context.Canceled", err)
	}
}

// The files of a sink locate the record of each row. Events count from the files up to their last record, and from the
// log after it, independent of event times.
func TestBackfillFromFilesByOffsets(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, allTopics)
	folder := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flags[1] = put("features.yaml", `streams: {tx: {topic: transactions, timestamp: at, fields: {user: string}}}
features: {paid: 'COUNT(30d, tx, user, tile=1h)'}
`)
	processor := append([]string{"run", "--processor.commit_interval", "10ms", "--backfill.mode", "off"}, flags...)
	p := start(t, processor...)
	ready(t, p.address(t))
	client := &kafka.Client{Addr: kafka.TCP(flags[7]), Transport: &kafka.Transport{}}
	now := time.Now().Truncate(time.Second)
	// Partition 0 has five records at offsets 0 to 4, in no order of their times, and partition 1 one.
	for partition, days := range [][]int{{3, 9, 1, 8, 2}, {4}} {
		for _, ago := range days {
			at := now.Add(-time.Duration(ago) * 24 * time.Hour)
			r, err := client.Produce(t.Context(), &kafka.ProduceRequest{
				Topic: "transactions", Partition: partition, RequiredAcks: kafka.RequireAll,
				Records: kafka.NewRecordReader(kafka.Record{Time: at, Value: kafka.NewBytes(fmt.Appendf(nil, `{"at": %d, "user": "u1"}`, at.UnixMilli()))}),
			})
			if err != nil || r.Error != nil {
				t.Fatal(err, r)
			}
		}
	}
	testkit.Eventually(t, patience, "everything is applied", func() (bool, string) {
		out, err := weir(t, append([]string{"progress", "--max-lag", "0"}, flags...)...)
		return err == nil && strings.HasSuffix(out, "\ntotal lag 0\n"), fmt.Sprint(out, err)
	})
	command := func(args ...string) []string { return append(append([]string{"backfill"}, args...), flags...) }
	row := func(partition, offset, ago int) string {
		return fmt.Sprintf("%d,u1,transactions,%d,%d\n", now.Add(-time.Duration(ago)*24*time.Hour).UnixMilli(), partition, offset)
	}
	// The file has the log's first three records, and by its coordinates a fourth one between them.
	file := put("a.csv", "at,user,topic,partition,offset\n"+row(0, 2, 1)+row(0, 0, 3)+row(0, 1, 9)+row(1, 0, 4))
	for want, args := range map[string][]string{
		"--input needs --until or --offsets: what counts from the files, and what from the log":                           {"--input", file},
		"--offsets offset: name two or three fields: PARTITION,OFFSET or TOPIC,PARTITION,OFFSET":                          {"--input", file, "--offsets", "offset"},
		"--until, --offsets, --since, --record-time and --set-aside apply to files: name the files with --input":          {"--offsets", "partition,offset"},
		"--offsets: the files have records of partition 9, and topic transactions has the partitions 0 to 1":              {"--input", put("b.csv", "at,user,partition,offset\n1,u1,9,0"), "--offsets", "partition,offset"},
		"--offsets: the files have records of partition 0 up to offset 5, and its log ends at 5: they are of another log": {"--input", put("c.csv", "at,user,partition,offset\n1,u1,0,5"), "--offsets", "partition,offset"},
		folder + `/d.csv:2: offset: expected a 64-bit integer, found a string`:                                            {"--input", put("d.csv", "at,user,partition,offset\n1,u1,0,x"), "--offsets", "partition,offset"},
	} {
		_, err := weir(t, command(args...)...)
		if got := fmt.Sprint(err); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
	p.stop()
	_ = p.wait(t)
	offsets := []string{"--input", "tx=" + file, "--offsets", "topic,partition,offset", "--since", "beginning", "--rate", "1"}
	fill := start(t, command(offsets...)...)
	testkit.Eventually(t, patience, "it waits for processors", func() (bool, string) {
		return strings.Contains(fill.out.String(), "waiting until processors take the files into account for paid: "), fill.out.String() + fill.err.String()
	})
	p = start(t, processor...)
	base := p.address(t)
	ready(t, base)
	if err := fill.wait(t); err != nil || !strings.Contains(fill.out.String(), "\npaid: complete since the beginning\n") {
		t.Fatal(err, fill.out.String())
	}
	counts := func() {
		t.Helper()
		testkit.Eventually(t, patience, "each record counts once", func() (bool, string) {
			answer := look(t, "", "query", "--address", base, "--json", "paid", "user=u1")
			return strings.Contains(answer, `"value":6,"status":"PRESENT"`), answer
		})
	}
	counts()
	look(t, "", command(offsets...)...)
	counts()
}

// While a backfill waits for a server, it says so, once, and what it lost.
func TestBackfillShowsWhyItWaits(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := slog.New(shownLog{&fillScreen{out: &out, said: map[string]string{}}}).With("fill", "f")
	for range 2 {
		log.Info("backfilling", "partition", "tx/0")
		log.Warn("backfilling fails, trying again", "error", errors.New("Redis does not answer"))
	}
	log.Error("a batch cannot be decoded and is not backfilled", "partition", "tx/0", "first", 7, "error", "its checksum is wrong")
	want := "backfilling fails, trying again: Redis does not answer\na batch cannot be decoded and is not backfilled, partition tx/0, first 7: its checksum is wrong\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// A fill that is almost done is not shown as 100%.
func TestBackfillRoundsDown(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := &fillScreen{out: &out, registry: defined.Registry(t, "streams: {s: {topic: t, timestamp: at, fields: {user: string}}}\nfeatures: {}\n"), said: map[string]string{}}
	if s.until(&state.Fill{ID: "f"}, backfill.Progress{Filled: 999, All: 1000}) || out.String() != ": 99%, 999 of 1000 records\n" {
		t.Errorf("got %q", out.String())
	}
}
