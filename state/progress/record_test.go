package progress

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/state"
)

// record makes a record of fields.
func record(t testing.TB, fields map[string]string) *Record {
	t.Helper()
	r, err := Of(maps.Clone(fields), 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var whole = map[string]string{
	"tx@v2/0": "12+40/3:5:log", "tx@v2/1": "7:-1:", "logins/0": "0:0:other", "tx@v1": "900", "tx@!": "-5", "since:tx/0": "17", "topic:tx": "log:2",
	"topic:logins": ":1", "log:log": "cluster/id", "log:other": "/", "range:f:tx/0": "99;1-5+9/2,7-@4", "fill:f:tx/0": "3:1:log", "range:g:tx/1": ";-8", "range:k:tx/1": "7;;9:-2", "range:l:tx/1": ";-@8;9:2",
	"range:h:tx/1": "!", "range:i:tx/1": "-9223372036854775808;", "archive:cut:a": "10;-3", "fill:f:archive:a/0": "4:-1:moved", "now": "901", "lag": "0",
	"evicted": "run:5", "ahead": "5:3", "begun": "1", "frozen": "token", "secret": "c2VjcmV0", "change": "x",
}

// A record that no step has changed is written as it was read.
func TestFieldsAreWrittenAsTheyWereRead(t *testing.T) {
	r := record(t, whole)
	if c := r.Change(); c != nil {
		t.Errorf("nothing was changed, and %+v is", c)
	}
	if diff := cmp.Diff(whole, r.fields()); diff != "" {
		t.Errorf("the fields differ (-read +written):\n%s", diff)
	}
}

// A field that no step writes is an error that names it.
func TestFieldsThatNoStepWrites(t *testing.T) {
	for name, values := range map[string][]string{
		"tx@v/0": {"", "x", "5", "-1:0:", "5:x:", "5+3/2:0:", "5:0:a:b"}, "tx@v/x": {"5:0:"}, "/": {"5:0:"}, "tx@v": {"", "noon"}, "since:tx/0": {"", "1.5"},
		"since:tx": {"1"}, "topic:tx": {"", "log"}, "range:f:tx/0": {"", "7", "a;1-2", "7;1", "7;1-b", "7;x-2", "7;0+5/8", "7;5+5/8-9", "7;0-9+/8", "7;+5/8-9", "7;1-@x", "7;2-1", "7;;", "7;;5", "7;;x:5", "7;1-2;5:x", "7;1+5/8-4"},
		"range:f": {"7;"}, "fill:f:tx/0": {"", "bad"}, "fill:f": {"1:0:"}, "archive:c:a": {"", "1", "1;x"}, "fill:f:archive:a/0": {"", "x"}, "now": {"", "x"}, "lag": {"x"}, "ahead": {"5", "x:5"},
		"/0": {"5:0:"}, "since:a:b/0": {"1"}, "fill::tx/0": {"5:0:"}, "fill:f:a:b/0": {"5:0:"}, "range::tx/0": {"7;"},
		"fill::archive:a/0": {"5:0:"}, "fill:f:archive:/0": {"5:0:"}, "fill:::archive:": {"5:0:"}, "fill:f:archive:a": {"5:0:"}, "fill:f:archive:a/1": {"5:0:"},
		"archive:c": {"1;2"}, "archive::a": {"1;2"}, "archive:c:a:b": {"1;2"},
	} {
		for _, value := range values {
			_, err := Of(map[string]string{name: value}, 0)
			if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("the field %s of the progress is %q: ", name, value)) {
				t.Errorf("%s = %q: error %v", name, value, err)
			}
		}
	}
	if _, err := Of(map[string]string{"tx@v1/0": "5:0:", "tx@v2/0": "6:0:"}, 0); err == nil || !strings.HasSuffix(err.Error(), errTwice.Error()) {
		t.Errorf("two plans have a partition: error %v", err)
	}
}

// FuzzFields makes a record of any field. What is accepted stays what it is once it was written.
func FuzzFields(f *testing.F) {
	for name, value := range whole {
		f.Add(name, value)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		r, err := Of(map[string]string{name: value}, 0)
		if err != nil {
			return
		}
		written := r.fields()
		again, err := Of(maps.Clone(written), 0)
		if err != nil {
			t.Fatalf("%q = %q is written as %q, which is an error: %v", name, value, written, err)
		}
		if diff := cmp.Diff(written, again.fields()); diff != "" {
			t.Errorf("%q = %q is written in two ways:\n%s", name, value, diff)
		}
		for k, f := range r.fillings {
			if filled, all := new(r.Filling(&state.Fill{ID: k.fill}, k.partition)).Share(); filled < 0 || filled > all {
				t.Errorf("of the filling %q = %q, %d of %d are filled", name, value, filled, all)
			}
			_ = f.finished()
		}
	})
}

