package preview

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

const definitions = `
streams:
  pay: {topic: payments, timestamp: at, fields: {user: string, device: string, amount: decimal, score: float, ok: bool}}
  login: {topic: logins, timestamp: at, match: user != "nobody", fields: {user: string, ip: string}}
features:
  paid_5m: SUM(5m, pay, amount, user, tile=exact)
  paid_7d: SUM(7d, pay, amount, user)
  pays_ever: COUNT(lifetime, pay, user, device)
  score_avg: AVG(1h, pay, score, user, where='ok')
  alike: COUNT(5m, pay, user, where='ok and score == event.score')
  last_ok: LAST(1h, pay, ok, user)
  ips: SET(1h, login, user, ip)
  logins: COUNT(1h, login, user)
  per_login: {expr: paid_5m / logins, default: -1}
  seen_ip: SEEN(1h, login, user, ip)
`

const (
	now    = int64(1_767_268_800_000) // 2026-01-01T12:00Z
	minute = int64(60_000)
)

// fakeLog is a partition in memory.
type fakeLog struct {
	id      state.Partition
	records []record.Record
	read    int
	since   int64
	err     error
}

func (l *fakeLog) Name() string           { return fmt.Sprintf("%s/%d", l.id.Topic, l.id.ID) }
func (l *fakeLog) Progress() (_, n int64) { return 0, int64(len(l.records) - l.read) }
func (l *fakeLog) Topic() string          { return l.id.Topic }
func (l *fakeLog) Since() int64           { return l.since }
func (l *fakeLog) Newest(n int64) {
	l.read = max(l.read, len(l.records)-int(n))
	l.since = l.records[l.read].Timestamp
}
func (l *fakeLog) Read(_ context.Context, take func(*record.Record) error) error {
	for ; l.read < len(l.records); l.read++ {
		r := l.records[l.read]
		r.Value = bytes.Clone(r.Value)
		if err := take(&r); err != nil {
			return err
		}
		clear(r.Value) // valid until take returns
	}
	return l.err
}

// add appends a record to the log.
func (l *fakeLog) add(timestamp int64, format string, args ...any) {
	l.records = append(l.records, record.Record{
		Partition: l.id, Offset: int64(len(l.records)), Timestamp: timestamp, Value: fmt.Appendf(nil, format, args...),
	})
}

func partition(topic string, id int32) *fakeLog {
	return &fakeLog{id: state.Partition{Topic: topic, ID: id}}
}

