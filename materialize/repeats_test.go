package materialize

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/state"
)

const onceByID = `
streams:
  pay: {topic: payments, timestamp: at, id: id, dedup: 1m, max_future: 1h, match: kind != "refund", fields: {user: string, n: {type: int, required: true}}}
  refund: {topic: payments, timestamp: at, id: id, dedup: 10s, max_future: 1h, match: kind == "refund", fields: {user: string}}
features:
  pays: COUNT(lifetime, pay, user)
  sum: SUM(lifetime, pay, n, user, where='n * n * n > 1')
  refunds: COUNT(lifetime, refund, user)
`

// repeated draws the records of two partitions, some of which repeat the IDs of others.
func repeated(random *rand.Rand, poison bool) []*testLog {
	logs := []*testLog{{topic: "payments", since: state.MinTime}, {topic: "payments", id: 1, since: state.MinTime}}
	came := int64(1_700_000_000_000)
	for i := range 400 {
		came += random.Int64N(2000)
		stamp := came
		if random.IntN(10) == 0 {
			stamp -= random.Int64N(100_000)
		}
		id := fmt.Sprintf(`"p%d"`, max(0, i-random.IntN(40)))
		id = []string{id, id, id, id, "null", `""`}[random.IntN(6)]
		n := []string{"1", "2", "3", "4", "5", "6"}[random.IntN(6)]
		if poison && random.IntN(4) == 0 {
			n = []string{"9223372036854775807", `"x"`}[random.IntN(2)]
		}
		l := logs[random.IntN(2)]
		l.records = append(l.records, record.Record{Timestamp: stamp, Value: fmt.Appendf(nil, `{"kind":%q,"id":%s,"at":%d,"user":"u%d","n":%s}`,
			[]string{"pay", "refund"}[random.IntN(2)], id, stamp-random.Int64N(50), random.IntN(4), n)})
	}
	return logs
}

// A training set has an event once that came more than once: from the partitions of a topic, by the times of their records
// whatever those of the events are, and from files, each of which is like a partition.
func TestRepeatedEventsMakeOneEvent(t *testing.T) {
	for seed := range uint64(10) {
		poison := seed%2 > 0 // in files it is only set aside as it was served
		logs := repeated(rand.New(rand.NewPCG(seed, 1)), poison)
		m := making{Registry: load(t, onceByID), names: []string{"pays", "sum", "refunds"}}
		plain, files := model.New(m.Registry), []text(nil)
		for _, l := range logs {
			var lines []string
			for i := range l.records {
				rec := l.records[i]
				rec.Partition, rec.Offset = state.Partition{Topic: "payments", ID: int32(l.id)}, int64(i)
				_ = plain.Apply(rec)
				lines = append(lines, fmt.Sprintf(`{"topic":"payments","key":null,"timestamp":%d,"value":%s}`, rec.Timestamp, rec.Value))
			}
			files = append(files, text{"", fmt.Sprintf("%d.ndjson", l.id), strings.Join(lines, "\n")})
		}
		const end = 1_800_000_000_000
		m.spine = "user,at\n"
		want := "user,at,pays,sum,refunds\n"
		for user := range 4 {
			entity := fmt.Sprintf("u%d", user)
			m.spine += fmt.Sprintf("%s,%d\n", entity, int64(end))
			want += fmt.Sprintf("%s,%d", entity, int64(end))
			for _, name := range m.names {
				f, _ := m.Feature(name)
				v := plain.Answer(f, entity, end).Value
				want += "," + string(v.AppendText(nil))
			}
			want += "\n"
		}
		m.logs = logs
		got, summary, err := m.run(t)
		if err != nil || got != want || summary.Repeated == 0 {
			t.Fatalf("seed %d: from logs: error %v, %d repeated, got\n%s\nwant\n%s", seed, err, summary.Repeated, got, want)
		}
		m.logs, m.inputs = nil, files
		for _, m.asServed = range []bool{poison, true} {
			got, of, err := m.run(t)
			if err != nil || got != want || of.Repeated != summary.Repeated {
				t.Fatalf("seed %d: from files, as served %v: error %v, %d repeated, want %d; got\n%s\nwant\n%s", seed, m.asServed, err, of.Repeated, summary.Repeated, got, want)
			}
		}
	}
}

// Without an envelope, the time of a row is that of the event, or of the field for the record's time.
func TestRepeatedRows(t *testing.T) {
	m := making{Registry: load(t, onceByID), names: []string{"pays"}, stream: "pay", inputs: []text{{"pay", "pay.ndjson", strings.Join([]string{
		`{"kind":"pay","id":"a","at":100000,"came":100000,"user":"u","n":1}`,
		`{"kind":"pay","id":"a","at":160000,"came":170000,"user":"u","n":1}`,
		`{"kind":"pay","id":"a","at":220001,"came":230000,"user":"u","n":1}`,
	}, "\n")}}}
	if got, _, err := m.run(t); err != nil || got != "id,pays\na,1\na,2\n" {
		t.Errorf("by the times of events: error %v, got\n%s", err, got)
	}
	m.asServed, m.recordTime = true, "came"
	if got, _, err := m.run(t); err != nil || got != "id,pays\na,1\na,2\n" {
		t.Errorf("by the times of records: error %v, got\n%s", err, got)
	}
}

// What a log has before the moment from which it is read is only remembered, and so is what comes after its end.
func TestRepeatedEventsOfBefore(t *testing.T) {
	pay := func(id string, at int64) record.Record {
		return record.Record{Timestamp: at, Value: fmt.Appendf(nil, `{"kind":"pay","id":%q,"at":%d,"user":"u","n":1}`, id, at)}
	}
	m := making{Registry: load(t, onceByID), names: []string{"pays"}, stream: "pay", until: 200_000, logs: []*testLog{{
		topic: "payments", since: state.MinTime, from: 2,
		records: []record.Record{
			pay("a", 100_000), {Timestamp: 100_000, Value: []byte("{")}, pay("b", 110_000), pay("a", 120_000), pay("c", 200_000), pay("c", 199_000), pay("d", 199_999),
		},
	}}}
	got, summary, err := m.run(t)
	if want := "id,pays\nb,1\nd,2\n"; err != nil || got != want || summary.Repeated != 2 || summary.SetAside != 0 {
		t.Errorf("error %v, %+v, got\n%s\nwant\n%s", err, summary, got, want)
	}
}