var tx = state.Partition{Topic: "tx"}

// A change is refused if a step has changed the record since it was read, or if a position has moved that it was decided on; other
// positions may move.
func TestChangesAreRefused(t *testing.T) {
	fields := map[string]string{"tx@v1/0": "5:0:", "tx@v1/1": "5:0:", "now": "7", ChangeField: "a"}
	claim := func(fields map[string]string) (*Change, string) {
		r := record(t, fields)
		if got := r.Claim([]state.Partition{tx}, NewClaimant("v2", nil, &state.Known{})); got[0].At.Offset != 5 {
			t.Fatalf("claimed at %v", got[0].At)
		}
		return r.Change(), r.LastChange()
	}
	for name, test := range map[string]struct {
		since map[string]string // what is written between
		made  bool
	}{
		"nothing":                {nil, true},
		"its position moved":     {map[string]string{"tx@v1/0": "6:0:"}, false},
		"another one moved":      {map[string]string{"tx@v1/1": "6:0:", "now": "8"}, true},
		"another step":           {map[string]string{ChangeField: "b"}, false},
		"a step without a trace": {map[string]string{"tx@v1": "9", ChangeField: "b"}, false},
	} {
		c, last := claim(fields)
		now := maps.Clone(fields)
		maps.Copy(now, test.since)
		before := maps.Clone(now)
		if made := c.Make(now, last, "c", 42); made != test.made || !made && !maps.Equal(now, before) {
			t.Errorf("%s: made %v, want %v; the record is %v", name, made, test.made, now)
		}
		if test.made && (now["tx@v2/0"] != "5:0:" || now["since:tx/0"] != "42" || now["tx@v1"] != "7" || now[ChangeField] != "c" || now["tx@v1/0"] != "") {
			t.Errorf("%s: the record is %v", name, now)
		}
	}
}

// Claimants, placements and batches that move positions take turns in any order, each with what it read some time before. A
// partition is always one plan's, its position goes where a step or a batch of its plan led it, and what was read too long ago
// changes nothing.
func TestInterleavedSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fields := map[string]string{}
		type read struct {
			change *Change
			last   string
			offset int64 // that the partition has after the change
			plan   string
		}
		var reads []read
		offset, plan, number := int64(-1), "", 0
		t.Repeat(map[string]func(*rapid.T){
			"read to claim": func(t *rapid.T) {
				r, err := Of(maps.Clone(fields), 0)
				if err != nil {
					t.Fatal(err)
				}
				version := rapid.SampledFrom([]string{"v1", "v2", "v3"}).Draw(t, "version")
				claimed := r.Claim([]state.Partition{tx}, NewClaimant(version, nil, &state.Known{}))[0]
				if claimed.At.Offset != offset {
					t.Fatalf("claimed at %v, want %d", claimed.At, offset)
				}
				if c := r.Change(); c != nil {
					reads = append(reads, read{c, r.LastChange(), offset, version})
				}
			},
			"read to place": func(t *rapid.T) {
				r, err := Of(maps.Clone(fields), 0)
				if err != nil {
					t.Fatal(err)
				}
				to := rapid.Int64Range(0, 100).Draw(t, "to")
				w := state.Placement{Partition: tx.WithPlan("v1"), From: []state.Position{r.Position(tx)}, To: []state.Position{{Offset: to, Epoch: -1}}}
				if r.Place(0, []state.Placement{w}) == 0 && w.From[0] != w.To[0] {
					t.Fatal("not placed")
				}
				if c := r.Change(); c != nil {
					holder := plan
					if plan == "" {
						holder = "v1"
					}
					reads = append(reads, read{c, r.LastChange(), to, holder})
				}
			},
			"change": func(t *rapid.T) {
				if len(reads) == 0 {
					t.Skip("nothing was read")
				}
				i := rapid.IntRange(0, len(reads)-1).Draw(t, "which")
				before := maps.Clone(fields)
				number++
				if reads[i].change.Make(fields, reads[i].last, fmt.Sprint(number), 0) {
					offset, plan = reads[i].offset, reads[i].plan
				} else if !maps.Equal(before, fields) {
					t.Fatalf("a refused change has made %v of %v", fields, before)
				}
			},
			"batch": func(t *rapid.T) {
				version := rapid.SampledFrom([]string{"v1", "v2", "v3"}).Draw(t, "version")
				name := PositionField(tx.WithPlan(version))
				if at, err := state.ParsePosition(fields[name]); err == nil && at.Exists() {
					if version != plan {
						t.Fatalf("%s has the partition of %s", version, plan)
					}
					offset = at.Offset + 1
					fields[name] = at.To(offset).String()
				}
			},
			"": func(t *rapid.T) {
				r, err := Of(maps.Clone(fields), 0)
				if err != nil {
					t.Fatal(err)
				}
				if h := r.Held()[tx]; (h == nil) != (plan == "") || h != nil && (h.Plan != plan || h.At.Offset != offset) {
					t.Fatalf("the partition is %+v, want at %d of %q", h, offset, plan)
				}
			},
		})
	})
}

