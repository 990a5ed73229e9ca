package serve

import (
	"context"
	"time"

	"github.com/valyala/fastjson"
)

// maxAhead is how far ahead a question may ask. Nothing is known there; but
// clocks differ, and a rule may look at the end of a billing period. What lies
// beyond is a moment in the wrong unit.
const maxAhead = 366 * 24 * time.Hour

// moment reads the key at of a question: milliseconds, or RFC 3339.
func moment(v *fastjson.Value, now int64) (int64, error) {
	at, ok := parseTime(v.MarshalTo(nil))
	switch {
	case !ok || at < 0:
		return 0, atKey(errorf(BadMoment, "at must be milliseconds since 1970 or RFC 3339 such as 2018-07-25T05:21:16Z; %s is not", show(v)))
	case at-now > maxAhead.Milliseconds():
		return 0, atKey(errorf(MomentTooFar, "at lies more than 366 days ahead; is %s in milliseconds?", show(v)))
	}
	return at, nil
}

func atKey(e *Error) *Error {
	e.Key = "at"
	return e
}

// checkMoment refuses a moment that a feature's state does not reach back to:
// neither by the clock on the wall nor, as in a replay of history, by that of
// the records.
func (q *question) checkMoment(ctx context.Context, reader Reader) error {
	var clock int64
	asked := false
	for _, p := range q.plans {
		keep := p.Keep.Milliseconds()
		if !p.Forgets() || q.at >= q.now-keep {
			continue
		}
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
		if q.at >= clock-keep {
			continue
		}
		oldest := clock - keep
		e := errorf(MomentTooOld, "feature %q is kept for %s: the oldest moment that can be asked for is %d (%s)", p.Name,
			duration(p.Keep), oldest, time.UnixMilli(oldest).UTC().Format(time.RFC3339Nano))
		e.Feature, e.Oldest = p.Name, &oldest
		return atKey(e)
	}
	return nil
}

// storeError is the failure of the store, not of the question.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }
