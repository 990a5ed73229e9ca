package deadletter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/state"
)

// A copy is for the series that have passed the original at offset 120 without counting it.
func TestSeriesThatLackAnEvent(t *testing.T) {
	in := state.Partition{Topic: "tx", ID: 1}
	ever := fmt.Sprintf("%d;", state.MinTime)
	filled := func(ranges ...string) func(*testing.T, *passed) {
		return func(t *testing.T, p *passed) { p.fill(t, &state.Fill{}, "fills", in, ranges...) }
	}
	skipped := []*backfill.Skipped{
		{Topic: "tx", Partition: 1, Offsets: []int64{7, 120}, Series: []string{"fills", "other"}},
		{Topic: "tx", Partition: 2, Offsets: []int64{120}, Series: []string{"fills"}},
	}
	for name, c := range map[string]struct {
		state   func(*testing.T, *passed)
		skipped []*backfill.Skipped
		want    string
	}{
		"no fill":                                 {func(*testing.T, *passed) {}, nil, "fills lives"},
		"a fill reads the original":               {filled(ever+"0-121", ever+"0-121"), nil, "lives"},
		"and could not use it":                    {filled(ever+"0-121", ever+"0-121"), skipped[:1], "fills lives"},
		"and could not use another":               {filled(ever+"0-121", ever+"0-121"), skipped[1:], "lives"},
		"a fill ends before it":                   {filled(ever+"0-120", ever+"0-120"), nil, "fills lives"},
		"a fill begins after it":                  {filled("5;121-200", "5;121-200"), nil, "fills lives"},
		"its start is not known":                  {filled(";-200", ";-200"), nil, "lives"},
		"a fill reads it in one shard":            {filled(ever+"0-119", ever+"0-121"), nil, "lives"},
		"and in some slices":                      {filled(ever+"0-119", ever+"0-119+121/3"), nil, "lives"},
		"live events of all feed it":              {filled(ever, ever), nil, "fills lives"},
		"between two ranges":                      {filled(ever+"0-100,150-200", ever+"0-100,150-200"), nil, "fills lives"},
		"a plan without it has the partition":     {filled(ever+"0-50,110-@1000", ever+"0-50,110-@1000"), nil, "lives"},
		"no plan with it has taken the partition": {filled("", ""), nil, "lives"},
		"it was given up":                         {filled("!", "!"), nil, "lives"},
		"it was given up, and a part goes on": {func(t *testing.T, p *passed) {
			filled("!", "!")(t, p)
			filled(ever+"0-100", ever+"0-100")(t, p)
		}, nil, "fills lives"},
		"it is of another topic": {func(t *testing.T, p *passed) {
			p.fill(t, &state.Fill{}, "fills", state.Partition{Topic: "logins"}, ever)
		}, nil, "lives"},
		"files have it": {func(t *testing.T, p *passed) {
			p.fill(t, &state.Fill{Cut: &state.Cut{Topic: "tx", Ends: "0:90 1:121"}}, "fills", in, "5;121-200", "5;121-200")
		}, nil, "lives"},
		"files end before it": {func(t *testing.T, p *passed) {
			p.fill(t, &state.Fill{Cut: &state.Cut{Topic: "tx", Ends: "0:121 1:120"}}, "fills", in, "5;121-200", "5;121-200")
		}, nil, "fills lives"},
		"an old plan": {func(_ *testing.T, p *passed) {
			p.keep("tx", "older")
			p.history.PlanEpochs[1].Last = 5
		}, nil, "fills lives older"},
		"a plan of another topic": {func(_ *testing.T, p *passed) { p.keep("logins", "login") }, nil, "fills lives"},
		"a plan that is lost, and no longer applied": {func(_ *testing.T, p *passed) {
			p.history.PlanEpochs = append(p.history.PlanEpochs, state.PlanEpoch{Topic: "tx", Version: "lost", Last: 5})
		}, nil, "fills lives"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPassed()
			p.keep("tx", "lives", "fills")
			c.state(t, p)
			l := &Letter{Source: RecordID{"tx", 1, 120}}
			got, err := newPassage(t.Context(), p, []*Letter{l}, c.skipped)
			if err != nil {
				t.Fatal(err)
			}
			if lacking := strings.Join(got.lacking(l), " "); lacking != c.want {
				t.Errorf("got %q, want %q", lacking, c.want)
			}
		})
	}
}

