package query

import (
	"testing"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

func TestListsInJSON(t *testing.T) {
	text := value.Value{Type: value.String, Str: []byte(`a"b`)}
	money := value.Value{Type: value.Decimal, Num: 1050, Scale: 2}
	place := value.Value{Type: value.Location, Flt: 52.52, Lon: 13.4}
	for _, test := range []struct {
		shape aggregate.Shape
		items []aggregate.Item
		want  string
	}{
		{aggregate.List, []aggregate.Item{{Value: text}, {Value: money}, {Value: place}}, `["a\"b",10.5,{"lat":52.52,"lon":13.4}]`},
		{aggregate.List, []aggregate.Item{{}}, `[null]`},
		{aggregate.Counts, []aggregate.Item{{Value: text, Count: 3}, {Value: money, Count: 1}}, `[{"value":"a\"b","count":3},{"value":10.5,"count":1}]`},
		{aggregate.Bins, []aggregate.Item{{To: money, Count: 2}, {From: money}}, `[{"from":null,"to":10.5,"count":2},{"from":10.5,"to":null,"count":0}]`},
		{aggregate.List, nil, `null`},
		{aggregate.Categories, []aggregate.Item{{Category: text, Value: money}, {Category: money}}, `{"a\"b":10.5,"10.5":null}`},
		{aggregate.Categories, []aggregate.Item{}, `{}`},
	} {
		got := (&Answer{Items: test.items, Shape: test.shape, Status: Present, From: state.MinTime, To: 5, CompleteSince: state.MinTime, Exact: true}).AppendJSON(nil)
		if want := `{"value":` + test.want + `,"status":"PRESENT","from":null,"to":5,"exact":true}`; string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// An estimate states its error.
func TestErrorsInJSON(t *testing.T) {
	got := (&Answer{Value: value.Value{Type: value.Int, Num: 7}, Status: Present, From: state.MinTime, To: 5, CompleteSince: state.MinTime, RelativeError: 0.01}).AppendJSON(nil)
	if want := `{"value":7,"status":"PRESENT","from":null,"to":5,"exact":false,"relative_error":0.01}`; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What other answers covered changes nothing, however many they were.
func TestCoveragesOfOtherAnswers(t *testing.T) {
	var others Coverages
	for round := range 3 {
		for i := range int64(40) {
			a := Answer{Status: Present, From: state.MinTime, To: 5 * (i % 10), Exact: i%3 == 0, CompleteSince: state.MinTime}
			if i%2 == 0 {
				a.From = i % 4
			}
			if got, want := string(a.AppendJSONAfter(nil, &others)), string(a.AppendJSON(nil)); got != want {
				t.Fatalf("round %d, answer %d: %s, want %s", round, i, got, want)
			}
		}
		if round == 1 {
			others.Reset()
		}
	}
}
