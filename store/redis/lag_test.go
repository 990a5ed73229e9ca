package redisstore

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

// The history has the least time by which records were behind the clock when they were applied. A growing lag, and a
// record from the future, do not change it.
func TestLeastLag(t *testing.T) {
	onEach(t, 2, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		w := s.newWriter()
		least := func() (lag *int64) {
			t.Helper()
			h, err := s.History(t.Context())
			if err != nil || h.Slack != time.Hour.Milliseconds() {
				t.Fatalf("the history is %+v, error %v; want a slack of an hour", h, err)
			}
			return h.Lag
		}
		if lag := least(); lag != nil {
			t.Errorf("a new namespace has a least lag of %d ms, want none", *lag)
		}
		const day, minute = 24 * time.Hour, time.Minute
		newest := 100 * day
		for i, step := range []struct{ behind, want time.Duration }{{newest, newest}, {day, day}, {2 * day, day}, {minute, minute}, {-minute, 0}} {
			b := begin(t, s, transactions)
			b.EveryShard = true
			fill(b, 0, event{offset: int64(i), device: "d1", user: "u", time: time.Now().Add(-step.behind).UnixMilli()})
			apply(t, w, b)
			lag := least()
			if lag == nil {
				t.Fatalf("after a record %v behind the clock there is no least lag, want %v", step.behind, step.want)
			}
			if got := time.Duration(*lag) * time.Millisecond; got < step.want-time.Millisecond || got > step.want+minute/2 {
				t.Errorf("after a record %v behind the clock the least lag is %v, want %v", step.behind, got, step.want)
			}
		}
		if err := s.redis.HSet(t.Context(), keyspace.ProgressKey(s.tags[0]), keyspace.LagField, "x").Err(); err != nil {
			t.Fatal(err)
		}
		const want = `the least lag is "x", which is not a time`
		if _, err := s.History(t.Context()); err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	})
}