// Definitions change between two reads: a part of a fill takes over its ranges.
func TestPassageDuringAChange(t *testing.T) {
	in := state.Partition{Topic: "tx", ID: 1}
	p := newPassed()
	p.keep("tx", "fills")
	p.fill(t, &state.Fill{}, "fills", in, fmt.Sprintf("%d;0-100", state.MinTime))
	whole := p.history.Fills[0].Fill.ID
	p.meanwhile = func() {
		p.fill(t, &state.Fill{}, "fills", in, fmt.Sprintf("%d;0-100", state.MinTime))
		p.fillings[whole][in][0] = state.Filling{Known: true, Broken: true}
	}
	l := &Letter{Source: RecordID{"tx", 1, 120}}
	got, err := newPassage(t.Context(), p, []*Letter{l}, nil)
	if err != nil || len(got.lacking(l)) != 1 {
		t.Errorf("got %q, error %v; want the series, which has passed the record live", got.lacking(l), err)
	}
}

// A copy that could not be used either has a letter of its own. The next copy is for the series that have counted neither
// the original, at 120, nor the first copy, at 150.
func TestSeriesThatLackAnEventAndItsCopy(t *testing.T) {
	in := state.Partition{Topic: "tx", ID: 1}
	p := newPassed()
	p.keep("tx", "lives", "early", "among", "later", "never", "first", "twice")
	ever := fmt.Sprintf("%d;", state.MinTime)
	for series, ranges := range map[string]string{
		"early": "0-110",         // it has passed both live
		"among": "0-130",         // its fill has counted the original, before it was replayed
		"later": "0-160",         // its fill has counted the original, and was not meant by the copy
		"never": "0-160",         // its fill could use neither
		"first": "0-160",         // its fill could not use the original, and was not meant by the copy
		"twice": "0-110,140-160", // it missed the original, and its fill has counted the copy, which was meant for it
	} {
		p.fill(t, &state.Fill{}, series, in, ever+ranges)
	}
	skipped := []*backfill.Skipped{
		{Topic: "tx", Partition: 1, Offsets: []int64{120, 150}, Series: []string{"never"}},
		{Topic: "tx", Partition: 1, Offsets: []int64{120}, Series: []string{"first"}},
	}
	for _, c := range []struct {
		timestamp int64 // of the copy
		want      string
	}{
		{1000, "early first lives never"},
		{2000, "early lives never"}, // a fill counts a copy with a timestamp of its own if it cannot use the original
	} {
		l := &Letter{Source: RecordID{"tx", 1, 150}, Timestamp: c.timestamp, Copies: []*record.Copy{
			{Partition: in, Offset: 120, Timestamps: []int64{1000}, Series: []string{"early", "lives", "twice"}},
		}}
		got, err := newPassage(t.Context(), p, []*Letter{l}, skipped)
		if err != nil {
			t.Fatal(err)
		}
		if lacking := strings.Join(got.lacking(l), " "); lacking != c.want {
			t.Errorf("a copy of %d: got %q, want %q", c.timestamp, lacking, c.want)
		}
	}
}

// A replayed record keeps what its headers say of earlier copies, as far as that fits together.
func TestReplayOfACopy(t *testing.T) {
	f := newFixture(t)
	f.topic.Namespace = "shop"
	at := func(text string) string { return fmt.Sprintf(text, f.source) }
	f.setAside(letter{source: f.at(1, 9), reason: "wrong_type", value: "a", copies: []string{
		"yes", "shop other/1/3 1000 live1", at("shop %s/1/3 1000 live1"), at("shop %s/1/9 1000,2000 live1"), at("shop %s/1/7 1000,2000 "), at("shop %s/1/8 1000,2000 "),
	}})
	f.replay()
	var got []string
	for _, h := range f.records()[0].Headers {
		if h.Key == record.CopyHeader {
			got = append(got, string(h.Value))
		}
	}
	// The second copy, at offset 9, was not meant for live1, which had missed the first, at offset 7.
	if want := fmt.Sprintf("shop %s/1/9 1000,2000,%d live1", f.source, began.UnixMilli()); len(got) != 3 || got[2] != want {
		t.Errorf("got %q, want %s last", got, want)
	}
}

