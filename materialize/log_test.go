package materialize

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// testLog is a partition in memory.
type testLog struct {
	topic   string
	id      int
	records []record.Record
	since   int64
	from    int64
	err     error
}

func (l *testLog) Topic() string { return l.topic }
func (l *testLog) From() int64   { return l.from }
func (l *testLog) Since() int64  { return l.since }

func (l *testLog) Read(_ context.Context, take func(*record.Record) error) error {
	for i := range l.records {
		r := l.records[i]
		r.Partition, r.Offset = state.Partition{Topic: l.topic, ID: int32(l.id)}, int64(i)
		if err := take(&r); err != nil {
			return err
		}
	}
	return l.err
}

func (l *testLog) input() Input { return Input{Name: fmt.Sprintf("%s/%d", l.topic, l.id), Log: l} }

// logsOf returns the events of two topics as two partitions for each, and the events again with when they came by these: not before
// those of earlier offsets, although the times of their records go back.
func logsOf(all []timed) ([]*testLog, []timed) {
	random := rand.New(rand.NewPCG(6, 7))
	logs := []*testLog{{topic: "payments"}, {topic: "payments", id: 1}, {topic: "logins"}, {topic: "logins", id: 1}}
	came := make([]int64, len(logs))
	all = slices.Clone(all)
	for i := range all {
		e := &all[i]
		of := e.partition()
		if e.stream == "login" {
			of += 2
		}
		e.stamp = e.came
		if random.IntN(3) == 0 {
			e.stamp = max(e.at, e.stamp-random.Int64N(200_000))
		}
		came[of] = max(came[of], e.stamp)
		e.came = came[of]
		logs[of].records = append(logs[of].records, record.Record{Timestamp: e.stamp, Value: []byte(e.line)})
	}
	for _, l := range logs {
		l.since = state.MinTime
	}
	return logs, all
}

const lost = `
streams:
  pay: {topic: payments, timestamp: at, id: id, max_future: 1m, fields: {user: string, device: string, n: int}}
  login: {topic: logins, timestamp: at, max_future: 2m, fields: {user: string, device: string}}
features:
  exact: SUM(1h, pay, n, user, tile=exact)
  tiled: COUNT(1h, pay, user, tile=1m)
  ever: COUNT(lifetime, pay, user)
  logins: COUNT(1h, login, user, tile=exact)
  share: {expr: exact / logins, default: -1}
  there: COUNT(1h, pay, SET(1h, login, user, device), tile=exact)
`

// Values whose windows begin before what a log holds are incomplete: by the time of its records. Events that cannot be
// used are set aside.
func TestLogsThatLackRecords(t *testing.T) {
	const start = int64(1_700_006_400_000) // a whole hour
	in := func(minutes int) int64 { return start + int64(minutes)*60_000 }
	pay := func(id string, at int64) record.Record {
		return record.Record{Timestamp: at, Value: fmt.Appendf(nil, `{"id":%q,"at":%d,"user":"u","device":"d","n":1}`, id, at)}
	}
	login := record.Record{Timestamp: in(30), Value: fmt.Appendf(nil, `{"at":%d,"user":"u","device":"d"}`, in(30))}
	pays := []*testLog{
		{topic: "payments", since: state.MinTime, records: []record.Record{pay("a", in(1)), {Timestamp: in(1), Value: []byte("{")}, pay("ahead", in(10))}},
		{topic: "payments", id: 1, since: in(2), records: []record.Record{pay("b", in(2)), {Timestamp: in(2), Value: []byte(strings.Repeat(" ", 200))}}},
	}
	pays[0].records[2].Timestamp = in(5) // the event is further ahead than max_future
	m := making{Registry: load(t, lost), quality: true, logs: append(pays, &testLog{topic: "logins", since: in(20), records: []record.Record{login}})}
	m.spine, m.maxRecordBytes = "user,at\n", 100
	rows := []struct {
		minute int
		lacks  string
	}{
		{30, "exact tiled ever logins share there"},
		{61, "exact ever logins share there"}, // the exact window begins within minute 1, the tiled one with minute 2
		{62, "ever logins share there"},
		{79, "ever logins share"}, // the set has tiles
		{80, "ever"},
	}
	for _, row := range rows {
		m.spine += fmt.Sprintf("u,%d\n", in(row.minute))
	}
	got, summary, err := m.run(t)
	if err != nil {
		t.Fatal(err)
	}
	table := strings.Split(strings.TrimSpace(got), "\n")
	names, incomplete := strings.Split(table[0], ","), 0
	for i, row := range rows {
		var lacks []string
		cells := strings.Split(table[i+1], ",")
		for _, name := range []string{"exact", "tiled", "ever", "logins", "share", "there"} {
			for c := range names {
				if names[c] == name+"_status" && cells[c] == "INCOMPLETE" {
					lacks = append(lacks, name)
				}
			}
		}
		incomplete += len(lacks)
		if diff := cmp.Diff(row.lacks, strings.Join(lacks, " ")); diff != "" {
			t.Errorf("minute %d (-want +got):\n%s\n%s", row.minute, diff, table[i+1])
		}
	}
	if summary.Incomplete != incomplete || summary.Events != 3 || summary.SetAside != 3 {
		t.Errorf("%d values are incomplete, but the summary is %+v; want 3 events, 3 set aside", incomplete, summary)
	}
	if first := fmt.Sprint(summary.FirstSetAside); !strings.HasPrefix(first, "payments/0 at offset 1: ") {
		t.Errorf("the first record set aside is %s, want that at offset 1", first)
	}
}

