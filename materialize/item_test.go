package materialize

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

func drawValue(t *rapid.T) value.Value {
	v := value.Value{Type: rapid.SampledFrom([]value.Type{
		value.Null, value.String, value.Int, value.Float, value.Decimal, value.Bool, value.Timestamp, value.Location,
	}).Draw(t, "type")}
	switch v.Type {
	case value.Null:
	case value.String:
		v.Str = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "text")
	case value.Location:
		v.Flt, v.Lon = rapid.Float64().Draw(t, "lat"), rapid.Float64().Draw(t, "lon")
	case value.Float:
		v.Flt = rapid.Float64().Draw(t, "float")
	case value.Decimal:
		v.Scale, v.Num = rapid.Uint8Range(0, value.MaxScale).Draw(t, "scale"), rapid.Int64().Draw(t, "num")
	default:
		v.Num = rapid.Int64().Draw(t, "num")
	}
	return v
}

// An event is read back as it was written; a truncated one is an error.
func TestItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := record.Event{Time: rapid.Int64().Draw(t, "time"), Values: rapid.SliceOfN(rapid.Custom(drawValue), 1, 5).Draw(t, "values")}
		if rapid.Bool().Draw(t, "has an id") {
			want.ID = []byte(rapid.StringN(0, 9, -1).Draw(t, "id"))
		}
		written := appendEvent(nil, &want, len(want.Values))
		got := record.Event{Values: make([]value.Value, len(want.Values))}
		var wanted []bool
		if rapid.Bool().Draw(t, "some values only") {
			wanted = rapid.SliceOfN(rapid.Bool(), len(want.Values), len(want.Values)).Draw(t, "wanted")
		}
		for n := range wanted {
			if !wanted[n] {
				want.Values[n] = value.Value{}
			}
		}
		i := item{rest: written}
		if i.event(&got, wanted); i.err != nil || len(i.rest) > 0 || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v was read as %+v, error %v", want, got, i.err)
		}
		i = item{rest: written[:rapid.IntRange(0, len(written)-1).Draw(t, "cut")]}
		if i.event(&got, wanted); i.err == nil {
			t.Fatal("no error for an event that was cut short")
		}
	})
}

// The text of a mutation is read back as it was written, and one that is empty is not taken for none: an empty text is
// a member, and the key of the number 0.
func TestTextsOfMutations(t *testing.T) {
	bytesOf := rapid.SliceOfN(rapid.Byte(), 0, 300)
	rapid.Check(t, func(t *rapid.T) {
		var texts []*state.Text
		var written []byte
		for range rapid.IntRange(1, 4).Draw(t, "texts") {
			var text *state.Text
			if rapid.Bool().Draw(t, "has a text") {
				text = &state.Text{Member: bytesOf.Draw(t, "member"), Key: bytesOf.Draw(t, "key")}
			}
			texts, written = append(texts, text), appendMutationText(written, text)
		}
		i := item{rest: written}
		for _, want := range texts {
			var got state.Text
			if has := i.mutationText(&got); has != (want != nil) || i.err != nil {
				t.Fatalf("read %v, error %v; want %v", has, i.err, want)
			}
			if want != nil && (!bytes.Equal(got.Member, want.Member) || !bytes.Equal(got.Key, want.Key)) {
				t.Fatalf("%+v was read as %+v", *want, got)
			}
		}
		if len(i.rest) > 0 {
			t.Fatalf("%d bytes are left", len(i.rest))
		}
	})
}

// An empty text of the spine is passed on, and is not null.
func TestEmptyTextIsNotNull(t *testing.T) {
	i := item{rest: appendCells(nil, []source.Cell{{Type: source.String}, {}})}
	if text, null := i.text(), i.text(); text == nil || null != nil {
		t.Errorf("got the texts %#v and %#v, want an empty one and none", text, null)
	}
}
