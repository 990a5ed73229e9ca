package features

import (
	"testing"

	"github.com/weir-stream/weir/features/kinds"
)

func TestListsInJSON(t *testing.T) {
	text := kinds.Value{Type: kinds.String, Str: []byte(`a"b`)}
	money := kinds.Value{Type: kinds.Decimal, Num: 1050, Scale: 2}
	place := kinds.Value{Type: kinds.Location, Flt: 52.52, Lon: 13.4}
	for _, test := range []struct {
		shape kinds.Shape
		items []kinds.Item
		want  string
	}{
		{kinds.List, []kinds.Item{{Value: text}, {Value: money}, {Value: place}}, `["a\"b",10.5,{"lat":52.52,"lon":13.4}]`},
		{kinds.List, []kinds.Item{{}}, `[null]`},
		{kinds.Counts, []kinds.Item{{Value: text, Count: 3}, {Value: money, Count: 1}}, `[{"value":"a\"b","count":3},{"value":10.5,"count":1}]`},
		{kinds.Bins, []kinds.Item{{To: money, Count: 2}, {From: money}}, `[{"from":null,"to":10.5,"count":2},{"from":10.5,"to":null,"count":0}]`},
		{kinds.List, nil, `null`},
		{kinds.Categories, []kinds.Item{{Category: text, Value: money}, {Category: money}}, `{"a\"b":10.5,"10.5":null}`},
		{kinds.Categories, []kinds.Item{}, `{}`},
	} {
		got := (&Answer{Items: test.items, Shape: test.shape, Status: Present, From: kinds.Ever, To: 5, CompleteSince: kinds.Ever, Exact: true}).AppendJSON(nil)
		if want := `{"value":` + test.want + `,"status":"PRESENT","from":null,"to":5,"exact":true}`; string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// An estimate says how far it may be off.
func TestErrorsInJSON(t *testing.T) {
	got := (&Answer{Value: kinds.Value{Type: kinds.Int, Num: 7}, Status: Present, From: kinds.Ever, To: 5, CompleteSince: kinds.Ever, RelativeError: 0.01}).AppendJSON(nil)
	if want := `{"value":7,"status":"PRESENT","from":null,"to":5,"exact":false,"relative_error":0.01}`; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