// Records are cut at a moment by their timestamps, independent of their order and of event times. A row that would lack
// some is refused.
func TestLogsUntil(t *testing.T) {
	pay := func(came, at int64) record.Record {
		return record.Record{Timestamp: came, Value: fmt.Appendf(nil, `{"id":"i","at":%d,"user":"u","n":1}`, at)}
	}
	m := making{Registry: load(t, lost), names: []string{"exact"}, until: 2_000_000, logs: []*testLog{{
		topic: "payments", since: state.MinTime,
		records: []record.Record{pay(1_990_000, 1_990_000), pay(2_000_000, 1_900_000), pay(1_999_999, 1_999_999), pay(2_100_000, 2_100_000)},
	}}}
	m.spine = "user,at\nu,1999998\nu,1999999\n"
	got, summary, err := m.run(t)
	if want := "user,at,exact\nu,1999998,1\nu,1999999,2\n"; err != nil || got != want || summary.Events != 2 {
		t.Errorf("error %v, %d events, got\n%s\nwant 2 events and\n%s", err, summary.Events, got, want)
	}
	m.spine += "u,2000000\n"
	if _, _, err := m.run(t); fmt.Sprint(err) != "spine.csv:4: the row is of 1970-01-01T00:33:20Z, and only records before 1970-01-01T00:33:20Z are read" {
		t.Errorf("a row after --until: got error %v", err)
	}
	m.until, m.began, m.spine = 0, 2_000_000, "user,at\nu,1999999\n"
	if got, _, err := m.run(t); err != nil || got != "user,at,exact\nu,1999999,3\n" {
		t.Errorf("a row before the command began: got %q, error %v", got, err)
	}
	m.spine += "u,2000000\n"
	want := "spine.csv:3: the row is of 1970-01-01T00:33:20Z, and only what was there when the command began, at 1970-01-01T00:33:20Z, is read"
	if _, _, err := m.run(t); fmt.Sprint(err) != want {
		t.Errorf("a row of later: got error %v", err)
	}
}

// How much of the logs is read is known, also if a partition is empty. Of a file without a known size it is unknown.
func TestShareOfLogs(t *testing.T) {
	of := func(read, size int64) Input {
		return Input{Log: &testLog{}, Read: func() (int64, int64) { return read, size }}
	}
	file := of(1, 0)
	file.Log = nil
	for want, inputs := range map[float64][]Input{0.25: {of(1, 2), of(0, 0), of(0, 2)}, -1: {of(1, 2), file}} {
		if got := (&timeline{Replay: &Replay{Inputs: inputs}}).readShare(); got != want {
			t.Errorf("the share is %v, want %v", got, want)
		}
	}
}

// An event of a log that has no ID makes no row, but counts, as it does in production.
func TestLogsWithoutIDs(t *testing.T) {
	pay := func(at int64, id string) record.Record {
		return record.Record{Timestamp: at, Value: fmt.Appendf(nil, `{%s"at":%d,"user":"u","n":1}`, id, at)}
	}
	l := &testLog{topic: "payments", since: state.MinTime, records: []record.Record{pay(1_000_000, `"id":"a",`), pay(1_000_001, ""), pay(1_000_002, `"id":"c",`)}}
	m := making{Registry: load(t, lost), names: []string{"exact"}, stream: "pay", logs: []*testLog{l}}
	got, summary, err := m.run(t)
	if want := "id,exact\na,1\nc,3\n"; err != nil || got != want || summary.Events != 3 || summary.NoID != 1 {
		t.Errorf("error %v, %+v, got\n%s\nwant 3 events, one of them without an ID, and\n%s", err, summary, got, want)
	}
	l.records = l.records[1:2]
	if _, _, err := m.run(t); fmt.Sprint(err) != "none of the events of stream pay, 1, has an id, so there are no rows" {
		t.Errorf("without any ID: got error %v", err)
	}
}

