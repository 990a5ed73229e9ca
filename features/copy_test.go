package features_test

import (
	"errors"
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

// copied are the headers of a copy.
type copied string

func (c copied) Last(key string) ([]byte, bool) { return []byte(c), key == record.CopyHeader }

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
			m.Namespace = "shop"
			rec.Headers = copied((&record.Copy{Namespace: c.namespace, Partition: rec.Partition, Offset: rec.Offset - 1, Timestamps: []int64{rec.Timestamp}, Series: c.series}).String())
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
	rec.Headers = copied("shop events/0/1 1000 AAAAA")
	if mustMap(t, m, rec, b); len(b.Mutations) != 3 {
		t.Errorf("without a namespace a copy makes %d mutations, want 3", len(b.Mutations))
	}
	m.Namespace, rec.Headers = "shop", copied("shop events/0/1 -1 ")
	if _, err := m.Map(&record.Record{Partition: rec.Partition, Offset: 9, Value: []byte("{"), Headers: rec.Headers}, 0, b); err == nil {
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
		m.Namespace = "shop"
		of := record.Copy{Namespace: "shop", Partition: rec.Partition, Offset: 1, Timestamps: c.timestamps, Series: []string{registry.Series[0].ID}}
		rec.Headers = copied(of.String())
		if _, err := m.Map(rec, 0, b); len(b.Mutations) != c.mutations || (err != nil) != (c.mutations == 0) {
			t.Errorf("%s: got %d mutations, error %v; want %d", name, len(b.Mutations), err, c.mutations)
		}
	}
	// If it takes a schema to tell, the schema is asked for.
	m, b := defined.Registry(t, strings.Replace(copyDefinitions, "    timestamp:", "    format: avro\n    timestamp:", 1)).NewMapper(), &state.Batch{}
	m.Namespace = "shop"
	rec := event("\x00\x00\x00\x00\x07")
	rec.Headers = copied("shop events/0/1 1000 ")
	_, err := m.Map(rec, 0, b)
	if _, missing := errors.AsType[*record.MissingSchema](err); !missing {
		t.Errorf("got error %v, want one about a missing schema", err)
	}
}
