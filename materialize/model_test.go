package materialize

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/tables"
	"github.com/weir-stream/weir/value"
)

// entityOf returns the text of a feature's entity in an event or a row; false if it lacks a key.
func entityOf(f *features.Feature, row map[string]string) (string, bool) {
	var keys []string
	for _, key := range f.By {
		text, ok := row[key]
		if !ok {
			return "", false
		}
		keys = append(keys, strings.NewReplacer(`\`, `\\`, "|", `\|`).Replace(text))
	}
	return strings.Join(keys, "|"), true
}

// Every value of every row equals a plain loop over the events until then, for all functions and windows, although the
// file is unordered.
func TestReplayEqualsModel(t *testing.T) {
	r := load(t, randomDefinitions+byPlace)
	plain := model.New(r)
	in, events := randomEvents(t)
	got, summary, err := materialize(t, r, "pay", "ndjson", in)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil || len(rows) != len(events)+1 {
		t.Fatal(len(rows), err)
	}
	lines, order := strings.Split(in, "\n"), make([]int, len(events))
	for i := range order {
		order[i] = i
	}
	timeOf := func(i int) int64 { return events[i]["at"].(int64) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(timeOf(a), timeOf(b)) })
	compared, capped := 0, 0
	for n, i := range order {
		e := map[string]string{}
		for name, v := range events[i] {
			e[name] = fmt.Sprint(v)
		}
		err := plain.Apply(record.Record{Partition: state.Partition{Topic: "events"}, Timestamp: record.NoTime, Value: []byte(lines[i])})
		if err != nil || rows[n+1][0] != e["id"] {
			t.Fatal(err, rows[n+1][0], e["id"])
		}
		for column, name := range rows[0][1:] {
			f, _ := r.Feature(name)
			want := ""
			if entity, ok := entityOf(f, e); ok {
				answer := plain.Answer(f, entity, timeOf(i))
				if want = string(answer.Value.AppendText(nil)); answer.Items != nil {
					asked := query.Answer{Items: answer.Items, Shape: aggregate.Categories}
					want = string(asked.AppendValue(nil))
				}
				if answer.Capped {
					capped++
				}
			}
			compared++
			if value := rows[n+1][column+1]; !near(value, want, max(1e-9, f.Call.Error)) {
				t.Fatalf("event %d, %s: %s is %q, want %q", i, lines[i], name, value, want)
			}
		}
	}
	if compared < 15_000 || capped == 0 || capped != summary.Capped {
		t.Errorf("%d values compared, %d capped; too few, or not as in the summary: %+v", compared, capped, summary)
	}
}

const twoStreams = `
streams:
  pay:
    topic: payments
    timestamp: at
    id: id
    fields: {user: string, device: string, amount: decimal, score: float}
  piece: # each pay has up to three; the name is after it
    topic: payments
    timestamp: at
    each: items
    fields: {user: string, device: string, n: {type: int, path: items.n}}
  login:
    topic: logins
    timestamp: {path: at, unit: s}
    fields: {user: string, device: string, no: int}
features:
  items_1h: COUNT(1h, piece, user)
  last_item: LAST(1d, piece, n, user)
  per_item: {expr: paid_1h / items_1h}
  last_score: LAST(1d, pay, score, user, tile=exact)
  paid_1h: SUM(1h, pay, amount, user)
  paid_exact: SUM(1d, pay, amount, user, tile=exact, max=5)
  score_avg: AVG(2h, pay, score, device, tile=exact, delay=1h)
  logins_1h: COUNT(1h, login, device)
  numbers: COUNT_DISTINCT(1d, login, user, no)
  recent: COUNT_DISTINCT(1h, login, user, device, method=last_seen, max=3)
  in_session: COUNT(session 10m, login, user)
  before: LAST(rolling 1d last 5, pay, device, user, exclude=current)
  per_login: {expr: paid_1h / logins_1h, default: -1}
  paid_here: SUM(2h, pay, amount, SET(1d, login, user, device), tile=exact)
  users_here: COUNT_DISTINCT(1d, login, SET(2h, pay, device, user), device, max=2)
  times: {expr: event.amount / paid_1h, stream: pay, default: -2}
  of_event: {expr: 'event.amount > 10 ? event.score : event.device == "d1" ? 1.5 : paid_exact / 3', stream: pay}
  over: {expr: 'times > 0.5 or per_login > 2'}
  alike: COUNT(2h, pay, user, where='abs(amount - event.amount) < 20')
  elsewhere: AVG(1d, pay, amount, user, where='score > 0.2 and device != event.device', max=5)
  others: COUNT_DISTINCT(1d, pay, device, user, where='score < event.score or device == event.device', tile=exact, exclude=current)
  share: {expr: alike / (paid_1h + others)}
services:
  risk: [paid_1h, logins_1h, recent, paid_here, users_here, per_login]
`

// withTable are the same definitions with a table.
var withTable = strings.Replace(twoStreams, "features:", `tables:
  model: {topic: models, key: device, timestamp: since, fields: {risk: int}}
features:
  risk: {expr: model.risk}
  known: {expr: 'event.device in model and paid_1h > 0', stream: pay}`, 1)

// timed is a line of a file, or a row of a table, with its times in milliseconds.
type timed struct {
	stream, line string
	at, came     int64
	stamp        int64  // of its record, if that is not when it came
	key          string // of its record, if it is a row of a table
}

// partition returns that of the event, which depends on its user: only so is there an order of the events of the same millisecond.
func (e timed) partition() int {
	var of struct{ User string }
	_ = json.Unmarshal([]byte(e.line), &of)
	return strings.Count("u1 u3", of.User) % 2
}

// twoStreamsOf returns events of two topics in order of arrival; some are late, and some come in the same millisecond, of which many
// are also of the same one.
func twoStreamsOf(seed uint64) (all []timed) {
	random := rand.New(rand.NewPCG(seed, 2))
	came, at := int64(1_700_000_000_000), int64(0)
	for i := range 1200 {
		if random.IntN(5) > 0 || i == 0 {
			came += 1 + random.Int64N(200_000)
			at = came - random.Int64N(30_000)
		}
		if random.IntN(10) == 0 {
			at = came - random.Int64N(3*3600_000)
		}
		user, device := fmt.Sprint("u", random.IntN(4)), fmt.Sprint("d", random.IntN(6))
		amount, score, no := fmt.Sprintf("%d.25", random.IntN(100)), fmt.Sprint(random.Float64()), strconv.Itoa(random.IntN(9))
		if random.IntN(8) == 0 {
			user, device = pick(random, user, ""), pick(random, device, "", "|", strings.Repeat("d", 120))
			amount, score = pick(random, amount, "0", "-0.01", "92233720368547758.07", "null"), pick(random, score, "0", "1e308", "-1e308", "null")
			no = pick(random, no, "0", "9223372036854775807", "-9223372036854775808", "null")
		}
		if random.IntN(2) == 0 {
			var items []string
			for range random.IntN(4) {
				items = append(items, fmt.Sprintf(`{"n":%d}`, random.IntN(100)))
			}
			all = append(all, timed{stream: "pay", at: at, came: came, line: fmt.Sprintf(
				`{"id":%d,"at":%d,"user":%q,"device":%q,"amount":%s,"score":%s,"items":[%s],"meta":{"came":%d}}`,
				i, at, user, device, amount, score, strings.Join(items, ","), came)})
			continue
		}
		all = append(all, timed{stream: "login", at: at / 1000 * 1000, came: came, line: fmt.Sprintf( // they have a resolution of seconds
			`{"at":%d,"user":%q,"device":%q,"no":%s,"meta":{"came":%d}}`, at/1000, user, device, no, came)})
	}
	return all
}

// modelsOf returns rows about the devices of events, in the order of their partition. They say that they hold since before their
// record, or after it: then it is since their record, and never before what the last record of their key said.
func modelsOf(all []timed) (rows []timed) {
	random := rand.New(rand.NewPCG(8, 9))
	held := map[string]int64{}
	for i, e := range all {
		if i%3 > 0 {
			continue
		}
		row := timed{stream: "model", came: e.came, key: fmt.Sprint("d", random.IntN(6))}
		row.at = row.came
		if _, written := held[row.key]; !written || random.IntN(6) > 0 { // else it is deleted
			since := row.came + random.Int64N(3600_000) - 3000_000
			row.at, row.line = min(row.at, since), fmt.Sprintf(`{"device":%q,"since":%d,"risk":%d}`, row.key, since, i)
		}
		row.at = max(row.at, held[row.key])
		held[row.key] = row.at
		rows = append(rows, row)
	}
	return rows
}

// tableOf returns the table of rows.
func tableOf(t *testing.T, r *features.Registry, rows []timed, asServed bool) *tables.Set {
	t.Helper()
	c := tables.New(r.Tables[0]).Keeping(tables.History)
	if asServed {
		c = tables.New(r.Tables[0]).Keeping(tables.AsReceived)
	}
	for _, row := range rows {
		rec := row.record("models", row.came)
		if bad, err := c.Take(&rec); bad != nil || err != nil {
			t.Fatal(bad, err)
		}
	}
	return tables.Fixed(c)
}

// record returns the record of an event or a row.
func (e timed) record(topic string, timestamp int64) record.Record {
	rec := record.Record{Partition: state.Partition{Topic: topic}, Timestamp: timestamp}
	if e.key != "" {
		rec.Key = []byte(e.key)
	}
	if e.line != "" {
		rec.Value = []byte(e.line)
	}
	return rec
}

// inputsOf returns files of the two topics with shuffled lines. What came in the same millisecond stays in its order.
func inputsOf(all []timed, random *rand.Rand) []text {
	var together [][]timed
	for i, e := range all {
		if i == 0 || e.came > all[i-1].came {
			together = append(together, nil)
		}
		together[len(together)-1] = append(together[len(together)-1], e)
	}
	random.Shuffle(len(together), func(i, j int) { together[i], together[j] = together[j], together[i] })
	lines := map[string][]string{}
	for _, e := range slices.Concat(together...) {
		lines[e.stream] = append(lines[e.stream], e.enveloped())
	}
	half := len(lines["pay"]) / 2
	return []text{
		{"login", "logins.ndjson", strings.Join(lines["login"], "\n")},
		{"", "pay1.ndjson", strings.Join(lines["pay"][:half], "\n")}, {"", "pay2.ndjson", strings.Join(lines["pay"][half:], "\n")},
	}
}

// enveloped returns the line of an event. That of a pay has an envelope, since it is of two streams.
func (e timed) enveloped() string {
	if e.stream == "pay" {
		return fmt.Sprintf(`{"topic":"payments","value":%s}`, e.line)
	}
	return e.line
}

// counts returns since when an event or a row counts: by its own time or, as served, at its arrival.
func (e timed) counts(asServed bool) int64 {
	if asServed {
		return e.came
	}
	return e.at
}

// loop is the plain loop over events that a training set is compared with.
type loop struct {
	t        *testing.T
	registry *features.Registry
	model    *model.Model
	asServed bool
	rows     [][]string // of the training set; the first has the names

	compared, capped, uncertain, outside int
}

func newLoop(t *testing.T, m making, want int) (*loop, Summary) {
	t.Helper()
	got, summary, err := m.run(t)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil || len(rows) != want+1 {
		t.Fatal(len(rows), err)
	}
	return &loop{t: t, registry: m.Registry, model: model.New(m.Registry), asServed: m.asServed, rows: rows}, summary
}

func (l *loop) apply(e timed) {
	l.t.Helper()
	s, isEvent := l.registry.Stream(e.stream)
	rec := e.record("models", e.came)
	if isEvent {
		rec = e.record(s.Topic, record.NoTime)
		if l.asServed {
			rec.Timestamp = cmp.Or(e.stamp, e.came)
		}
	}
	if err := l.model.Apply(rec); err != nil {
		l.t.Fatal(err)
	}
	if !isEvent {
		return
	}
	events, err := l.registry.NewJSONMapper(s).Map(&rec, 0, &state.Batch{Ranges: make([]state.PartitionRange, 1)})
	if err != nil {
		l.t.Fatal(err)
	}
	for i := range events.Events {
		if e := &events.Events[i]; e.Stream == s {
			l.model.InHand = e.Clone()
		}
	}
}

// compare compares a row about the entity with these keys, as of at, given the state as of now.
func (l *loop) compare(row int, keys map[string]string, at, now int64) {
	l.t.Helper()
	names := l.rows[0]
	cell := func(name string) string { return l.rows[row+1][slices.Index(names, name)] }
	for _, f := range l.registry.Features {
		if !slices.Contains(names, f.Name) {
			continue
		}
		l.compared++
		entity, ok := entityOf(f, keys)
		outside := ok && f.Forgets() && at < now-f.Keep.Milliseconds()
		want, capped, uncertain := "", false, int64(0)
		if ok && !outside {
			inHand := l.model.InHand
			if inHand != nil && ofAnother(f, inHand, keys) {
				l.model.InHand = nil
			}
			answer := l.model.Answer(f, entity, at)
			l.model.InHand = inHand
			want, capped, uncertain = string(answer.Value.AppendText(nil)), answer.Capped, answer.Uncertain
		}
		said := []string{cell(f.Name + "_capped"), strconv.FormatBool(capped), strconv.FormatBool(cell(f.Name+"_status") == "OUTSIDE_MAX_AGE"), strconv.FormatBool(outside)}
		if f.MayBeUncertain() {
			said = append(said, cell(f.Name+"_uncertain"), strconv.FormatInt(uncertain, 10))
		}
		for i := 0; i < len(said); i += 2 {
			if said[i] != said[i+1] {
				l.t.Fatalf("as served %v, row %d %v: %s has the wrong capped, outside or uncertain columns (got, want): %v", l.asServed, row, keys, f.Name, said)
			}
		}
		if got := cell(f.Name); !near(got, want, 1e-9) {
			l.t.Fatalf("as served %v, row %d %v: %s is %q, want %q", l.asServed, row, keys, f.Name, got, want)
		}
		for _, s := range []struct {
			n   *int
			yes bool
		}{{&l.capped, capped}, {&l.uncertain, uncertain > 0}, {&l.outside, outside}} {
			if s.yes {
				*s.n++
			}
		}
	}
}

// ofAnother reports whether an event that a feature reads has another value for one of its keys.
func ofAnother(f *features.Feature, event *record.Event, keys map[string]string) bool {
	for _, i := range f.OfEvent() {
		field, v := f.InHand.Fields[i].Name, event.Values[i]
		if slices.Contains(f.By, field) && !v.IsNull() && string(v.AppendText(nil)) != keys[field] {
			return true
		}
	}
	return false
}

// Training sets over two streams equal a plain loop over the events up to and including each row's
// millisecond: by event time or, as served, by arrival, in memory and sorted on disk, from files and
// from logs.
func TestTrainingSetEqualsModel(t *testing.T) {
	r := load(t, withTable)
	all := twoStreamsOf(3)
	rows := modelsOf(all)
	logs, logged := logsOf(all)
	random := rand.New(rand.NewPCG(4, 5))
	last := all[len(all)-1].came
	spine := "note,device,at,user,label,event.amount,event.device,event.score\n"
	type row struct {
		at     int64
		keys   map[string]string
		inHand *record.Event
	}
	pay, _ := r.Stream("pay")
	var wanted []row
	for i := range 600 {
		at := all[0].at + random.Int64N(last-all[0].at+3600_000)
		if e := all[random.IntN(len(all))]; i%3 == 0 {
			at = e.at // in the same millisecond
		}
		user, device := fmt.Sprint("u", random.IntN(5)), fmt.Sprint("d", random.IntN(7))
		keys, cell := map[string]string{"user": user, "device": device, "note": fmt.Sprint("n", i)}, user
		switch random.IntN(20) {
		case 0:
			delete(keys, "user")
			cell = ""
		case 1:
			keys["user"], cell = "", `""`
		}
		amount, score := pick(random, "", "0", "10", "10.01", "-0.01", "77.25", "92233720368547758.07"), pick(random, "", "0", "0.5", "1e308", "-1e308")
		of := pick(random, "", "d1", "|", device, device, device)
		inHand := &record.Event{Stream: pay, Values: make([]value.Value, len(pay.Fields))}
		for i, text := range []string{1: of, 2: amount, 3: score} {
			if text != "" {
				inHand.Values[i] = value.ParseText(pay.Fields[i].Type, pay.Fields[i].Scale, text)
			}
		}
		wanted = append(wanted, row{at, keys, inHand})
		spine += fmt.Sprintf("n%d,%s,%d,%s,%d,%s,%s,%s\n", i, device, at, cell, i%2, amount, of, score)
	}
	slices.SortStableFunc(wanted, func(a, b row) int { return cmp.Compare(a.at, b.at) })
	for _, c := range []struct {
		asServed bool
		memory   int64
		logs     bool
	}{{false, 1 << 30, false}, {false, 10_000, false}, {true, 1 << 30, false}, {true, 10_000, false}, {false, 1 << 30, true}, {true, 10_000, true}} {
		m := making{Registry: r, spine: spine, asServed: c.asServed, memory: c.memory, quality: true, tables: tableOf(t, r, rows, c.asServed)}
		if c.logs {
			m.logs = logs
		} else {
			m.inputs = inputsOf(all, random)
		}
		if c.asServed && !c.logs {
			m.recordTime = "meta.came"
		}
		l, summary := newLoop(t, m, len(wanted))
		sorted := slices.Concat(all, rows)
		if c.logs {
			sorted = slices.Concat(logged, rows)
		}
		slices.SortStableFunc(sorted, func(a, b timed) int { return cmp.Compare(a.counts(c.asServed), b.counts(c.asServed)) })
		for i, w := range wanted {
			for len(sorted) > 0 && sorted[0].counts(c.asServed) <= w.at {
				l.apply(sorted[0])
				sorted = sorted[1:]
			}
			if got := l.rows[i+1][0]; got != w.keys["note"] {
				t.Fatalf("row %d is %s, want %s", i, got, w.keys["note"])
			}
			l.model.InHand = w.inHand
			l.compare(i, w.keys, w.at, w.at)
		}
		if l.compared < 6000 || l.capped == 0 || l.capped != summary.Capped || (summary.Late > 0) != c.asServed {
			t.Errorf("%+v: %d values compared, %d capped; too few, or not as in the summary: %+v", c, l.compared, l.capped, summary)
		}
		if (summary.Spilled > 0) != (c.memory < 1<<20) {
			t.Errorf("%d bytes were sorted on disk, with a memory of %d", summary.Spilled, c.memory)
		}
	}
}

// Rows that are events include the events before them, also of other streams, and themselves. As served, they may be
// too late for the state, and say so.
func TestEventsAsRowsEqualModel(t *testing.T) {
	r := load(t, twoStreams)
	all := twoStreamsOf(6)
	for _, asServed := range []bool{false, true} {
		sorted := slices.Clone(all)
		slices.SortStableFunc(sorted, func(a, b timed) int {
			return cmp.Or(cmp.Compare(a.counts(asServed), b.counts(asServed)), cmp.Compare(a.stream, b.stream)) // login first
		})
		lines, rows := map[string]string{}, 0
		for _, e := range sorted {
			lines[e.stream] += e.enveloped() + "\n"
			if e.stream == "pay" {
				rows++
			}
		}
		m := making{
			Registry: r, stream: "pay", asServed: asServed, quality: true,
			inputs: []text{{"", "pay.ndjson", lines["pay"]}, {"login", "logins.ndjson", lines["login"]}},
		}
		if asServed {
			m.recordTime = "meta.came"
		}
		l, summary := newLoop(t, m, rows)
		row := 0
		for _, e := range sorted {
			l.apply(e)
			if e.stream != "pay" {
				continue
			}
			var fields struct {
				ID           int
				User, Device string
			}
			if err := json.Unmarshal([]byte(e.line), &fields); err != nil || l.rows[row+1][0] != strconv.Itoa(fields.ID) {
				t.Fatal(err, l.rows[row+1], fields)
			}
			l.compare(row, map[string]string{"user": fields.User, "device": fields.Device}, e.at, e.counts(asServed))
			row++
		}
		if l.compared < 5000 || l.capped == 0 || l.capped != summary.Capped || l.uncertain != summary.Uncertain || l.outside != summary.OutsideMaxAge ||
			(l.uncertain > 0) != asServed || (l.outside > 0) != asServed {
			t.Errorf("as served %v: %d values compared, %d capped, %d uncertain, %d outside; unexpected, or not as in the summary: %+v", asServed, l.compared, l.capped, l.uncertain, l.outside, summary)
		}
	}
}
