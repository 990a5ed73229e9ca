package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// A consumer that skips repeated offsets gets each transaction once and in order, with the features
// that a plain loop over its partition computes, even when processes are killed and Redis goes back
// in time.
func TestEnrichedEvents(t *testing.T) {
	t.Parallel()
	events := fewer(40_000)
	server := redistest.New(t, redistest.Options{AOF: true})
	paths, err := filepath.Abs("testdata/enrich.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := newSceneOf(t, server.Client(t), []string{paths}, "--redis.addresses", server.Addr())
	api := s.start("api")
	first, second := s.start("processor"), s.start("processor")
	var old redistest.Copy
	s.flow(generate.New(seed, stream(200)), events,
		fault{"a processor is killed and replaced", func() {
			s.kill(first)
			first = s.start("processor")
		}},
		fault{"Redis is killed and started from its AOF", func() {
			s.kill(server)
			server.Start()
		}},
		fault{"a copy of Redis is taken", func() { old = server.SaveCopy() }},
		fault{"the broker is killed and started", func() {
			s.kill(s.broker)
			s.broker.Start()
		}},
		fault{"Redis is put back to the copy", func() {
			awaitShared(t, first, second)
			before := s.rewinds()
			s.restore(server, old)
			s.awaitRewind(before)
		}},
		fault{"all processors are killed, and two started", func() {
			s.kill(first, second)
			first, second = s.start("processor"), s.start("processor")
		}},
	)
	s.finish(api, events)
	s.checkEnriched("transaction")
}

// checkEnriched compares a stream's enriched events with the model of each partition, event by
// event.
func (s *scene) checkEnriched(name string) {
	s.t.Helper()
	stream, _ := s.registry.Stream(name)
	got, repeated := s.firsts(s.registry.Enrichment(stream).Topic)
	decoder, compared, wrong := s.registry.NewDecoder(), 0, 0
	loop := model.New(s.registry)
	for p, records := range s.readAll(stream.Topic) {
		rest := got[p]
		for _, r := range records {
			record := record.Record{
				Partition: state.Partition{Topic: r.Topic, ID: r.Partition}, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Value: r.Value,
			}
			if loop.Apply(record) != nil {
				continue // poison
			}
			events, err := decoder.Decode(&record)
			if err != nil {
				s.t.Fatal(err)
			}
			if len(rest) == 0 || header(rest[0], "weir-source-offset") != strconv.FormatInt(r.Offset, 10) {
				s.t.Fatalf("%s: offset %d is not the next event's; %d are left, from %v", p, r.Offset, len(rest), rest[:min(1, len(rest))])
			}
			n, differences := compareEnriched(s.registry.Enrichment(stream), &events[0], loop, r, rest[0])
			rest, compared = rest[1:], compared+n
			for _, d := range differences {
				if wrong++; wrong <= blackbox.Shown {
					s.t.Errorf("%s/%d: %s", p, r.Offset, d)
				}
			}
		}
		if len(rest) > 0 {
			s.t.Errorf("%s: %d enriched records too many", p, len(rest))
		}
	}
	s.t.Logf("%d events were written again; %d answers compared, %d differ", repeated, compared, wrong)
	if repeated == 0 || compared == 0 {
		s.t.Error("the faults had no effect")
	}
}

// compareEnriched compares one event with the model, right after the model applied it.
func compareEnriched(enrichment *features.Enrichment, e *record.Event, loop *model.Model, in, out *kgo.Record) (compared int, differences []string) {
	var value struct {
		Event    json.RawMessage
		Features map[string]answer
	}
	if err := json.Unmarshal(out.Value, &value); err != nil {
		return 0, []string{err.Error()}
	}
	if !bytes.Equal(value.Event, in.Value) || !bytes.Equal(out.Key, in.Key) || out.Partition != in.Partition || !out.Timestamp.Equal(in.Timestamp) {
		differences = append(differences, "the event is not as it came: "+string(out.Value))
	}
	for _, f := range enrichment.Service.Features {
		entity, ok := e.Entity(nil, f.By)
		got := value.Features[f.Name]
		if !ok {
			if string(got.Value) != "null" || got.Status != query.NotFound {
				differences = append(differences, f.Name+" of nobody is "+string(got.Value))
			}
			continue
		}
		if slices.Contains(f.By, "device_id") {
			// The device has events in other partitions.
			if got.Status == "" || len(got.Value) == 0 {
				differences = append(differences, f.Name+" is missing")
			}
			continue
		}
		compared++
		if d := blackbox.Differs(got, f, loop.Answer(f, string(entity), e.Time)); d != "" {
			differences = append(differences, f.Name+" of "+string(entity)+": "+d)
		}
	}
	return compared, differences
}

// firsts returns the records of a topic of enriched events by source partition, without those whose
// source offset came before.
func (s *scene) firsts(topic string) (firsts map[string][]*kgo.Record, repeated int) {
	s.t.Helper()
	firsts = map[string][]*kgo.Record{}
	seen := map[string]int64{}
	for _, records := range s.readAll(topic) {
		for _, r := range records {
			p := header(r, "weir-source-topic") + "/" + header(r, "weir-source-partition")
			offset, err := strconv.ParseInt(header(r, "weir-source-offset"), 10, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			if last, ok := seen[p]; ok && offset <= last {
				repeated++
				continue
			}
			seen[p] = offset
			firsts[p] = append(firsts[p], r)
		}
	}
	return firsts, repeated
}

// readAll reads a topic to its end, without aborted records, by partition.
func (s *scene) readAll(topic string) map[string][]*kgo.Record {
	s.t.Helper()
	patient, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	byPartition, err := blackbox.ReadCommitted(patient, s.broker, topic, topics[topic])
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string][]*kgo.Record{}
	for p, records := range byPartition {
		all[topic+"/"+strconv.Itoa(int(p))] = records
	}
	return all
}
