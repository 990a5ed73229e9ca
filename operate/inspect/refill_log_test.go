package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/operate/refill"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/scan"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/state/progress"
	redisstore "github.com/weir-stream/weir/store/redis"
	"github.com/weir-stream/weir/store/redis/inspector"
)

// log is a topic, and a namespace that its records are applied to.
type log struct {
	t         *testing.T
	brokers   []string
	client    *kgo.Client
	transport *kafka.Transport
	store     *redisstore.Store
	registry  *features.Registry // as its plan is bound
	written   []*kgo.Record
	progress  []state.Position
	writer    interface {
		Apply(ctx context.Context, b *state.Batch) error
	}
	before, between func() // run before a drop, and between it and the refill; nil once run
}

var payments = state.Partition{Topic: "payments"}

func newLog(t *testing.T, definitions string) *log {
	t.Helper()
	l := &log{t: t, brokers: kafkatest.Embedded(t, map[string]int{"payments": 1}).ListenAddrs(), transport: new(kafka.Transport)}
	t.Cleanup(l.transport.CloseIdleConnections)
	l.store = redisstore.New(redistest.Shared(t).Client(t), testkit.Namespace(t), 2)
	var err error
	if l.client, err = kgo.NewClient(kgo.SeedBrokers(l.brokers...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.client.Close)
	if err := l.store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.writer = l.store.NewWriter()
	l.take(definitions)
	return l
}

// take applies definitions from now on.
func (l *log) take(definitions string) {
	l.t.Helper()
	given := registry(l.t, definitions)
	plan, history, err := l.store.Bind(l.t.Context(), given.Plan())
	if err != nil {
		l.t.Fatal(err)
	}
	l.registry = given.Keeping(plan, history)
	if _, err := l.store.Register(l.t.Context(), state.Registration{Plan: plan, Group: "group", Begins: true}); err != nil {
		l.t.Fatal(err)
	}
	claims, err := l.store.Claim(l.t.Context(), []state.Partition{payments}, state.Claimant{Version: plan.Version})
	if err != nil {
		l.t.Fatal(err)
	}
	if l.progress = claims[0].Progress; !l.progress[0].Exists() {
		l.begin(plan.Version)
	}
}

// begin places the partition at the beginning of the log.
func (l *log) begin(version string) {
	l.t.Helper()
	poller := fetch.NewPoller(fetch.PollerConfig{Transport: l.transport, Bootstrap: kafka.TCP(l.brokers...)})
	defer poller.Close()
	logs, err := poller.Logs(l.t.Context(), []state.Partition{payments})
	if err != nil {
		l.t.Fatal(err)
	}
	first := testkit.FirstPlacement(payments.WithPlan(version), l.store.Shards(), 0)
	first.Log = logs[0].ID
	for shard := range first.To {
		first.To[shard].Log = logs[0].ID.Tag()
	}
	if _, err := l.store.Place(l.t.Context(), first); err != nil {
		l.t.Fatal(err)
	}
	l.progress = first.To
}

// write writes events and applies them.
func (l *log) write(events ...string) {
	l.t.Helper()
	for i, event := range events {
		r := &kgo.Record{Topic: payments.Topic, Value: []byte(event), Timestamp: time.UnixMilli(noon + int64(len(l.written)+i))}
		if err := l.client.ProduceSync(l.t.Context(), r).FirstErr(); err != nil {
			l.t.Fatal(err)
		}
		l.written = append(l.written, r)
	}
	l.apply(l.written[len(l.written)-len(events):])
}

// apply applies records.
func (l *log) apply(records []*kgo.Record) {
	l.t.Helper()
	b, mapper := &state.Batch{EveryShard: true, Series: l.registry.Series}, l.registry.NewMapper()
	b.Ranges = []state.PartitionRange{{
		Partition: payments.WithPlan(l.registry.Plan().Version), To: records[len(records)-1].Offset + 1, Epoch: -1, Progress: l.progress,
	}}
	for _, r := range records {
		if _, err := mapper.Map(&record.Record{Partition: payments, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Value: r.Value}, 0, b); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := l.writer.Apply(l.t.Context(), b); err != nil || b.Ranges[0].Behind {
		l.t.Fatal(err, b.Ranges)
	}
}

// paid returns an event of a user in a shop.
func paid(n, user, shop int) string {
	return fmt.Sprintf(`{"user": "u%d", "shop": %d, "amount": %d, "ok": true, "at": %d}`, user, shop, n, noon+int64(n))
}

// held returns the state in keys, independent of its division into sections.
func (l *log) held(keys map[string]string) (held []any) {
	l.t.Helper()
	found, err := Read(l.t.Context(), l.store, l.registry, keys, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, k := range found {
		held = append(held, k.Damage, k.Lost)
		for _, s := range k.Series {
			held = append(held, s.ID, s.CutOff, s.Entries)
		}
	}
	return held
}

// key is the key of an entity's state in a group.
func (l *log) key(by string, keys map[string]string) string {
	l.t.Helper()
	list, err := groups(l.registry, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	g := list[slices.IndexFunc(list, func(g *group) bool { return g.by() == by })]
	entity, _ := g.entity(keys)
	held, err := l.store.Inspect(l.t.Context(), g.any(), entity)
	if err != nil {
		l.t.Fatal(err)
	}
	return held.Key
}

// hooked is the store, with hooks for concurrent changes.
type hooked struct {
	*redisstore.Store
	l *log
}

func (h hooked) Drop(ctx context.Context, held packed.Held, kept []byte, loss packed.Loss, keep int64) (*progress.Record, error) {
	if happens := h.l.before; happens != nil {
		h.l.before = nil
		happens()
	}
	return h.Store.Drop(ctx, held, kept, loss, keep)
}

var errKilled = errors.New("killed")

func (h hooked) Refill(ctx context.Context, held packed.Held, r inspector.Refill) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = cause.(error)
		}
	}()
	if happens := h.l.between; happens != nil {
		h.l.between = nil
		happens()
	}
	return h.Store.Refill(ctx, held, r)
}

func (l *log) refill(scope Scope) ([]Dropped, error) {
	scope.Refill = &refill.Config{
		Config: scan.Config{Transport: l.transport, Bootstrap: kafka.TCP(l.brokers...), Patience: 2 * time.Second}, MaxRecordBytes: 1 << 20,
	}
	return Drop(l.t.Context(), hooked{l.store, l}, l.registry, scope)
}

func (l *log) mustRefill(scope Scope) []Dropped {
	l.t.Helper()
	dropped, err := l.refill(scope)
	if err != nil {
		l.t.Fatal(err)
	}
	return dropped
}

// text is the output of weir state.
func (l *log) text(keys map[string]string) string {
	l.t.Helper()
	found, err := Read(l.t.Context(), l.store, l.registry, keys, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	var text strings.Builder
	found.WriteText(&text)
	return text.String()
}

// same compares the state of keys, and of the pairs of a shop with that many users, with a
// namespace to which the log is applied once.
func (l *log) same(keys map[string]string, users int) {
	l.t.Helper()
	whole := *l
	whole.store = redisstore.New(redistest.Shared(l.t).Client(l.t), testkit.Namespace(l.t)+"-whole", 2)
	if err := whole.store.Create(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
	whole.writer = whole.store.NewWriter()
	if _, err := whole.store.Register(l.t.Context(), state.Registration{Plan: l.registry.Plan(), Group: "group", Begins: true}); err != nil {
		l.t.Fatal(err)
	}
	whole.begin(l.registry.Plan().Version)
	whole.apply(l.written)
	if want, got := whole.held(keys), l.held(keys); !cmp.Equal(want, got) {
		l.t.Fatalf("of %v, of %d events (-want +got):\n%s", keys, len(l.written), cmp.Diff(want, got))
	}
	for user := range users {
		pair := map[string]string{"user": fmt.Sprint("u", user)}
		maps.Copy(pair, keys)
		if want, got := whole.held(pair), l.held(pair); !cmp.Equal(want, got) {
			l.t.Fatalf("of %v (-want +got):\n%s", pair, cmp.Diff(want, got))
		}
	}
}

// deleteRecords moves the beginning of the log to an offset.
func (l *log) deleteRecords(before int64) {
	l.t.Helper()
	request := kmsg.NewPtrDeleteRecordsRequest()
	topic, partition := kmsg.NewDeleteRecordsRequestTopic(), kmsg.NewDeleteRecordsRequestTopicPartition()
	topic.Topic, partition.Offset = payments.Topic, before
	topic.Partitions, request.TimeoutMillis = append(topic.Partitions, partition), 5000
	request.Topics = append(request.Topics, topic)
	response, err := request.RequestWith(l.t.Context(), l.client)
	if err != nil || response.Topics[0].Partitions[0].ErrorCode != 0 {
		l.t.Fatal(err, response)
	}
}

// refused fails unless a refill of shop 7 fails with an error that contains want, and leaves the
// damaged key unchanged.
func (l *log) refused(want string) {
	l.t.Helper()
	key, redis := l.key("shop", map[string]string{"shop": "7"}), redistest.Shared(l.t).Client(l.t)
	if err := redis.Append(l.t.Context(), key, "\x01\x02\x03\x7f").Err(); err != nil {
		l.t.Fatal(err)
	}
	before := redis.Get(l.t.Context(), key).Val()
	dropped, err := l.refill(Scope{Keys: map[string]string{"shop": "7"}})
	if err == nil || !strings.Contains(err.Error(), want) || len(dropped) != 0 {
		l.t.Errorf("got error %v, want %s, and nothing dropped", err, want)
	}
	if redis.Get(l.t.Context(), key).Val() != before {
		l.t.Error("the key was dropped despite the refusal")
	}
}

// remake deletes the topic and creates it again.
func (l *log) remake() {
	l.t.Helper()
	admin := &kafka.Client{Addr: kafka.TCP(l.brokers...), Transport: l.transport}
	if _, err := admin.DeleteTopics(l.t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{payments.Topic}}); err != nil {
		l.t.Fatal(err)
	}
	config := []kafka.TopicConfig{{Topic: payments.Topic, NumPartitions: 1, ReplicationFactor: 1}}
	if _, err := admin.CreateTopics(l.t.Context(), &kafka.CreateTopicsRequest{Topics: config}); err != nil {
		l.t.Fatal(err)
	}
}
