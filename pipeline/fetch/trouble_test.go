package fetch

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	for attempts, want := range map[int]time.Duration{
		1: 50 * time.Millisecond, 2: 100 * time.Millisecond, 3: 200 * time.Millisecond, 4: 400 * time.Millisecond,
		5: 800 * time.Millisecond, 6: 1600 * time.Millisecond, 7: 2 * time.Second, 8: 2 * time.Second, 1000: 2 * time.Second,
	} {
		seen := make(map[time.Duration]bool)
		for range 100 {
			d := backoff(attempts)
			if d > want || d < want/2 {
				t.Errorf("backoff(%d) = %v, want %v less up to half", attempts, d, want)
			}
			seen[d] = true
		}
		if len(seen) < 10 {
			t.Errorf("backoff(%d) does not vary", attempts)
		}
	}
}

func TestTroubleLog(t *testing.T) {
	out := new(lockedBuffer)
	l := troubleLog{logger: out.logger()}
	now := time.Unix(1000, 0)
	l.over(now) // nothing was wrong
	for range 100 {
		l.failed(now, 3, errors.New("it is away"))
		now = now.Add(time.Second)
	}
	l.over(now)
	l.over(now)
	l.failed(now, 1, errors.New("again"))
	var got strings.Builder
	for line := range strings.Lines(out.String()) {
		got.WriteString(line[strings.Index(line, "level="):])
	}
	want := `level=WARN msg="cannot fetch, will keep trying" partitions=3 error="it is away"
level=WARN msg="still cannot fetch" partitions=3 for=30s error="it is away"
level=WARN msg="still cannot fetch" partitions=3 for=1m0s error="it is away"
level=WARN msg="still cannot fetch" partitions=3 for=1m30s error="it is away"
level=INFO msg="fetching all partitions again" after=1m40s
level=WARN msg="cannot fetch, will keep trying" partitions=1 error=again
`
	if got.String() != want {
		t.Errorf("logged\n%swant\n%s", got.String(), want)
	}
}