// Of more past plans than a record keeps, the oldest become a gap.
func TestOldEpochsBecomeAGap(t *testing.T) {
	fields := map[string]string{"tx@now/0": "5:0:", "now": "999"}
	for i := range maxEpochs + 2 {
		fields[fmt.Sprintf("tx@v%d", i)] = fmt.Sprint(100 + i)
	}
	r := record(t, fields)
	r.Claim([]state.Partition{tx}, NewClaimant("next", nil, &state.Known{}))
	if len(r.ends) != maxEpochs+1 || r.ends[Epoch{"tx", state.Gap}] != 102 || r.ends[Epoch{"tx", "v3"}] != 103 || r.ends[Epoch{"tx", "now"}] != 999 {
		t.Errorf("%d epochs are left, and a gap until %d", len(r.ends), r.ends[Epoch{"tx", state.Gap}])
	}
}

// How long a plan has a partition is counted from its claim, and unknown without one.
func TestOwnedMs(t *testing.T) {
	for _, test := range []struct {
		fields map[string]string
		want   int64
	}{
		{map[string]string{"tx@v1/0": "5:0:", "since:tx/0": "999000"}, 1000},
		{map[string]string{"tx@v1/0": "5:0:", "since:tx/0": "1000500"}, 0}, // the clock went back
		{map[string]string{"tx@v1/0": "5:0:"}, math.MaxInt64},
		{map[string]string{"tx@v2/0": "5:0:", "since:tx/0": "5"}, 0},
		{nil, math.MaxInt64},
	} {
		if got := record(t, test.fields).Claim([]state.Partition{tx}, NewClaimant("v1", nil, &state.Known{}))[0].OwnedMs; got != test.want {
			t.Errorf("%v: owned for %d ms, want %d", test.fields, got, test.want)
		}
	}
}

// Only keys that a server has evicted since the record was told are news.
func TestEvictedKeys(t *testing.T) {
	for _, test := range []struct {
		recorded, run string
		keys          int64
		news          bool
	}{
		{"", "a", 0, false}, {"", "a", 5, true}, {"a:5", "a", 5, false}, {"a:5", "a", 6, true}, {"a:5", "b", 0, true}, {"a:5", "b", 5, true}, {"b:0", "b", 0, false},
	} {
		fields := map[string]string{"tx@v1/0": "5:0:", "now": "7"}
		if test.recorded != "" {
			fields["evicted"] = test.recorded
		}
		r := record(t, fields)
		if got := r.Evicted(test.run, test.keys); got != test.news {
			t.Errorf("%+v: news %v", test, got)
		}
		r.Notice(test.run, test.keys, 0)
		if _, gap := r.ends[Epoch{"tx", state.Gap}]; gap != test.news || r.Evicted(test.run, test.keys) {
			t.Errorf("%+v: once it is noticed, the gap is %v, and it is news: %v", test, gap, r.Evicted(test.run, test.keys))
		}
	}
}

