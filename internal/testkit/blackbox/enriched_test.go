package blackbox

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

// Each event must be enriched once and in order, with what its partition had up to it.
func TestEnriched(t *testing.T) {
	r := defined.Registry(t, `
streams:
  login:
    topic: logins
    timestamp: at
    fields: {user: string}
    enrich: {service: known, topic: enriched}
features: {logins: "COUNT(1h, login, user)"}
services: {known: [logins]}
`)
	event := func(offset int64) *kgo.Record {
		return &kgo.Record{Topic: "logins", Offset: offset, Timestamp: time.UnixMilli(1000 + offset), Value: fmt.Appendf(nil, `{"at":%d,"user":"u"}`, 1000+offset)}
	}
	in := []*kgo.Record{event(0), event(1), {Topic: "logins", Offset: 2, Value: []byte("{")}, event(3)}
	late := event(0)
	late.Timestamp = late.Timestamp.Add(time.Hour + time.Second)
	enriched := func(of *kgo.Record, value any, status string) *kgo.Record {
		e := *of
		e.Value = fmt.Appendf(nil, `{"event":%s,"features":{"logins":{"value":%v,"status":%q,"exact":%t}}}`, e.Value, value, status, status == "PRESENT")
		for name, value := range map[string]string{sourceTopic: "logins", sourcePartition: "0", sourceOffset: strconv.FormatInt(of.Offset, 10)} {
			e.Headers = append(e.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
		return &e
	}
	first, second, last := enriched(event(0), 1, "PRESENT"), enriched(event(1), 2, "PRESENT"), enriched(event(3), 3, "PRESENT")
	another := enriched(event(1), 2, "PRESENT")
	another.Key = []byte("k")
	nowhere := func(*features.Feature) bool { return false }
	for name, c := range map[string]struct {
		in              []*kgo.Record // the common ones if there are none
		out             []*kgo.Record
		partly          bool
		repeated, wrong int
		compared        int
	}{
		"right":                   {out: []*kgo.Record{first, second, last}, compared: 3},
		"written again":           {out: []*kgo.Record{first, second, first, second, last}, repeated: 2, compared: 3},
		"another value":           {out: []*kgo.Record{first, enriched(event(1), 1, "PRESENT"), last}, wrong: 1, compared: 3},
		"another key":             {out: []*kgo.Record{first, another, last}, wrong: 1, compared: 3},
		"incomplete":              {out: []*kgo.Record{first, enriched(event(1), 1, "INCOMPLETE"), last}, wrong: 1, compared: 3},
		"incomplete, as may be":   {out: []*kgo.Record{first, enriched(event(1), 1, "INCOMPLETE"), last}, partly: true, compared: 2},
		"one is missing":          {out: []*kgo.Record{first, last}, wrong: 1, compared: 1},
		"the last one is missing": {out: []*kgo.Record{first, second}, wrong: 1, compared: 2},
		"one too many":            {out: []*kgo.Record{first, second, last, enriched(event(4), 4, "PRESENT")}, wrong: 1, compared: 3},
		"too late":                {in: []*kgo.Record{late}, out: []*kgo.Record{enriched(late, "null", "OUTSIDE_MAX_AGE")}},
		"too late, and counted":   {in: []*kgo.Record{late}, out: []*kgo.Record{enriched(late, 1, "PRESENT")}, wrong: 1},
		"without a source":        {out: []*kgo.Record{event(0)}, wrong: 1},
	} {
		comparison := Comparison{T: &quiet{TB: t}, Model: model.New(r), Partly: c.partly}
		stream, _ := r.Stream("login")
		if c.in == nil {
			c.in = in
		}
		repeated := comparison.Enriched(r, stream, map[int32][]*kgo.Record{0: c.in}, map[int32][]*kgo.Record{0: c.out}, nowhere)
		if repeated != c.repeated || comparison.Wrong != c.wrong || comparison.Compared != c.compared {
			t.Errorf("%s: %d are repeated, %d of %d differ; want %d, %d of %d", name, repeated, comparison.Wrong, comparison.Compared, c.repeated, c.wrong, c.compared)
		}
	}
}