// Nothing is replayed while it is unknown who lacks it.
func TestReplayOfUnknownPassage(t *testing.T) {
	f := newFixture(t)
	f.setAside(letter{source: f.at(0, 1), reason: "wrong_type", value: "a"})
	for _, c := range []struct {
		change func(*state.History)
		want   string
	}{
		{func(h *state.History) { h.Missing = func(*state.Read) error { return nil } },
			"not every server of the store answers, so it is unknown which features lack the events: try again when all do"},
		{func(h *state.History) { h.Plans = nil },
			"the plan plan0 of topic " + f.source + " cannot be read, so it is unknown which features lack the events: try again"},
		{func(h *state.History) { h.PlanEpochs = nil },
			"the namespace has applied nothing of topic " + f.source + ": its state is in another namespace, or in another store"},
		{func(h *state.History) {
			h.Fills = []state.FillEpoch{{Topic: f.source, Fill: &state.Fill{Cut: &state.Cut{Ends: "0:x"}}}}
		}, `"0:x" is not the offset at which a partition is cut`},
	} {
		changed := &passed{history: f.state.history}
		c.change(&changed.history)
		for name, run := range map[string]func(*Replay) (Summary, error){
			"replay":  func(r *Replay) (Summary, error) { return r.Run(f.context()) },
			"preview": func(r *Replay) (Summary, error) { return r.Preview(f.context()) },
		} {
			if _, err := run(&Replay{Topic: f.topic, State: changed, Producer: f.options()}); err == nil || err.Error() != c.want {
				t.Errorf("%s: got error %v, want %s", name, err, c.want)
			}
		}
	}
	if n := len(f.events()); n != 0 {
		t.Errorf("%d events were replayed", n)
	}
}

// Namespaces may share their dead letters. Each replays its own.
func TestReplayOfTwoNamespaces(t *testing.T) {
	f := newFixture(t)
	f.setAside(
		letter{namespace: "blue", source: f.at(0, 1), reason: "wrong_type", value: "a"},
		letter{namespace: "green", source: f.at(0, 1), reason: "wrong_type", value: "a"},
		letter{source: f.at(0, 2), reason: "wrong_type", value: "b"}, // names none
	)
	for _, step := range []struct{ namespace, want string }{
		{"blue", "map[wrong_type:1] map[" + string(Foreign) + ":2]"},
		{"blue", "map[] map[" + string(Foreign) + ":2 replayed before:1]"},
		{"green", "map[wrong_type:1] map[" + string(Foreign) + ":2]"},
	} {
		f.topic.Namespace = step.namespace
		if got := f.replay(); got != step.want {
			t.Errorf("%s: got %s, want %s", step.namespace, got, step.want)
		}
	}
}

// What fills of the namespace have skipped is read from the topic of dead letters, where it is no letter.
func TestReplayOfWhatFillsSkipped(t *testing.T) {
	f := newFixture(t)
	f.topic.Namespace = "shop"
	f.state.keep(f.source, "fill1", "fill2", "fill3")
	for _, series := range []string{"fill1", "fill2", "fill3"} {
		f.state.fill(t, &state.Fill{}, series, state.Partition{Topic: f.source}, fmt.Sprintf("%d;0-9", state.MinTime))
	}
	note := func(namespace, series string) string {
		return fmt.Sprintf(`{"namespace": %q, "topic": %q, "partition": 0, "offsets": [3, 4], "series": [%q]}`, namespace, f.source, series)
	}
	for _, text := range []string{note("shop", "fill1"), note("other", "fill2"), note("shop", "fill3")[1:], "{}"} {
		rec := &kgo.Record{Topic: f.topic.Name, Value: []byte(text)}
		seal(rec, f.topic.Seal, []record.Header{{Key: backfill.HeaderSkipped, Value: []byte("0")}}, 1)
		if err := f.client.ProduceSync(f.context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	f.setAside(letter{source: f.at(0, 4), reason: "wrong_type", value: "a"}, letter{source: f.at(0, 5), reason: "wrong_type", value: "b"})
	if letters, err := List(f.context(), f.topic, &Filter{}); err != nil || len(letters) != 2 {
		t.Errorf("got %d letters, error %v; want 2", len(letters), err)
	}
	f.replay()
	for i, want := range []string{" fill1,live1", " live1"} {
		rec := f.records()[i]
		if got := string(rec.Headers[0].Value); !strings.HasSuffix(got, want) {
			t.Errorf("%s counts in %s, want%s", rec.Value, got, want)
		}
	}
}
