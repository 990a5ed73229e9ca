package integration_test

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features"
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

// checkEnriched compares a stream's enriched events with the model of each partition. Devices have events in several ones.
func (s *scene) checkEnriched(name string) {
	s.t.Helper()
	stream, _ := s.registry.Stream(name)
	c := blackbox.Comparison{T: s.t, Model: model.New(s.registry)}
	repeated := c.Enriched(s.registry, stream, s.read(stream.Topic), s.read(s.registry.Enrichment(stream).Topic), func(f *features.Feature) bool {
		return slices.Contains(f.By, "device_id")
	})
	s.t.Logf("%d events were written again; %d answers compared, %d differ", repeated, c.Compared, c.Wrong)
	if repeated == 0 || c.Compared == 0 {
		s.t.Error("the faults had no effect")
	}
}

// firsts returns the enriched events in a topic; see blackbox.Firsts.
func (s *scene) firsts(topic string) (firsts map[state.Partition][]*kgo.Record, repeated int) {
	s.t.Helper()
	firsts, repeated, err := blackbox.Firsts(s.read(topic))
	if err != nil {
		s.t.Fatal(err)
	}
	return firsts, repeated
}

// readAll reads a topic to its end, without aborted records, by partition.
func (s *scene) readAll(topic string) map[string][]*kgo.Record {
	s.t.Helper()
	all := map[string][]*kgo.Record{}
	for p, records := range s.read(topic) {
		all[topic+"/"+strconv.Itoa(int(p))] = records
	}
	return all
}

// read is readAll by the number of the partition.
func (s *scene) read(topic string) map[int32][]*kgo.Record {
	s.t.Helper()
	patient, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	byPartition, err := blackbox.ReadCommitted(patient, s.broker, topic, topics[topic])
	if err != nil {
		s.t.Fatal(err)
	}
	return byPartition
}
