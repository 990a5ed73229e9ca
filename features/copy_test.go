package features_test

import (
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
			rec.Headers = copied((&record.Copy{Namespace: c.namespace, Partition: rec.Partition, Offset: rec.Offset - 1, Series: c.series}).String())
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
	rec.Headers = copied("shop events/0/1 AAAAA")
	if mustMap(t, m, rec, b); len(b.Mutations) != 3 {
		t.Errorf("without a namespace a copy makes %d mutations, want 3", len(b.Mutations))
	}
	m.Namespace, rec.Headers = "shop", copied("shop events/0/1 ")
	if _, err := m.Map(&record.Record{Partition: rec.Partition, Offset: 9, Value: []byte("{"), Headers: rec.Headers}, 0, b); err == nil {
		t.Error("a copy in its namespace that still cannot be used is no poison")
	}
}
