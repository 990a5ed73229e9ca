package integration_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// Events that the log no longer has come from files while events flow. The files are in every format, unordered, and
// overlap the log on both sides of the cut. The command, a processor and Redis are killed repeatedly, and Redis is
// restored from an older copy. In the end every feature of every entity equals the model over all events, and is
// complete since the beginning. Running the command again changes nothing.
func TestBackfillFromFiles(t *testing.T) {
	t.Parallel()
	past, live := fewer(60_000), fewer(20_000)
	s, server, g := newFiledScene(t)
	events := nextEvents(g, past)
	// The files have events up to filed, the log those from logged on.
	logged, filed := past/2, past*2/3
	cut := newCut(t, s, events, logged, filed)
	inputs := writeFiles(t, events[:filed])
	for _, e := range events[:logged] {
		_ = s.model.Apply(*recordOf(&e)) // poison is skipped
	}
	s.fadeOut(events[:logged])
	if err := s.write(events[logged:], s.producer.write); err != nil {
		t.Fatal(err)
	}
	api, first := s.start("api"), s.start("processor")
	s.awaitApplied()
	command := s.backfillFrom(inputs, "--until", strconv.FormatInt(cut, 10))
	var copied redistest.Copy
	killed := 0
	kill := fault{"the command is killed", func() {
		p := begun(t, command)
		if !hasEnded(p) {
			killed++
		}
		p.Kill()
	}}
	restart := s.restart(&first)
	s.untilProcessorsKnow(command, restart)
	kill.happen()
	s.flow(g, live,
		fault{"Redis is copied", func() { copied = server.SaveCopy() }},
		kill,
		restart,
		kill,
		fault{"Redis is put back to the copy while the command runs", func() {
			p := begun(t, command)
			before := strings.Count(p.Log(), "% of ")
			s.restore(server, copied)
			testkit.Eventually(t, 3*time.Minute, "the command goes on", func() (bool, string) {
				return strings.Count(p.Log(), "% of ") > before || hasEnded(p), p.Log()
			})
			p.Kill()
			killed++
		}},
		kill,
		fault{"Redis is killed", func() {
			s.kill(server)
			server.Start()
		}},
		kill,
	)
	if killed < 4 && !testkit.Race {
		t.Errorf("only %d of the commands were killed before they ended", killed)
	}
	t.Logf("%d of the commands were killed", killed)
	s.fillTwice(api, command)
}

// The files are those of a sink, whose rows have the coordinates of their records. They end at different moments in
// each partition, after what retention has removed, and events are late. The cut by offsets is exact, while the command
// and a processor are killed and Redis is restored from an older copy.
func TestBackfillFromFilesByOffsets(t *testing.T) {
	t.Parallel()
	past, live := fewer(20_000), fewer(5_000)
	s, server, g := newFiledScene(t)
	events := nextEvents(g, past)
	records, err := s.producer.write(events)
	if err != nil {
		t.Fatal(err)
	}
	s.written += int64(len(records))
	for _, r := range records {
		_ = s.apply(r) // poison is skipped
	}
	inputs := s.sink(records[:past*2/3])
	s.forget(records[:past/2])
	api, first := s.start("api"), s.start("processor")
	s.awaitApplied()
	command := s.backfillFrom(inputs, "--offsets", "partition,offset")
	var copied redistest.Copy
	restart := s.restart(&first)
	s.untilProcessorsKnow(command, restart)
	kill := fault{"the command is killed", func() { begun(t, command).Kill() }}
	s.flow(g, live,
		fault{"Redis is copied", func() { copied = server.SaveCopy() }},
		kill,
		fault{"Redis is put back to the copy", func() { s.restore(server, copied) }},
		kill,
		restart,
	)
	s.fillTwice(api, command)
}

// nextEvents makes the next n events.
func nextEvents(g *generate.Generator, n int) (events []generate.Event) {
	for range n {
		events = append(events, g.Next())
	}
	return events
}

// newFiledScene makes a scene with one stream for each topic, on its own Redis. Its events are far apart and late, so
// that files may have events that a log no longer has.
func newFiledScene(t *testing.T) (*scene, *redistest.Server, *generate.Generator) {
	t.Helper()
	server := redistest.New(t, redistest.Options{AOF: true})
	options := stream(150)
	options.Spacing, options.LateBy = time.Minute, 6*time.Hour
	s := newSceneOf(t, server.Client(t), []string{oneStreamATopic(t)}, "--redis.addresses", server.Addr())
	return s, server, generate.New(seed, options)
}

// backfillFrom returns a command that fills from files; divide are its flags about the cut.
func (s *scene) backfillFrom(inputs []string, divide ...string) func(rate string) *testkit.Program {
	return func(rate string) *testkit.Program {
		args := slices.Concat([]string{"backfill"}, s.settings, inputs, divide,
			[]string{"--since", "beginning", "--record-time", "record_time", "--set-aside", "--rate", rate})
		return testkit.Start(s.t, binary, args...)
	}
}

// restart kills a processor and starts another one.
func (s *scene) restart(processor **weir) fault {
	return fault{"a processor is killed", func() {
		s.kill(*processor)
		*processor = s.start("processor")
		(*processor).awaitReady()
	}}
}

