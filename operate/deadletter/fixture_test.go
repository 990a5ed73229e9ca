package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/state"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// fixture is a topic of events and one of dead letters on a real broker.
type fixture struct {
	t      *testing.T
	broker *kafkatest.Broker
	client *kgo.Client
	source string
	topic  *Topic
	state  *passed
}

// passed is a State that says what a test says.
type passed struct {
	history state.History
	// fillings are those of every shard, by fill and partition.
	fillings map[string]map[state.Partition][]state.Filling
	// meanwhile, if not nil, is called once when the history was read.
	meanwhile func()
}

func (p *passed) History(context.Context) (*state.History, error) {
	read := p.history
	if p.meanwhile != nil {
		p.meanwhile()
		p.meanwhile = nil
	}
	return &read, nil
}

func (p *passed) Fillings(_ context.Context, f *state.Fill, partitions []state.Partition) (all [][]state.Filling, err error) {
	for _, id := range partitions {
		all = append(all, p.fillings[f.ID][id])
	}
	return all, nil
}

func newPassed() *passed {
	return &passed{history: state.History{Plans: map[string]*state.Plan{}}, fillings: map[string]map[state.Partition][]state.Filling{}}
}

// keep applies a plan with series to a topic.
func (p *passed) keep(topic string, series ...string) {
	version := fmt.Sprint("plan", len(p.history.Plans))
	p.history.PlanEpochs = append(p.history.PlanEpochs, state.PlanEpoch{Topic: topic, Version: version, Last: state.MaxTime})
	plan := &state.Plan{Version: version, Retained: map[string]state.Retention{}}
	for _, id := range series {
		plan.Retained[id+" and what feeds it"] = state.Retention{}
	}
	p.history.Plans[version] = plan
}

// fill adds a fill of series of a topic, with its ranges in the shards of a partition, as shards store them; "" for one
// without the fill.
func (p *passed) fill(t *testing.T, f *state.Fill, series string, partition state.Partition, ranges ...string) {
	t.Helper()
	f.ID = fmt.Sprint("fill", len(p.history.Fills))
	f.Columns = map[string][]string{partition.Topic: {series + " and what feeds it"}}
	var shards []state.Filling
	for _, text := range ranges {
		shards = append(shards, testkit.ParseFilling(t, text, ""))
	}
	p.history.Fills = append(p.history.Fills, state.FillEpoch{Fill: f, Topic: partition.Topic})
	p.fillings[f.ID] = map[state.Partition][]state.Filling{partition: shards}
}

const partitions = 2

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, broker: kafkatest.Shared(t)}
	f.source = kafkatest.CreateTopic(t, f.broker, partitions)
	f.topic = &Topic{Client: f.broker.Client(), Name: kafkatest.CreateTopic(t, f.broker, partitions), Seal: defined.Seal()}
	f.state = newPassed()
	f.state.keep(f.source, "live1")
	f.client = f.newClient(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	return f
}

func (f *fixture) newClient(options ...kgo.Opt) *kgo.Client {
	f.t.Helper()
	client, err := kgo.NewClient(append(options, f.options()...)...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(client.Close)
	return client
}

func (f *fixture) options() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(f.broker.Addrs()...)} }

func (f *fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	f.t.Cleanup(cancel)
	return ctx
}

// began is when the first letter of a test was set aside; further ones follow at intervals of a
// second.
var began = time.Now().Add(-time.Hour).Truncate(time.Second)

// letter is a dead letter to be written.
type letter struct {
	partition int32 // of the dead-letter topic
	namespace string
	source    RecordID
	reason    string
	stream    string
	second    int // after began when it was set aside
	age       time.Duration
	value     string
	headers   []kgo.RecordHeader // of the record
	copies    []string           // what these say, if it is a copy
	forged    bool               // without a seal
	cut       string             // the lengths of the whole key and value
}

// setAside writes dead letters like the pipeline.
func (f *fixture) setAside(letters ...letter) {
	f.t.Helper()
	for _, l := range letters {
		rec := &kgo.Record{
			Topic: f.topic.Name, Partition: l.partition, Key: []byte("key " + l.value), Value: []byte(l.value),
			Timestamp: began.Add(time.Duration(l.second) * time.Second),
		}
		var headers []record.Header
		for _, h := range l.headers {
			headers = append(headers, record.Header{Key: record.Foreign(h.Key), Value: h.Value})
		}
		for _, says := range l.copies {
			headers = append(headers, record.Header{Key: record.CopyHeader, Value: []byte(says)})
		}
		for _, h := range [...][2]string{
			{pipeline.HeaderReason, l.reason}, {pipeline.HeaderMessage, "it is " + l.reason}, {pipeline.HeaderStream, l.stream},
			{pipeline.HeaderTopic, l.source.Topic}, {pipeline.HeaderPartition, strconv.Itoa(int(l.source.Partition))},
			{pipeline.HeaderOffset, strconv.FormatInt(l.source.Offset, 10)},
			{pipeline.HeaderTimestamp, strconv.FormatInt(began.Add(-l.age).UnixMilli(), 10)}, {pipeline.HeaderNamespace, cmp.Or(l.namespace, f.topic.Namespace)},
			{pipeline.HeaderCut, l.cut},
		} {
			if h[1] != "" {
				headers = append(headers, record.Header{Key: h[0], Value: []byte(h[1])})
			}
		}
		by := f.topic.Seal
		if l.forged {
			by = state.NewSeal([]byte("a guess"))
		}
		seal(rec, by, headers, len(headers)-len(l.headers))
		if err := f.client.ProduceSync(f.context(), rec).FirstErr(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// at is the ID of a record in the topic of events.
func (f *fixture) at(partition int32, offset int64) RecordID {
	return RecordID{f.source, partition, offset}
}

// events counts the values of the source topic's committed records.
func (f *fixture) events() map[string]int {
	f.t.Helper()
	values := map[string]int{}
	for _, rec := range f.records() {
		values[string(rec.Value)]++
	}
	return values
}

// records are the committed records of the source topic.
func (f *fixture) records() (records []*kgo.Record) {
	f.t.Helper()
	last := map[int32]int64{} // a record in each partition that shows that all before it are read
	for p := range int32(partitions) {
		end := &kgo.Record{Topic: f.source, Partition: p, Key: []byte("end")}
		if err := f.client.ProduceSync(f.context(), end).FirstErr(); err != nil {
			f.t.Fatal(err)
		}
		last[p] = end.Offset
	}
	reader := f.newClient(kgo.ConsumeTopics(f.source), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	for len(last) > 0 {
		fetches := reader.PollFetches(f.context())
		if err := fetches.Err(); err != nil {
			f.t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if string(r.Key) != "end" {
				records = append(records, r)
			} else if r.Offset == last[r.Partition] {
				delete(last, r.Partition)
			}
		})
	}
	return records
}

// replay replays the letters that a filter selects.
func (f *fixture) replay(change ...func(*Replay)) string {
	f.t.Helper()
	r := &Replay{Topic: f.topic, State: f.state, Producer: f.options()}
	for _, c := range change {
		c(r)
	}
	summary, err := r.Run(f.context())
	if err != nil {
		f.t.Fatal(err)
	}
	return text(summary)
}

func text(s Summary) string { return fmt.Sprint(s.Replayed, s.Passed) }
