package features_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

const copyDefinitions = `
streams:
  transaction:
    topic: events
    timestamp: {path: timestamp, unit: ms}
    fields: {user_id: string, amount: {type: decimal, scale: 2}}
features:
  counted: COUNT(1d, transaction, user_id)
  summed: SUM(1d, transaction, amount, user_id)
  biggest: MAX(1h, transaction, amount, user_id, tile=exact)
`

// A copy changes the series that it names, in its namespace. Elsewhere its original has counted, whatever it is.
func TestMapCopyOfADeadLetter(t *testing.T) {
	registry := defined.Registry(t, copyDefinitions)
	of := map[string]string{} // series of the features
	for _, f := range registry.Features {
		of[f.Name] = f.Series[0].ID
	}
	for name, c := range map[string]struct {
		namespace string
		series    []string
		value     string
		want      []string
	}{
		"one series":        {"shop", []string{of["summed"]}, transaction, []string{of["summed"]}},
		"a log":             {"shop", []string{of["biggest"]}, transaction, []string{of["biggest"]}},
		"none":              {"shop", nil, transaction, nil},
		"a removed one":     {"shop", []string{"AAAAA"}, transaction, nil},
		"another namespace": {"other", []string{of["summed"]}, transaction, nil},
		"poison elsewhere":  {"other", nil, "{", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, b, rec := registry.NewMapper(), &state.Batch{}, event(c.value)
			m.Namespace, m.Seal = "shop", defined.Seal()
			defined.Copy(rec, (&record.Copy{Namespace: c.namespace, Partition: rec.Partition, Offset: rec.Offset - 1, Timestamps: []int64{rec.Timestamp}, Series: c.series}).String())
			out := mustMap(t, m, rec, b)
			if taken := out.Stream != ""; taken != (c.namespace == "shop") {
				t.Errorf("got the outcome %+v", out)
			}
			var got []string
			for _, mutation := range b.Mutations {
				got = append(got, mutation.Series.ID)
			}
			equalLines(t, got, c.want)

			// The next record is no copy.
			b.Reset()
			if mustMap(t, m, event(transaction), b); len(b.Mutations) != 3 {
				t.Errorf("the next record makes %d mutations, want 3", len(b.Mutations))
			}
		})
	}
	// A mapper without a namespace reads copies like any other record.
	m, b, rec := registry.NewMapper(), &state.Batch{}, event(transaction)
	defined.Copy(rec, "shop events/0/1 1000 AAAAA")
	if mustMap(t, m, rec, b); len(b.Mutations) != 3 {
		t.Errorf("without a namespace a copy makes %d mutations, want 3", len(b.Mutations))
	}
	m.Namespace, m.Seal = "shop", defined.Seal()
	bad := &record.Record{Partition: rec.Partition, Offset: 9, Value: []byte("{")}
	defined.Copy(bad, "shop events/0/1 -1 ")
	if _, err := m.Map(bad, 0, b); err == nil || m.Forged != 0 {
		t.Error("a copy in its namespace that still cannot be used is no poison")
	}
}

// A replay may give a copy another timestamp. If the original cannot be used because of its own, whoever reads both counts
// the copy.
func TestMapCopyWithAnotherTimestamp(t *testing.T) {
	registry := defined.Registry(t, copyDefinitions)
	const day = 24 * 60 * 60 * 1000
	for name, c := range map[string]struct {
		value      string
		timestamps []int64 // of the original and earlier copies
		mutations  int
	}{
		"the original can be used":                 {transaction, []int64{recorded - 1}, 1},
		"it was from the future":                   {transaction, []int64{recorded - 40*day}, 3},
		"and so was a copy":                        {transaction, []int64{recorded - 40*day, recorded - 30*day}, 3},
		"a copy can be used":                       {transaction, []int64{recorded - 40*day, recorded - 1}, 1},
		"the last copy had the same timestamp":     {transaction, []int64{recorded - 40*day, recorded}, 1},
		"the original is from the future, in vain": {"{", []int64{recorded - 40*day}, 0},
	} {
		m, b, rec := registry.NewMapper(), &state.Batch{}, event(c.value)
		m.Namespace, m.Seal = "shop", defined.Seal()
		of := record.Copy{Namespace: "shop", Partition: rec.Partition, Offset: 1, Timestamps: c.timestamps, Series: []string{registry.Series[0].ID}}
		defined.Copy(rec, of.String())
		if _, err := m.Map(rec, 0, b); len(b.Mutations) != c.mutations || (err != nil) != (c.mutations == 0) {
			t.Errorf("%s: got %d mutations, error %v; want %d", name, len(b.Mutations), err, c.mutations)
		}
	}
	// If it takes a schema to tell, the schema is asked for.
	m, b := defined.Registry(t, strings.Replace(copyDefinitions, "    timestamp:", "    format: avro\n    timestamp:", 1)).NewMapper(), &state.Batch{}
	m.Namespace, m.Seal = "shop", defined.Seal()
	rec := event("\x00\x00\x00\x00\x07")
	defined.Copy(rec, "shop events/0/1 1000 ")
	_, err := m.Map(rec, 0, b)
	if _, missing := errors.AsType[*record.MissingSchema](err); !missing {
		t.Errorf("got error %v, want one about a missing schema", err)
	}
}

