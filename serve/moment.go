package serve

import (
	"bytes"
	"context"
	"math"
	"time"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/value"
)

// maxAhead is how far ahead a question may ask: clocks differ, and a rule may look at the end of a billing period.
// Moments beyond are in the wrong unit.
const maxAhead = 366 * 24 * time.Hour

// inSeconds is greater than any moment in seconds until the year 5138. In milliseconds it is a moment of 1973, which
// has no events.
const inSeconds = 100_000_000_000

// lastYear is the last that RFC 3339 can write.
const lastYear = 9999

// moments are the moments of a question, in milliseconds.
type moments struct {
	now, at int64
	given   bool  // at was given
	dated   bool  // at is the time of an event
	present int64 // the first moment that counts as the present
}

// readMoment reads the key at of a question.
func (q *asked) readMoment(v *fastjson.Value) error {
	at, e := moment(v, q.now)
	if e != nil {
		return e.At("at")
	}
	q.at, q.given = at, true
	return nil
}

// moment reads milliseconds, or RFC 3339.
func moment(v *fastjson.Value, now int64) (int64, *reply.Error) {
	at, ok := parseTime(v.MarshalTo(nil))
	inWords := v.Type() == fastjson.TypeString
	switch {
	case !ok:
		return 0, reply.Errorf(reply.BadMoment, "at must be milliseconds since 1970 or RFC 3339 such as 2018-07-25T05:21:16Z; %s is not%s", reply.Show(v), lostPlus(v))
	case at < 0:
		return 0, reply.Errorf(reply.BadMoment, "at must not lie before 1970; %s does", reply.Show(v))
	case !inWords && at >= 1970 && at <= lastYear && now > inSeconds:
		return 0, reply.Errorf(reply.BadMoment, "at must be milliseconds since 1970 or RFC 3339; %d looks like a year: did you mean \"%d-01-01T00:00:00Z\"?", at, at)
	case !inWords && at > 0 && at < inSeconds && now > inSeconds:
		return 0, reply.Errorf(reply.BadMoment, "at must be milliseconds since 1970; %d looks like seconds: did you mean %d?", at, at*1000)
	case at-now <= maxAhead.Milliseconds():
		return at, nil
	case inWords:
		return 0, reply.Errorf(reply.MomentTooFar, "at lies more than 366 days ahead; in RFC 3339 it is now %s, and at is %s: check the year",
			time.UnixMilli(now).UTC().Format(time.RFC3339), reply.Show(v))
	}
	for unit, name := range map[int64]string{1000: "microseconds", 1_000_000: "nanoseconds"} {
		if at/unit > inSeconds && at/unit-now <= maxAhead.Milliseconds() {
			return 0, reply.Errorf(reply.MomentTooFar, "at must be milliseconds since 1970; %d looks like %s: did you mean %d?", at, name, at/unit)
		}
	}
	return 0, reply.Errorf(reply.MomentTooFar, "at lies more than 366 days ahead; in milliseconds it is now %d, and at is %d", now, at)
}

// lostPlus says what to do about an offset from UTC whose + was not escaped in a URL, where it means a space; empty if
// that is not what is wrong.
func lostPlus(v *fastjson.Value) string {
	if _, ok := parseTime(bytes.Replace(v.MarshalTo(nil), []byte(" "), []byte("+"), 1)); ok {
		return ": in a URL + is written %2B"
	}
	return ""
}

// lostPlus is lostPlus of a value of the key.
func (k key) lostPlus(v *fastjson.Value) string {
	if k.typ != value.Timestamp {
		return ""
	}
	return lostPlus(v)
}

// answerable stands in found.oldest for a feature whose state reaches back to the moment.
const answerable = math.MinInt64

// findOldest finds the features whose state does not reach back to the moment, neither by the wall clock nor by the
// records' clock, which counts in a replay of history.
func (f *found) findOldest(ctx context.Context, q *asked, reader store.Reader) error {
	var clock int64
	asked := false
	for _, p := range q.features {
		keep, oldest := p.Keep.Milliseconds(), int64(answerable)
		if p.Forgets() && q.at < q.now-keep {
			if !asked {
				var err error
				if clock, err = reader.Clock(ctx); err != nil {
					return &storeError{err}
				}
				asked = true
				if clock == 0 || clock > q.now {
					clock = q.now
				}
			}
			if q.at < clock-keep {
				oldest = clock - keep
			}
		}
		f.oldest = append(f.oldest, oldest)
	}
	return nil
}

// storeError is a failure of the store, not of the question.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }
