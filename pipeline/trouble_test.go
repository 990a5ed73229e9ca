package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// readDead reads n dead letters.
func (b *bench) readDead(n int) []kafka.Message {
	b.t.Helper()
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: b.config.Brokers, Topic: b.config.DeadLetterTopic, MaxWait: 50 * time.Millisecond,
	})
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var list []kafka.Message
	for range n {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			b.t.Fatalf("dead letter %d of %d: %v", len(list)+1, n, err)
		}
		list = append(list, m)
	}
	return list
}

func header(m kafka.Message, key string) string {
	for _, h := range slices.Backward(m.Headers) {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// Each kind of poison is set aside unchanged, with its reason and its source. The events before and after it count.
func TestPoisonIsSetAside(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.config.MaxRecordBytes = 1000
	poison := []struct{ value, reason, stream, message string }{
		{`{"type":"payment",`, "malformed", "payment", "byte 18"},
		{`{"type":"payment","at":1532496076032,"user":"u1","cents":7}`, "missing_field", "payment", "note"},
		{`{"type":"payment","at":1532496076032,"user":"u1","cents":"7","note":""}`, "wrong_type", "payment", "cents"},
		{`{"type":"payment","user":"u1","cents":7,"note":""}`, "missing_timestamp", "payment", "at"},
		{`{"type":"payment","at":"noon","user":"u1","cents":7,"note":""}`, "bad_timestamp", "payment", "at"},
		{`{"type":"payment","at":1632496076032,"user":"u1","cents":7,"note":""}`, "future_timestamp", "payment", "at"},
		{`{"type":"payment","at":1532496076032,"user":"u1","cents":7,"note":"` + strings.Repeat("x", 1000) + `"}`, "oversized", "", "limit is 1000"},
	}
	for i, p := range poison {
		m := payment(i)
		m.Value = []byte(p.value)
		m.Headers = []kafka.Header{{Key: "trace", Value: []byte(p.reason)}}
		b.write(payments(i*10, i*10+10)...)
		b.write(m)
	}
	b.run()
	b.expect(10 * len(poison))
	b.committed(11 * len(poison)) // what is applied may not be counted yet, what is committed is
	letters := b.readDead(len(poison))
	for _, p := range poison {
		i := slices.IndexFunc(letters, func(m kafka.Message) bool { return string(m.Value) == p.value })
		if i < 0 {
			t.Errorf("no dead letter has the value %.80s", p.value)
			continue
		}
		m := letters[i]
		if header(m, "weir-reason") != p.reason || header(m, "weir-stream") != p.stream ||
			!strings.Contains(header(m, "weir-message"), p.message) || header(m, "trace") != p.reason ||
			header(m, "weir-topic") != "payments" || header(m, "weir-namespace") != "shop" || header(m, "weir-partition") == "" || header(m, "weir-offset") == "" {
			t.Errorf("unexpected headers %q of %.80s", m.Headers, p.value)
		}
	}
	known := b.processor.DeadLetters()
	for i, d := range known {
		if i := slices.IndexFunc(letters, func(m kafka.Message) bool {
			return header(m, "weir-topic") == d.Partition.Topic && header(m, "weir-partition") == fmt.Sprint(d.Partition.ID) &&
				header(m, "weir-offset") == fmt.Sprint(d.Offset) && header(m, "weir-timestamp") == fmt.Sprint(d.Timestamp) &&
				header(m, "weir-reason") == string(d.Reason) && header(m, "weir-stream") == d.Stream &&
				strings.Contains(header(m, "weir-message"), d.Path)
		}); i < 0 {
			t.Errorf("%+v is listed, but no dead letter was written for it", d)
		}
		if slices.Contains(known[:i], d) {
			t.Errorf("%+v is listed twice", d)
		}
	}
	if len(known) != len(poison) {
		t.Errorf("%d dead letters are listed, want %d", len(known), len(poison))
	}
	if s := b.processor.Stats(); s.Dead != int64(len(poison)) || s.Applied != int64(10*len(poison)) {
		t.Errorf("unexpected stats %+v", s)
	}
}

// A dead letter that cannot be written stops only its partition. Once it can be written, nothing is missing.
func TestDeadLetterCannotBeWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	metrics := prometheus.NewRegistry()
	b.config.Metrics = metrics
	fault := b.broker.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: deadLetters, Err: kerr.TopicAuthorizationFailed, Count: -1,
	})
	bad := payment(0) // of partition 0
	bad.Value = []byte("{")
	b.write(bad)
	b.write(payments(0, 300)...)
	b.run()
	testkit.Eventually(t, time.Minute, "the other partitions processed, this one not, and readiness says why", func() (bool, string) {
		p, err := b.progress(), fmt.Sprint(b.processor.Ready(context.Background()))
		ok := state.Highest(p[0]) == 0 && state.Lowest(p[1]) == 100 && state.Lowest(p[2]) == 100
		return ok && strings.Contains(err, "payments/0: write dead letters to "), fmt.Sprint(p, err)
	})
	fault.Remove()
	b.expect(300)
	if letters := b.readDead(1); string(letters[0].Value) != "{" {
		t.Errorf("the dead letter is %q, want {", letters[0].Value)
	}
	b.committed(301)
	// Records that were left out of batches and read again count when they are applied.
	if s := b.processor.Stats(); s.Applied != 300 || s.Dead != 1 {
		t.Errorf("stats %+v, want 300 applied and 1 dead", s)
	}
	if events, letters := count(t, metrics, "weir_events_total"), count(t, metrics, "weir_dead_letters_total"); events != 301 || letters != 1 {
		t.Errorf("%v events and %v dead letters are counted, want 301 and 1", events, letters)
	}
}

// The processor waits for a Redis that was killed. Records that its file lacks are read again.
func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := redistest.New(t, redistest.Options{AOF: true})
	b.useRedis(server)
	b.write(payments(0, 300)...)
	b.run()
	b.expect(300)
	server.Kill()
	b.write(payments(300, 600)...)
	testkit.Eventually(t, time.Minute, "readiness fails", func() (bool, string) {
		err := b.processor.Ready(context.Background())
		return err != nil && strings.Contains(err.Error(), "worker"), fmt.Sprint(err)
	})
	server.Start()
	b.expect(600)
	b.committed(600)
}

func (b *bench) useRedis(server *redistest.Server) {
	b.redis = server.Client(b.t)
	b.store = redisstore.New(b.redis, "weir", 8)
	b.config.Store = b.store
}

// A Redis that is put back to an older copy, or to nothing, is detected and brought up to date,
// even if no further events come.
func TestRedisGoesBackInTime(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	metrics := prometheus.NewRegistry()
	b.config.Metrics = metrics
	server := redistest.New(t, redistest.Options{AOF: true})
	b.useRedis(server)
	empty := server.SaveCopy()
	b.write(payments(0, 200)...)
	b.run()
	b.expect(200)
	old := server.SaveCopy()
	b.write(payments(200, 500)...)
	b.expect(500)
	server.RestoreCopy(old)
	b.expect(500)
	b.write(payments(500, 600)...)
	b.expect(600)
	server.RestoreCopy(empty)
	b.expect(600)
	b.committed(600)
	if n := count(t, metrics, "weir_rewinds_total"); n < 2*partitions {
		t.Errorf("%v rewinds counted, want at least %d", n, 2*partitions)
	}
}

func count(t *testing.T, r *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.Metric {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// Records that were not applied and are gone from the log stop their partition, which says which records; the others
// continue. If so configured, it continues without them and counts them.
func TestRecordsLost(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(payments(0, 30)...)
	b.run()
	b.expect(30)
	b.committed(30)
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	b.write(payments(30, 60)...)
	if err := b.broker.DeleteRecords("payments", 1, 15); err != nil {
		t.Fatal(err)
	}
	metrics := prometheus.NewRegistry()
	b.config.Metrics = metrics
	b.run()
	b.stopped("payments/1: offsets 10 to 14 (5 records) were not applied and are no longer in the log; to go on without them, " +
		"set kafka.on_data_loss to continue, or run: weir progress set payments/1 --to start --yes")
	b.committed(50) // the other partitions
	if n := gaugeOf(t, metrics, "weir_stopped_partitions", "loss"); n != 1 {
		t.Errorf("%v partitions were counted as stopped, want 1", n)
	}
	if n := count(t, metrics, "weir_lost_records_total"); n != 0 {
		t.Errorf("%v records were counted as lost, although they may come back", n)
	}
	if since := b.since(b.registry, "paid"); since != state.MinTime {
		t.Errorf("complete since %d before anything was lost, want since always", since)
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	began := time.Now().UnixMilli()
	b.config.Recovery.ContinueOnLoss = true
	metrics = prometheus.NewRegistry()
	b.config.Metrics = metrics
	b.run()
	b.committed(60)
	if n := count(t, metrics, "weir_lost_records_total"); n != 5 {
		t.Errorf("%v records were counted as lost, want 5", n)
	}
	if since := b.since(b.registry, "paid"); since < began || since == state.MaxTime {
		t.Errorf("complete since %d, although records were lost after %d", since, began)
	}
}

// stopped waits until the processor reports that a partition cannot continue, and why. The other partitions continue.
func (b *bench) stopped(why string) {
	b.t.Helper()
	testkit.Eventually(b.t, time.Minute, "a partition is stopped", func() (bool, string) {
		err := b.processor.Ready(context.Background())
		return err != nil && strings.Contains(err.Error(), why), fmt.Sprintf("ready: %v\nwant: %s", err, why)
	})
	select {
	case err := <-b.done:
		b.done <- err
		b.t.Fatalf("the processor has ended: %v", err)
	default:
	}
}

// gaugeOf is a gauge's value with a reason.
func gaugeOf(t *testing.T, r *prometheus.Registry, name, reason string) (sum float64) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name && slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetValue() == reason }) {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// remake deletes the topic and recreates it.
func (b *bench) remake() {
	b.t.Helper()
	if err := b.broker.DeleteTopic("payments"); err != nil {
		b.t.Fatal(err)
	}
	if err := b.broker.CreateTopic("payments", partitions, nil); err != nil {
		b.t.Fatal(err)
	}
}

// adopt places all partitions of the topic at the start of the current log, as `weir progress set`
// does.
func (b *bench) adopt(id state.LogID) {
	b.t.Helper()
	for i, at := range b.progress() {
		p := state.Placement{Partition: state.Partition{Topic: "payments", ID: int32(i)}, From: at, Log: id, Partitions: partitions}
		for range at {
			p.To = append(p.To, state.Position{Epoch: -1, Log: id.Tag()})
		}
		if n, err := b.store.Place(context.Background(), p); err != nil || n != len(at) {
			b.t.Fatal(n, err)
		}
	}
}

// logID is the current log of the topic.
func (b *bench) logID() state.LogID {
	b.t.Helper()
	poller := fetch.NewPoller(fetch.PollerConfig{Transport: b.config.Transport, Bootstrap: kafka.TCP(b.config.Brokers...)})
	defer poller.Close()
	logs, err := poller.Logs(context.Background(), []state.Partition{{Topic: "payments"}})
	if err != nil || logs[0].Err != nil {
		b.t.Fatal(err, logs)
	}
	return logs[0].ID
}

// A topic that was deleted and created again, while the processor is stopped or running, is detected at any length of
// the new log and with any setting for lost records. Nothing of it is applied until an operator decides; then it
// continues by itself.
func TestTopicRecreated(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{false, true} {
		t.Run(fmt.Sprint("running ", running), func(t *testing.T) {
			b := newBench(t)
			b.config.Recovery.ContinueOnLoss = true
			b.write(payments(0, 60)...)
			b.run()
			b.expect(60)
			b.committed(60)
			was := b.logID()
			if !running {
				if err := b.stop(); err != nil {
					t.Fatal(err)
				}
			}
			b.remake()
			b.write(payments(60, 150)...)
			if !running {
				b.run()
			}
			b.stopped(fmt.Sprintf("payments/2: the topic was deleted and recreated: up to offset 20 was applied of %v, "+
				"and now there are offsets 0 to 29 of %v; nothing of it is applied until you choose: "+
				"to keep the state and apply the new log from its start, run: weir progress set payments --to start --yes; "+
				"to start over from the new log alone, set another namespace", was, b.logID()))
			b.expect(60)
			b.adopt(b.logID())
			b.expect(150)
			testkit.Eventually(t, time.Minute, "readiness", func() (bool, string) {
				err := b.processor.Ready(context.Background())
				return err == nil, fmt.Sprint(err)
			})
		})
	}
}

// Two processors share the partitions, and one takes over when the other ends.
func TestProcessorsShare(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.run()
	first, stopFirst := b.processor, b.stop
	b.run()
	testkit.Eventually(t, time.Minute, "both have partitions", func() (bool, string) {
		a, c := first.Stats().Assigned, b.processor.Stats().Assigned
		return a > 0 && c > 0 && a+c == partitions, fmt.Sprint(a, " and ", c)
	})
	b.write(payments(0, 300)...)
	b.expect(300)
	if err := stopFirst(); err != nil {
		t.Fatal(err)
	}
	b.write(payments(300, 600)...)
	b.expect(600)
	b.committed(600)
}