// untilProcessorsKnow waits until a processor knows the files: processors learn of them within a minute, and new ones
// at once.
func (s *scene) untilProcessorsKnow(command func(rate string) *testkit.Program, restart fault) {
	waiting := command("1")
	testkit.Eventually(s.t, time.Minute, "the command waits for processors", func() (bool, string) {
		return strings.Contains(waiting.Log(), "waiting until processors"), waiting.Log()
	})
	restart.happen()
	waiting.Kill()
}

// begun starts a command, and waits until it has applied more than one batch, or has ended.
func begun(t testing.TB, command func(rate string) *testkit.Program) *testkit.Program {
	t.Helper()
	p := command("0.05")
	testkit.Eventually(t, 3*time.Minute, "the command is under way", func() (bool, string) {
		return strings.Count(p.Log(), "% of ") >= 2 || hasEnded(p), p.Log()
	})
	return p
}

// fillTwice runs a command that fills from files to its end, twice, and compares every answer with the
// model over all events.
func (s *scene) fillTwice(api *weir, command func(rate string) *testkit.Program) {
	t := s.t
	t.Helper()
	s.awaitApplied()
	for range 2 {
		p := command("1")
		testkit.Eventually(t, 5*time.Minute, "the command ends", func() (bool, string) {
			return hasEnded(p), p.Log()
		})
		if p.ExitCode() != 0 {
			t.Fatalf("the command failed:\n%s", p.Log())
		}
	}
	// Short windows that end now no longer reach back before the cut, and need not be complete there.
	c := blackbox.Comparison{T: t, URL: api.url, Model: s.model, Partly: true}
	c.All(s.registry, s.clock, moments(s.clock)...)
	if len(c.Incomplete) > 0 {
		t.Errorf("incomplete are %v", c.Incomplete)
	}
	t.Logf("%d answers compared; %d kills of servers and processors", c.Compared, s.kills)
	h, err := s.store.History(ctx)
	if err != nil {
		t.Fatal(err)
	}
	lifetimes := 0
	for _, f := range s.registry.Serving(h).Features {
		if !slices.ContainsFunc(f.Retained(), func(r state.Retained) bool { return r.Keep == 0 }) {
			continue
		}
		if lifetimes++; h.CompleteSince(f.Retained()) != state.MinTime {
			t.Errorf("%s is complete since %d", f.Name, h.CompleteSince(f.Retained()))
		}
	}
	if lifetimes == 0 {
		t.Error("no feature is kept forever")
	}
}

func hasEnded(p *testkit.Program) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// oneStreamATopic has features of every function, over one stream of each topic: the files of other streams would also
// be needed.
func oneStreamATopic(t *testing.T) (path string) {
	t.Helper()
	text, err := os.ReadFile("testdata/functions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const amount = "amount: {type: decimal, scale: 2"
	path = filepath.Join(t.TempDir(), "functions.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), amount, amount+", required: true", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newCut returns a moment around which files and log both have all events.
func newCut(t *testing.T, s *scene, events []generate.Event, logged, filed int) int64 {
	t.Helper()
	cut := events[(logged+filed)/2].Timestamp
	for i := range events {
		decoded, err := s.registry.NewDecoder().Decode(recordOf(&events[i]))
		if err != nil || len(decoded) == 0 {
			continue
		}
		if at := decoded[0].Time; at < cut && i >= filed || at >= cut && i < logged {
			t.Fatalf("event %d of %d is on the wrong side of the cut", i, at)
		}
	}
	return cut
}

// recordOf is an event as a record.
func recordOf(e *generate.Event) *record.Record {
	return &record.Record{Partition: state.Partition{Topic: e.Topic}, Timestamp: e.Timestamp, Key: e.Key, Value: e.Value}
}

// fadeOut writes the last of some events to the log, and makes retention remove them.
func (s *scene) fadeOut(events []generate.Event) {
	s.t.Helper()
	records, err := s.producer.write(events[max(0, len(events)-500):])
	if err != nil {
		s.t.Fatal(err)
	}
	s.forget(records)
	s.written += int64(len(records))
}

// forget makes retention remove the log up to some records.
func (s *scene) forget(records []*kgo.Record) {
	s.t.Helper()
	ends := map[state.Partition]int64{}
	for _, r := range records {
		p := state.Partition{Topic: r.Topic, ID: r.Partition}
		ends[p] = max(ends[p], r.Offset+1)
	}
	for p, end := range ends {
		request, of, partition := kmsg.NewPtrDeleteRecordsRequest(), kmsg.NewDeleteRecordsRequestTopic(), kmsg.NewDeleteRecordsRequestTopicPartition()
		partition.Partition, partition.Offset = p.ID, end
		of.Topic, of.Partitions = p.Topic, append(of.Partitions, partition)
		request.Topics, request.TimeoutMillis = append(request.Topics, of), 5000
		response, err := request.RequestWith(ctx, s.producer.plain)
		if err != nil || response.Topics[0].Partitions[0].ErrorCode != 0 {
			s.t.Fatal(err, response)
		}
	}
}