// That a clock was ahead concerns what was applied and which fills were known when that is noticed, and no fill of later.
func TestClockAhead(t *testing.T) {
	r := record(t, map[string]string{"tx@v1/0": "5:0:", "now": "7", "range:f:tx/0": "1;2-3", "range:g:tx/0": "1;2-3;100:9"})
	r.Notice("a", 0, 90)
	got := r.fields()
	for name, want := range map[string]string{"ahead": "90:7", "range:f:tx/0": "1;2-3;90:7", "range:g:tx/0": "1;2-3;100:9"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	r.fillings[fillKey{"h", state.Partition{Topic: "tx"}}] = &filling{known: true, begun: true, at: state.NoPosition}
	for id, want := range map[string]state.Ahead{"f": {Clock: 90, Newest: 7}, "g": {Clock: 100, Newest: 9}, "h": {}} {
		if got := r.Filling(&state.Fill{ID: id}, state.Partition{Topic: "tx"}).Ahead; got != want {
			t.Errorf("the fill %s: %+v, want %+v", id, got, want)
		}
	}
	young := record(t, map[string]string{"tx@v1/0": "5:0:"})
	if young.Notice("a", 0, 90); young.Change() != nil {
		t.Error("a shard that has applied nothing has lost nothing")
	}
}

// A claim ends the span of a fill, which batches of the fill apply meanwhile: whether they have passed its start is decided on their
// position.
func TestFillThatMovesWhileItsSpanEnds(t *testing.T) {
	with := &state.Plan{Version: "v2", Retained: map[string]state.Retention{"aaaaa.x": {}}, Topics: map[string][]string{"aaaaa.x": {"tx"}}}
	known := &state.Known{
		Plans: map[string]*state.Plan{"v1": {Version: "v1"}, "v2": with},
		Fills: map[string]*state.Fill{"f": {ID: "f", Columns: map[string][]string{"tx": {"aaaaa.x"}}}},
	}
	for at, want := range map[string]string{"4:-1:": "1;0-5,5-9", "5:-1:": "1;0-5,5-9", "6:-1:": "!"} {
		fields := map[string]string{"tx@v1/0": "9:0:", "range:f:tx/0": "1;0-5,5-@999999", "fill:f:tx/0": "4:-1:"}
		claim := func() bool {
			r := record(t, fields)
			r.Claim([]state.Partition{tx}, NewClaimant("v2", nil, known))
			c, last := r.Change(), r.LastChange()
			fields["fill:f:tx/0"] = at
			return c.Make(fields, last, "c", 0)
		}
		if made := claim(); made != (at == "4:-1:") {
			t.Errorf("a claim read with the fill at 4 is made with it at %s: %v", at, made)
		} else if !made && !claim() {
			t.Error("a claim of what is there is refused")
		}
		if got := fields["range:f:tx/0"]; got != want {
			t.Errorf("with the fill at %s its spans are %s, want %s", at, got, want)
		}
	}
}

// A finished fill forgets what it applied of a log when the partition continues in another one, where the same offsets are of other
// records. What plans without it have there is filled from where they began.
func TestFinishedFillOfAnotherLog(t *testing.T) {
	a, b := state.LogID{Cluster: "c", Topic: "a"}, state.LogID{Cluster: "c", Topic: "b"}
	with := &state.Plan{Version: "v2", Retained: map[string]state.Retention{"aaaaa.x": {}}, Topics: map[string][]string{"aaaaa.x": {"tx"}}}
	known := &state.Known{
		Plans: map[string]*state.Plan{"v1": {Version: "v1"}, "v2": with},
		Fills: map[string]*state.Fill{"f": {ID: "f", Columns: map[string][]string{"tx": {"aaaaa.x"}}}},
	}
	fields := map[string]string{"tx@v2/0": "9:0:" + a.Tag(), "log:" + a.Tag(): "c/a", "topic:tx": a.Tag() + ":1", "range:f:tx/0": "1;0-5", "fill:f:tx/0": "5:-1:" + a.Tag()}
	place := func(offset int64, log state.LogID) map[string]string {
		r := record(t, fields)
		from := []state.Position{{Offset: 9, Log: a.Tag()}}
		w := state.Placement{Partition: tx.WithPlan("v2"), From: from, To: []state.Position{{Offset: offset, Log: log.Tag()}}, Log: log, Partitions: 1, Gap: 7}
		if r.Place(0, []state.Placement{w}) != 1 {
			t.Fatal("it is not placed")
		}
		return r.fields()
	}
	if got := place(20, a); got["range:f:tx/0"] != "1;0-5" || got["fill:f:tx/0"] != "5:-1:"+a.Tag() {
		t.Errorf("further on in its log the fill has %q at %s", got["range:f:tx/0"], got["fill:f:tx/0"])
	}
	fields = place(0, b)
	if at, has := fields["fill:f:tx/0"]; has || fields["range:f:tx/0"] != "1;" {
		t.Errorf("in another log the fill has %q at %q, want that it is done", fields["range:f:tx/0"], at)
	}
	claim := func(version, at string) {
		for name := range fields {
			if strings.HasPrefix(name, "tx@v") && strings.HasSuffix(name, "/0") {
				fields[name] = at + ":0:" + b.Tag()
			}
		}
		r := record(t, fields)
		r.Claim([]state.Partition{tx}, NewClaimant(version, nil, known))
		fields = r.fields()
	}
	claim("v1", "20")
	claim("v2", "30")
	if fields["range:f:tx/0"] != "1;20-30" || fields["fill:f:tx/0"] != "20:-1:"+b.Tag() {
		t.Errorf("after a plan without it the fill has %q at %s, want 20 to 30 at 20 in the other log", fields["range:f:tx/0"], fields["fill:f:tx/0"])
	}
}