// Whoever writes an event may give it the header of a copy, to have it count nowhere. Without Weir's seal over that record
// and no other, it counts like any event, and is counted as forged.
func TestMapForgedCopy(t *testing.T) {
	registry := defined.Registry(t, copyDefinitions)
	says := func(rec *record.Record) string {
		return (&record.Copy{Namespace: "shop", Partition: rec.Partition, Offset: rec.Offset - 1, Timestamps: []int64{rec.Timestamp}}).String()
	}
	stolen := func(change func(rec *record.Record)) func(rec *record.Record) { // the headers of a real copy, in another record
		return func(rec *record.Record) { defined.Copy(rec, says(rec)); change(rec) }
	}
	list := func(rec *record.Record) record.HeaderList { return rec.Headers.(record.HeaderList) }
	for name, forge := range map[string]func(rec *record.Record){
		"no seal": func(rec *record.Record) {
			rec.Headers = record.HeaderList{{Key: record.CopyHeader, Value: []byte(says(rec))}}
		},
		"another value":   stolen(func(rec *record.Record) { rec.Value = append(slices.Clone(rec.Value), ' ') }),
		"another key":     stolen(func(rec *record.Record) { rec.Key = []byte("other") }),
		"another header":  stolen(func(rec *record.Record) { list(rec)[0].Value = append(list(rec)[0].Value, "AAAAA"...) }),
		"one more header": stolen(func(rec *record.Record) { rec.Headers = append(record.HeaderList{{Key: "trace"}}, list(rec)...) }),
		"one after it":    stolen(func(rec *record.Record) { rec.Headers = append(list(rec), record.Header{Key: "trace"}) }),
		"another count":   stolen(func(rec *record.Record) { list(rec)[1].Value = append([]byte("01"), list(rec)[1].Value[1:]...) }),
		"no proof":        stolen(func(rec *record.Record) { list(rec)[1].Value = []byte("1 ") }),
		"of all headers":  stolen(func(rec *record.Record) { list(rec)[1].Value = append([]byte("9"), list(rec)[1].Value[1:]...) }),
		"of none":         stolen(func(rec *record.Record) { list(rec)[1].Value = append([]byte("-1"), list(rec)[1].Value[1:]...) }),
		"of another seal": func(rec *record.Record) {
			headers := []record.Header{{Key: record.CopyHeader, Value: []byte(says(rec))}}
			other := state.NewSeal([]byte("that of another namespace"))
			rec.Headers = record.HeaderList(append(headers, record.SealOf(other, rec.Partition.Topic, rec.Key, rec.Value, headers, 1)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, b, rec := registry.NewMapper(), &state.Batch{}, event(transaction)
			m.Namespace, m.Seal = "shop", defined.Seal()
			forge(rec)
			if mustMap(t, m, rec, b); len(b.Mutations) != 3 || m.Forged != 1 {
				t.Errorf("%d mutations, and %d forged; want 3 and 1", len(b.Mutations), m.Forged)
			}
			// Nor does one that has no seal obey anything.
			m.Seal, m.Forged = state.Seal{}, 0
			b.Reset()
			if mustMap(t, m, rec, b); len(b.Mutations) != 3 || m.Forged != 1 {
				t.Errorf("without a seal: %d mutations, and %d forged; want 3 and 1", len(b.Mutations), m.Forged)
			}
		})
	}
}