func run(t *testing.T, cfg Config, logs ...*fakeLog) *Report {
	t.Helper()
	if cfg.Registry == nil {
		cfg.Registry = defined.Registry(t, definitions)
	}
	if cfg.Features == nil {
		cfg.Features = cfg.Registry.Features
	}
	for _, l := range logs {
		cfg.Logs = append(cfg.Logs, l)
	}
	cfg.Now, cfg.MaxRecordBytes = now, 500
	if cfg.Since == 0 {
		cfg.Since = now - 10*minute
	}
	if cfg.MaxRecords == 0 {
		cfg.MaxRecords = 1000
	}
	report, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func feature(t *testing.T, r *Report, name string) *Feature {
	t.Helper()
	i := slices.IndexFunc(r.Features, func(f Feature) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("%s is missing", name)
	}
	return &r.Features[i]
}

// withElements are the definitions with a stream that makes an event of each item of a payment.
var withElements = strings.Replace(definitions, "features:", `  item: {topic: payments, timestamp: at, each: items, fields: {user: string, sku: {type: string, path: items.sku}, n: {type: int, path: items.n}}}
features:
  last_amount: LAST(lifetime, pay, amount, user)
  last_sku: LAST(1h, item, sku, user, tile=exact)
  sku_n: SUM(5m, item, n, sku)
  per_item: {expr: last_amount / items}
  items: COUNT(lifetime, item, user)`, 1)

// Every answer is that of the model on the records in the order of their partitions, for any distribution over these. Their times may
// go back, and many events of a user are of the same time, so that this order decides which one is the last.
func TestPreviewEqualsModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	logs := []*fakeLog{partition("payments", 0), partition("payments", 1), partition("logins", 0)}
	var all []record.Record
	at := now - 10*minute
	for i := range 300 {
		at += random.Int64N(2 * 10 * minute / 300)
		at = min(at, now)
		user := random.IntN(20)
		l, stamp := logs[user%2], at
		if random.IntN(3) == 0 {
			l = logs[2]
		}
		if random.IntN(3) == 0 {
			stamp -= random.Int64N(2 * minute)
		}
		event := (at - random.Int64N(5000)) / minute * minute
		if l.id.Topic == "logins" {
			l.add(stamp, `{"at":%d,"user":"u%d","ip":"i%d"}`, event, user, random.IntN(4))
		} else {
			var items []string
			for range random.IntN(4) {
				items = append(items, fmt.Sprintf(`{"sku":"s%d","n":%d}`, random.IntN(5), random.IntN(9)))
			}
			l.add(stamp, `{"at":%d,"user":"u%d","device":"d|%d","amount":%d.5,"score":%g,"ok":%t,"items":[%s]}`,
				event, user, i%3, i, random.Float64(), i%2 == 0, strings.Join(items, ","))
		}
		all = append(all, l.records[len(l.records)-1])
	}
	registry := defined.Registry(t, withElements)
	report := run(t, Config{Registry: registry, Examples: 1000}, logs...)
	if report.Records != 300 || report.Events != 300 || report.Cut || len(report.SetAside) > 0 || report.Late > 0 {
		t.Fatalf("want 300 records, all of them used, got %+v", report)
	}
	plain := model.New(registry)
	for _, r := range all {
		if err := plain.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	compared := 0
	for _, reported := range report.Features {
		f, _ := registry.Feature(reported.Name)
		statuses := map[query.Status]int{}
		for _, e := range reported.Examples {
			var got struct {
				Value  json.RawMessage
				Status query.Status
			}
			if err := json.Unmarshal(e.Answer, &got); err != nil {
				t.Fatal(err)
			}
			statuses[got.Status]++
			if f.Shape() != 0 {
				continue // a list, whose values the model has in another form
			}
			var keys []string
			for _, key := range strings.Fields(e.Entity) {
				_, v, _ := strings.Cut(key, "=")
				keys = append(keys, strings.ReplaceAll(v, "|", `\|`))
			}
			want := plain.Answer(f, strings.Join(keys, "|"), now)
			if text := string(query.AppendTyped(nil, want.Value)); text != string(got.Value) && !near(text, string(got.Value)) {
				t.Errorf("%s of %s is %s, want %s", reported.Name, e.Entity, got.Value, text)
			}
			compared++
		}
		if len(reported.Examples) != reported.Asked || !maps.Equal(statuses, reported.Statuses) {
			t.Errorf("%s: %d examples of %d entities asked about, statuses %v, reported %v", reported.Name, len(reported.Examples), reported.Asked, statuses, reported.Statuses)
		}
	}
	if compared < 100 {
		t.Errorf("only %d answers compared", compared)
	}
}

// near reports whether two texts are floats that differ only by rounding.
func near(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && math.Abs(x-y) <= 1e-9*math.Abs(x)
}

// The report describes the values of each type, and says if a window reaches back further than the records read.
func TestReport(t *testing.T) {
	pays, logins := partition("payments", 0), partition("logins", 0)
	for i := range 100 {
		pays.add(now-minute, `{"at":%d,"user":"u%d","device":"d","amount":%d,"score":0.%02d,"ok":%t}`, now-minute, i, i+1, i, i%4 != 0)
	}
	pays.add(now-6*minute, `{"at":%d,"user":"u0","device":"e|f","amount":9}`, now-6*minute)
	pays.add(now, `{"at":"x"}`)
	pays.add(now, `{`)
	pays.add(now, `[`)
	pays.add(now, `]`)
	pays.add(now, `}`)
	pays.add(now, `{"at":%d,"device":%q}`, now, strings.Repeat("x", 600))
	logins.add(now-minute, `{"at":%d,"user":"u1","ip":"i"}`, now-minute)
	logins.add(now-minute, `{"at":%d,"user":"nobody","ip":"i"}`, now-minute)
	report := run(t, Config{Examples: 2}, pays, logins)
	var text strings.Builder
	report.WriteText(&text)
	for _, want := range []string{
		"109 records since 2026-01-01T11:50:00Z: 102 used, 1 of no stream\n",
		"4 set aside as malformed:\n  payments/0 at offset 102: stream pay: malformed JSON",
		"\n  payments/0 at offset 104: stream pay: malformed JSON",
		"\n  and 1 more\n1 set aside as oversized:\n  payments/0 at offset 106: the record has ",
		"\ncost of an event of pay, for all definitions: entities 2, mutations 6, filters 1\n",
		"\npaid_5m: SUM(5m, pay, amount, user, tile=exact)\n  cost: keys of a question 1, round trips 1, bytes of an entity ",
		"features of it\n  of 101 events of pay, 26 not passing the filter\n",
		"features of it\n  100 entities, 0.0% null, 100 PRESENT\n  min 1, p50 50, p90 90, p99 99, max 100\n  user=u0: 1 (of events: 2)\n  user=u1: 2 (of events: 1)\n",
		"\npaid_7d: SUM(7d, pay, amount, user)\n  counts only these records, of a window since 2025-12-26T",
		"  min 2, p50 50, p90 90, p99 99, max 100\n  user=u0: 10 (of events: 2)\n",
		"  counts only these records, of all there ever were\n",
		"  user=u0 device=e|f: 1 (of events: 1)\n",
		"  100 entities, 25.0% null, 75 PRESENT, 25 NOT_FOUND\n  min 0.01, p50 0.5, p90 0.9, p99 0.99, max 0.99\n",
		"  true: 75\n  false: 25\n",
		"  1 entity, 0.0% null, 1 PRESENT\n  length: min 1, p50 1, p90 1, p99 1, max 1\n  user=u1: [\"i\"] (of events: 1)\n",
		"  it is asked about members: ask it of a server, or in a test\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(text.String())
	}
	if f := feature(t, report, "paid_5m"); f.Part || *f.Window != now-5*minute+1 {
		t.Errorf("unexpected report of paid_5m: %+v", f)
	}
	if f := feature(t, report, "per_login"); f.Entities != 100 || len(f.By) != 1 {
		t.Errorf("unexpected report of per_login: %+v", f)
	}
}

// If there is more than can be held, the newest records of each partition are read, and the report says since when. A
// quiet partition is read beside a busy one.
func TestNewestRecordsAreRead(t *testing.T) {
	busy, quiet := partition("payments", 0), partition("logins", 0)
	for i := range 1000 {
		busy.add(now-minute+int64(i), `{"at":%d,"user":"u","device":"d","amount":1}`, now-minute)
	}
	quiet.add(now-9*minute, `{"at":%d,"user":"u","ip":"i"}`, now-9*minute)
	quiet.add(now-1, `{"at":%d,"user":"u","ip":"i"}`, now-1)
	for _, c := range []struct{ most, records, since int64 }{
		{1002, 1002, now - 10*minute},
		{100, 96, now - minute + 906}, // of 100, ten for both alike; 89 of 90, rounded down
		{1, 2, now - 1},
	} {
		report := run(t, Config{MaxRecords: c.most}, reset(busy), reset(quiet))
		if int64(report.Records) != c.records || report.Cut != (c.most < 1002) || report.Gone || report.Since != c.since {
			t.Errorf("at most %d records: got %d since %d, want %d since %d", c.most, report.Records, report.Since-now, c.records, c.since-now)
		}
	}
}

// If retention has removed records, or a batch is damaged, the report says since when it has all records. For a
// partition without records this is unknown.
func TestRetentionHasRemovedRecords(t *testing.T) {
	pays, empty := partition("payments", 0), partition("logins", 0)
	pays.add(now-2*minute, `{"at":%d,"user":"u","device":"d","amount":1}`, now-2*minute)
	pays.since, empty.since = now-3*minute, now+1
	report := run(t, Config{}, pays, empty)
	if f := feature(t, report, "paid_5m"); !report.Gone || report.Since != now-3*minute || !f.Part {
		t.Errorf("want a report of removed records and partial windows, got %+v", report)
	}
	var text strings.Builder
	report.WriteText(&text)
	if !strings.Contains(text.String(),
		"1 record since 2026-01-01T11:57:00Z: 1 used\nolder ones may be missing: retention has removed some, or a batch is damaged\n") {
		t.Errorf("the text does not mention removed records:\n%s", &text)
	}
	reset(pays).since = math.MaxInt64 // nothing was left to be read
	if report := run(t, Config{}, pays); report.Since != now {
		t.Errorf("since %d, want %d", report.Since, now)
	}
}

// The report counts what each feature leaves out of its stream's events, for the first reason.
func TestEventsLeftOut(t *testing.T) {
	pays := partition("payments", 0)
	for _, event := range []string{
		`"user":"u","score":1,"ok":true`, `"user":"u","score":1,"ok":false`, `"user":"u","score":1`, `"user":"u","ok":true`, `"ok":false`,
	} {
		pays.add(now, `{"at":%d,%s}`, now, event)
	}
	report := run(t, Config{}, pays)
	for name, want := range map[string]*Used{
		"score_avg": {Stream: "pay", Events: 5, NoKey: 1, Filtered: 2, NoValue: 1},
		"alike":     {Stream: "pay", Events: 5, NoKey: 1, Filtered: 2}, // by what does not need the event in hand
		"paid_5m":   {Stream: "pay", Events: 5, NoKey: 1, NoValue: 4},
		"pays_ever": {Stream: "pay", Events: 5, NoKey: 5},
		"logins":    {Stream: "login"},
		"per_login": nil,
	} {
		if diff := cmp.Diff(want, feature(t, report, name).Used); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var text strings.Builder
	report.WriteText(&text)
	if !strings.Contains(text.String(), "  of 5 events of pay, 5 without user or device\n") {
		t.Errorf("the text does not count events without keys:\n%s", &text)
	}
}

// Producers' timestamps may go back within a partition. Of events of the same millisecond the one that came last is the last
// there, as in production.
func TestOrderOfPartition(t *testing.T) {
	registry := defined.Registry(t, `
streams:
  pay: {topic: payments, timestamp: at, fields: {user: string, device: string}}
features:
  device: LAST(1h, pay, device, user)
`)
	l := partition("payments", 0)
	l.add(now-minute+500, `{"at":%d,"user":"u","device":"d1"}`, now-minute)
	l.add(now-minute+100, `{"at":%d,"user":"u","device":"d2"}`, now-minute)
	report, err := Run(t.Context(), Config{
		Registry: registry, Features: registry.Features, Logs: []Log{l}, Now: now, Since: now - 10*minute, MaxRecords: 100, Examples: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(feature(t, report, "device").Examples[0].Answer); !strings.Contains(got, `"value":"d2"`) {
		t.Errorf("the last device is %s, want d2", got)
	}
}

// The entities of all events of a record are asked about, and each of them counts the record once.
func TestEntitiesOfElements(t *testing.T) {
	registry := defined.Registry(t, `
streams:
  order: {topic: orders, timestamp: at, fields: {user: string}}
  line: {topic: orders, timestamp: at, each: items, fields: {user: string, sku: {type: string, path: items.sku}}}
features:
  skus: COUNT(1h, line, sku)
  orders: COUNT(1h, order, user)
  lines: {expr: lines_1h - orders}
  lines_1h: COUNT(1h, line, user)
`)
	l := partition("orders", 0)
	l.add(now, `{"at":%d,"user":"u","items":[{"sku":"a"},{"sku":"b"},{"sku":null},{"sku":"a"}]}`, now)
	l.add(now, `{"at":%d,"user":"v","items":[{"sku":"b"}]}`, now)
	report, err := Run(t.Context(), Config{
		Registry: registry, Features: registry.Features, Logs: []Log{l}, Now: now, Since: now - minute, MaxRecords: 9, Examples: 9,
	})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	report.WriteText(&text)
	for _, want := range []string{
		"  sku=b: 2 (of events: 2)\n  sku=a: 2 (of events: 1)\n",
		"  user=u: 3 (of events: 1)\n  user=v: 0 (of events: 1)\n",
		"  user=u: 4 (of events: 1)\n  user=v: 1 (of events: 1)\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, &text)
		}
	}
}

// The report has the cost of the streams that the features need.
func TestStreamsCost(t *testing.T) {
	r := defined.Registry(t, definitions)
	f, _ := r.Feature("logins")
	report := run(t, Config{Features: []*features.Feature{f}}, partition("logins", 0))
	if len(report.Streams) != 1 || report.Streams[0].Name != "login" || report.Streams[0].Entities != 1 || report.Streams[0].Mutations == 0 {
		t.Errorf("unexpected streams %+v", report.Streams)
	}
}

func reset(l *fakeLog) *fakeLog { l.read, l.since = 0, 0; return l }

// Of very many entities a sample is asked about: those with the most events and others.
func TestEntitiesAreSampled(t *testing.T) {
	pop := &population{seen: map[string]sightings{}}
	for i := range 2 * maxAsked {
		pop.seen[fmt.Sprint("e", i)] = sightings{records: 1}
	}
	pop.seen["e7"], pop.seen["e12345"] = sightings{records: 3}, sightings{records: 2}
	secret := state.NewSecret()
	some := pop.sample(2, secret)
	if len(some) != maxAsked || !slices.Equal(some[:2], []string{"e7", "e12345"}) {
		t.Errorf("%d entities are sampled, beginning with %v; want the busiest ones first", len(some), some[:2])
	}
	low := 0
	for _, e := range some {
		if len(e) < len("e10000") {
			low++
		}
	}
	if low < maxAsked*4/10 || low > maxAsked*6/10 {
		t.Errorf("%d of %d sampled entities are from the first half, want about half", low, len(some))
	}
	if diff := cmp.Diff(some, pop.sample(2, secret)); diff != "" {
		t.Errorf("a second sample differs (-first +second):\n%s", diff)
	}
	for _, examples := range []int{maxAsked + 1, 3 * maxAsked} { // as many as are asked about are shown
		if n := len(pop.sample(examples, secret)); n != maxAsked {
			t.Errorf("%d entities are sampled to show %d", n, examples)
		}
	}
}

// An error of a log, or of the Schema Registry, ends a preview.
func TestLogFails(t *testing.T) {
	broken := partition("payments", 0)
	broken.add(now, `{}`)
	broken.err = errors.New("the log cannot be read")
	_, err := Run(t.Context(), Config{Registry: defined.Registry(t, definitions), Logs: []Log{broken}})
	if !errors.Is(err, broken.err) {
		t.Errorf("got error %v, want %v", err, broken.err)
	}
}

// The topics are those of the features and all their parts.
func TestTopics(t *testing.T) {
	r := defined.Registry(t, definitions)
	for name, want := range map[string]string{"paid_5m": "payments", "logins": "logins", "per_login": "logins payments"} {
		f, _ := r.Feature(name)
		if got := strings.Join(features.TopicsOf([]*features.Feature{f}), " "); got != want {
			t.Errorf("%s needs %s, want %s", name, got, want)
		}
	}
}

// Records are read only up to a number of bytes, and everything ends with the context.
func TestPreviewIsBounded(t *testing.T) {
	logs := func() []Log {
		l := partition("payments", 0)
		for range 3 {
			l.add(now-minute, `{"at":%d,"user":"u","amount":1}`, now-minute)
		}
		return []Log{l}
	}
	registry := defined.Registry(t, definitions)
	size := len(logs()[0].(*fakeLog).records[0].Value)
	cfg := Config{Registry: registry, Features: registry.Features, Since: now - 10*minute, Now: now, MaxRecords: 10}
	for most, want := range map[int]error{3*size - 1: ErrTooLarge, 3 * size: nil, 0: nil} {
		cfg.Logs, cfg.MaxBytes = logs(), most
		if _, err := Run(t.Context(), cfg); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", most, err, want)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	cfg.Logs, cfg.MaxBytes = logs(), 0
	if _, err := Run(canceled, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
}
