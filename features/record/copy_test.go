package record_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

func TestParseCopy(t *testing.T) {
	for _, c := range []*record.Copy{
		{Namespace: "shop", Partition: state.Partition{Topic: "payments", ID: 3}, Offset: 120, Timestamps: []int64{1000, -1}, Series: []string{"AAAAA", "BBBBB"}},
		{Namespace: "shop", Partition: state.Partition{Topic: "payments"}, Timestamps: []int64{1000}}, // in no series
	} {
		if diff := cmp.Diff(c, record.ParseCopy([]byte(c.String()))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c, diff)
		}
	}
	for _, text := range []string{
		"", "shop", "shop payments/3/120 1000", " payments/3/120 1000 AAAAA", "shop payments/3 1000 AAAAA", "shop payments/x/120 1000 AAAAA",
		"shop payments/3/x 1000 AAAAA", "shop payments/-1/120 1000 AAAAA", "shop payments/3/-1 1000 AAAAA", "shop payments/99999999999/1 1000 AAAAA",
		"shop payments/3/120 1000 AAAAA BBBBB", "shop payments/3/120  AAAAA", "shop payments/3/120 x AAAAA", "shop payments/3/120 1000, AAAAA",
	} {
		if c := record.ParseCopy([]byte(text)); c != nil {
			t.Errorf("%q is read as %+v, want nothing", text, c)
		}
	}
}

// A record is a copy only after its original, in the same partition.
func TestCopyOf(t *testing.T) {
	in := state.Partition{Topic: "payments", ID: 3}
	const header = "shop payments/3/120 1000 AAAAA"
	copied := func(p state.Partition, offset int64, says string) record.Record {
		rec := record.Record{Partition: p, Offset: offset}
		defined.Copy(&rec, says)
		return rec
	}
	for name, c := range map[string]struct {
		rec          record.Record
		want, forged bool
	}{
		"a copy":               {copied(in, 121, header), true, false},
		"without headers":      {record.Record{Partition: in, Offset: 121}, false, false},
		"without the header":   {record.Record{Partition: in, Offset: 121, Headers: headers{"trace": "1"}}, false, false},
		"without a seal":       {record.Record{Partition: in, Offset: 121, Headers: headers{record.CopyHeader: header}}, false, true},
		"with a wrong header":  {copied(in, 121, "yes"), false, true},
		"before its original":  {copied(in, 120, header), false, true},
		"in another partition": {copied(state.Partition{Topic: "payments", ID: 2}, 121, header), false, true},
		"in another topic":     {copied(state.Partition{Topic: "mirrored", ID: 3}, 121, header), false, true},
	} {
		got, forged := record.CopyOf(&c.rec, defined.Seal())
		if forged != c.forged {
			t.Errorf("%s: forged: %v", name, forged)
		}
		if (got != nil) != c.want || got != nil && (!slices.Equal(got.Series, []string{"AAAAA"}) || !got.Has("AAAAA") || got.Has("BBBBB")) {
			t.Errorf("%s: got %+v, want a copy: %v", name, got, c.want)
		}
	}
}