// Producers' timestamps may go back within a partition. Of events of the same millisecond the one that came last is the last
// there, as in production. A record from far in the future does not hold back those after it.
func TestOrderOfPartition(t *testing.T) {
	const at = int64(1_700_000_000_000)
	log := &testLog{topic: "payments", since: state.MinTime}
	for i, came := range []int64{500, 100, 3_600_000, 1000} {
		value := fmt.Appendf(nil, `{"id":"i","at":%d,"user":"u","device":"d%d"}`, at+int64(i)/2, i)
		log.records = append(log.records, record.Record{Timestamp: at + came, Value: value})
	}
	m := making{Registry: load(t, `
streams:
  pay: {topic: payments, timestamp: at, id: id, fields: {user: string, device: string}}
features:
  device: LAST(1h, pay, device, user)
  n: COUNT(1h, pay, user)
`), logs: []*testLog{log}, spine: fmt.Sprintf("user,at\nu,%d\nu,%d\nu,%d\n", at+499, at+500, at+1000)}
	for served, want := range map[bool]string{
		false: "user,at,device,n\nu,1700000000499,d3,4\nu,1700000000500,d3,4\nu,1700000001000,d3,4\n",
		true:  "user,at,device,n\nu,1700000000499,,0\nu,1700000000500,d1,2\nu,1700000001000,d3,3\n",
	} {
		m.asServed = served
		if got, _, err := m.run(t); err != nil || got != want {
			t.Errorf("as served %v: error %v, got\n%s\nwant\n%s", served, err, got, want)
		}
	}
}

// By event time, the envelopes of a file limit the times of their events as the records of a log do: one that is ahead counts at
// the time of its record, and one from the future cannot be used.
func TestEventsAheadInEnvelopes(t *testing.T) {
	m := making{Registry: load(t, `
streams:
  pay: {topic: payments, timestamp: at, id: id, fields: {user: string}}
features:
  recent: COUNT(1h, pay, user, tile=exact)
  ever: COUNT(lifetime, pay, user)
`), names: []string{"recent", "ever"}, stream: "pay", whole: true}
	log, lines := &testLog{topic: "payments", since: state.MinTime}, ""
	add := func(came, at int64) {
		value := fmt.Sprintf(`{"id":%d,"at":%d,"user":"u"}`, len(log.records), at)
		log.records = append(log.records, record.Record{Timestamp: came, Value: []byte(value)})
		lines += fmt.Sprintf(`{"topic":"payments","key":null,"timestamp":%d,"value":%s}`+"\n", came, value)
	}
	files := func() (string, error) {
		of := m
		of.inputs = []text{{"", "in.ndjson", lines}}
		got, _, err := of.run(t)
		return got, err
	}
	logs := func() (string, error) {
		of := m
		of.logs = []*testLog{log}
		got, _, err := of.run(t)
		return got, err
	}
	add(1_700_000_000_000, 1_700_000_120_000)
	add(1_700_000_060_000, 1_700_000_060_000)
	const want = "id,at,user,recent,ever\n0,1700000000000,u,1,1\n1,1700000060000,u,2,2\n"
	if got, err := files(); err != nil || got != want {
		t.Errorf("a file: error %v, got\n%s\nwant\n%s", err, got, want)
	}
	add(1_700_000_070_000, 1_800_000_000_000)
	if got, err := logs(); err != nil || got != want {
		t.Errorf("a log: error %v, got\n%s\nwant\n%s", err, got, want)
	}
	if _, err := files(); err == nil || !strings.HasPrefix(err.Error(), "in.ndjson:3: stream pay: at: the event is ") {
		t.Errorf("an event from the future: error %v", err)
	}
}

// An error of the log ends a replay.
func TestLogFails(t *testing.T) {
	m := making{Registry: load(t, lost), logs: []*testLog{{topic: "payments", err: errors.New("the log cannot be read")}}, stream: "pay"}
	if _, _, err := m.run(t); fmt.Sprint(err) != "the log cannot be read" {
		t.Errorf("a log that fails: got error %v", err)
	}
}

// A dead letter that was replayed counts once, whether its original can be used or not, and however many namespaces have
// replayed it.
func TestLogsWithCopies(t *testing.T) {
	pay := func(text string, copyOf int) (r record.Record) {
		if r.Timestamp, r.Value = 1_000_000, []byte(text); copyOf >= 0 {
			r.Partition.Topic = "payments"
			defined.Copy(&r, fmt.Sprintf("shop payments/0/%d 1000000 ", copyOf))
		}
		return r
	}
	ahead := func(copyOf int) (r record.Record) { // until it is stamped with a later time
		if r = pay(`{"id":"j","at":1000000,"user":"u","n":1}`, copyOf); copyOf < 0 {
			r.Timestamp -= 100_000
		}
		return r
	}
	const good, bad = `{"id":"i","at":1000000,"user":"u","n":1}`, `{"id":"i","at":1000000,"user":1,"n":1}`
	m := making{Registry: load(t, lost), names: []string{"exact"}, spine: "user,at\nu,1000000\n", logs: []*testLog{{
		topic: "payments", since: state.MinTime,
		records: []record.Record{
			pay(good, -1), pay(good, 0), pay(bad, -1), pay(bad, 2), pay(good, 3), pay(good, 4), pay(good, 2),
			ahead(-1), ahead(7), ahead(7), ahead(9),
		},
	}}}
	got, summary, err := m.run(t)
	if want := "user,at,exact\nu,1000000,3\n"; err != nil || got != want || summary.Events != 3 || summary.SetAside != 3 {
		t.Errorf("error %v, %+v, got\n%s\nwant 3 events, 3 set aside, and\n%s", err, summary, got, want)
	}
}
