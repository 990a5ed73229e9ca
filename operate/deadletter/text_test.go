package deadletter

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features/record"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// noon is 2026-01-01 at noon, in ms.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixMilli()

var letters = []*Letter{
	{
		At: RecordID{"dead", 0, 3}, SetAside: noon, Source: RecordID{"tx", 1, 40}, Timestamp: noon - 1500, Namespace: "shop", Reason: "wrong_type",
		Message: "stream pay: amount: a decimal is wanted", Stream: "pay", Replays: 1, Replayed: true, Sealed: true,
	},
	{
		At: RecordID{"dead", 1, 12}, SetAside: noon + 60_000, Source: RecordID{"tx", 0, 7}, Timestamp: noon, Reason: "malformed",
		Message: "not\nJSON", Sealed: true,
	},
	{At: RecordID{"dead", 1, 13}, SetAside: noon + 61_000, Source: RecordID{"tx", 0, 8}, Timestamp: noon, Reason: "wrong_type", Stream: "pay", Sealed: true},
}

func written(write func(*strings.Builder)) string {
	var out strings.Builder
	write(&out)
	return out.String()
}

func TestLettersInWords(t *testing.T) {
	want := strings.Join([]string{
		`DEAD LETTER  SOURCE   SET ASIDE             REASON      STREAM  REPLAYED  MESSAGE`,
		`dead/0/3     tx/1/40  2026-01-01T12:00:00Z  wrong_type  pay     yes       stream pay: amount: a decimal is wanted`,
		`dead/1/12    tx/0/7   2026-01-01T12:01:00Z  malformed   -       no        "not\nJSON"`,
		`dead/1/13    tx/0/8   2026-01-01T12:01:01Z  wrong_type  pay     no        `,
		``,
		`3 dead letters: 2 wrong_type, 1 malformed, 1 of them replayed`,
		``,
	}, "\n")
	got := written(Letters(letters).WriteText)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	others := Letters{letters[0], {Reason: "malformed", Namespace: "other"}, {Reason: "malformed"}}
	if got := written(others.WriteText); strings.Count(got, "  unknown  ") != 2 ||
		!strings.HasSuffix(got, "\n3 dead letters: 2 malformed, 1 wrong_type, 1 of them replayed; of 2 it is unknown, as this namespace has not sealed them\n") {
		t.Errorf("letters of another namespace:\n%s", got)
	}
	got = written(Letters(nil).WriteText)
	if want := "0 dead letters, 0 of them replayed\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// inJSON writes letters as commands do.
func inJSON(t *testing.T, letters Letters) string {
	t.Helper()
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(letters); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestLettersInJSON(t *testing.T) {
	want := `{
  "letters": [
    {
      "at": {
        "topic": "dead",
        "partition": 0,
        "offset": 3
      },
      "set_aside": 1767268800000,
      "source": {
        "topic": "tx",
        "partition": 1,
        "offset": 40
      },
      "timestamp": 1767268798500,
      "namespace": "shop",
      "reason": "wrong_type",
      "message": "stream pay: amount: a decimal is wanted",
      "stream": "pay",
      "replays": 1,
      "replayed": true,
      "sealed": true
    }
  ],
  "reasons": {
    "wrong_type": 1
  },
  "replayed": 1
}
`
	got := inJSON(t, letters[:1])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = inJSON(t, nil)
	if want := "{\n  \"letters\": [],\n  \"reasons\": {},\n  \"replayed\": 0\n}\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWriteText(t *testing.T) {
	l := *letters[0]
	l.Key, l.Value = []byte("u1"), []byte(`{"amount": "ä"}`)
	l.Headers = []record.Header{{Key: "trace", Value: []byte{0xff, 'a'}}, {Key: "none"}}
	want := strings.Join([]string{
		`dead letter  dead/0/3, set aside 2026-01-01T12:00:00Z`,
		`source       tx/1/40, of 2026-01-01T11:59:58.5Z`,
		`namespace    shop`,
		`stream       pay`,
		`reason       wrong_type: stream pay: amount: a decimal is wanted`,
		`replayed     yes; 1 time before`,
		`key          "u1"`,
		`header       trace: "\xffa"`,
		`header       none: none`,
		`value        16 bytes`,
		`{"amount": "ä"}`,
		``,
	}, "\n")
	if diff := cmp.Diff(want, written(l.WriteText)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.Headers, l.Key, l.Value = nil, nil, []byte{0, 'a', 0x1b}
	want = strings.Join([]string{
		`key          none`,
		`value        3 bytes`,
		`00000000  00 61 1b                                          |.a.|`,
		``,
	}, "\n")
	if got := written(l.WriteText); !strings.HasSuffix(got, want) {
		t.Errorf("got %s\nwant it to end\n%s", got, want)
	}
	l.Value = nil
	if got := written(l.WriteText); !strings.HasSuffix(got, "value        none\n") {
		t.Errorf("got %s\nwant it to end with no value", got)
	}
}

func TestSummary(t *testing.T) {
	s := Summary{Replayed: map[string]int{"wrong_type": 1, "missing_field": 3}, Passed: map[Why]int{Counted: 1, Before: 2, Foreign: 1, NoTopic: 1}}
	want := "replayed 4 events: 3 missing_field, 1 wrong_type\n" +
		"skipped 1 dead letter of another namespace, or not sealed by this one: replay them with the settings of theirs\n" +
		"skipped 2 dead letters replayed before\n" +
		"skipped 1 dead letter late, so counted already by the features that they are not too late for\n" +
		"skipped 1 dead letter of a topic or partition that is not there; with ACLs, allow Describe on the topic\n"
	if diff := cmp.Diff(want, written(func(out *strings.Builder) { s.WriteText(out, false) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := written(func(out *strings.Builder) { Summary{}.WriteText(out, true) }), "would replay 0 events\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFilter(t *testing.T) {
	second := time.UnixMilli(noon + 60_000)
	for _, c := range []struct {
		filter Filter
		want   string // the letters selected
	}{
		{Filter{}, "012"},
		{Filter{Reasons: []string{"wrong_type"}}, "02"},
		{Filter{Streams: []string{"pay", "login"}}, "02"},
		{Filter{Topics: []string{"other"}}, ""},
		{Filter{Since: second}, "12"},
		{Filter{Until: second}, "0"},
		{Filter{Since: second, Until: second.Add(time.Second)}, "1"},
		{Filter{IDs: []RecordID{{"tx", 1, 40}, {"dead", 1, 12}}}, "01"},
		{Filter{IDs: []RecordID{{"tx", 1, 40}}, Reasons: []string{"late"}}, ""},
	} {
		got := ""
		for i, l := range letters {
			if c.filter.matches(l) {
				got += string(rune('0' + i))
			}
		}
		if got != c.want {
			t.Errorf("%+v takes %q, want %q", c.filter, got, c.want)
		}
	}
	err := (&Filter{Reasons: []string{"wrong"}}).Check()
	want := `"wrong" is not a reason of a dead letter; there are malformed, wrong_type, missing_field, invalid_utf8, ` +
		`missing_timestamp, bad_timestamp, future_timestamp, expression, oversized, unusable_schema, broken_batch, defect, late`
	if err == nil || err.Error() != want {
		t.Errorf("\ngot  %v\nwant %s", err, want)
	}
}

func TestParseRecordID(t *testing.T) {
	for _, text := range []string{"", "a", "a/1", "/1/2", "a/x/1", "a/-1/2", "a/1/-2", "a/1/2/3", "a/99999999999/1"} {
		_, err := ParseRecordID(text)
		want := `"` + text + `" does not name a record: write topic/partition/offset, such as transactions/3/1040`
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if p, err := ParseRecordID("a.b-c/3/1040"); err != nil || p != (RecordID{"a.b-c", 3, 1040}) {
		t.Errorf("got %v, error %v; want a.b-c/3/1040", p, err)
	}
}

func TestFindAndList(t *testing.T) {
	f := newFixture(t)
	f.setAside(
		letter{source: f.at(0, 1), reason: "wrong_type", stream: "s", value: "a", second: 1,
			headers: []kgo.RecordHeader{{Key: "weir-stream", Value: []byte("theirs")}, {Key: "h", Value: []byte("v")}}},
		letter{partition: 1, source: f.at(0, 2), reason: "late", stream: "s", value: "b"},
	)
	// Records that are not dead letters are skipped.
	foreign := &kgo.Record{Topic: f.topic.Name, Value: []byte("hello")}
	if err := f.client.ProduceSync(f.context(), foreign).FirstErr(); err != nil {
		t.Fatal(err)
	}
	found, err := List(f.context(), f.topic, &Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].Reason != "late" || found[1].Reason != "wrong_type" || found[1].Value != nil {
		t.Errorf("found %v, want a late and then a wrong_type letter", found)
	}
	for _, id := range []RecordID{f.at(0, 1), {f.topic.Name, 0, 0}} {
		found, err := Find(f.context(), f.topic, id)
		if err != nil || len(found) != 1 {
			t.Fatalf("found %v, error %v; want one letter", found, err)
		}
		l := found[0]
		if diff := cmp.Diff([]record.Header{{Key: "weir-stream", Value: []byte("theirs")}, {Key: "h", Value: []byte("v")}}, l.Headers); diff != "" || string(l.Value) != "a" ||
			string(l.Key) != "key a" || l.Stream != "s" || l.Message != "it is wrong_type" {
			t.Errorf("the letter is not as it was set aside: %+v", l)
		}
	}
	if found, err := Find(f.context(), f.topic, f.at(0, 9)); err != nil || found != nil {
		t.Errorf("found %v, error %v; want none", found, err)
	}
}
