package retry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	wants := []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond,
		800 * time.Millisecond, 1600 * time.Millisecond, 2 * time.Second, 2 * time.Second}
	for len(wants) < 1000 {
		wants = append(wants, 2*time.Second)
	}
	seen := make([]map[time.Duration]bool, len(wants))
	for range 100 {
		b := Backoff{First: 50 * time.Millisecond, Longest: 2 * time.Second}
		for try, want := range wants {
			if b.Tried() != (try > 0) {
				t.Fatalf("after %d tries: Tried() = %v", try, b.Tried())
			}
			d := b.Next()
			if d > want || d < want/2 {
				t.Fatalf("try %d waits for %v, want between half of %v and all of it", try, d, want)
			}
			if seen[try] == nil {
				seen[try] = map[time.Duration]bool{}
			}
			seen[try][d] = true
		}
		b.Reset()
		if d := b.Next(); d > wants[0] {
			t.Errorf("after a reset the wait is %v, want at most the first", d)
		}
	}
	for try := range seen {
		if len(seen[try]) < 10 {
			t.Errorf("the waits of try %d do not vary", try)
		}
	}
}

func TestDefaultBackoff(t *testing.T) {
	var b Backoff
	for range 100 {
		b.Next()
	}
	if d := b.Next(); d > usual.Longest || d < usual.Longest/2 {
		t.Errorf("the longest wait is %v, want between half of %v and all of it", d, usual.Longest)
	}
}

type aboutKey struct{}

func (aboutKey) Error() string { return "again" }
func (aboutKey) Key() string   { return "k" }

func TestTrouble(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	l := Trouble{
		Log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), What: "reading",
		clock: func() time.Time { return now },
	}
	l.Over() // nothing was wrong
	for range 100 {
		l.Failed(errors.New("it is away"), "partitions", 3)
		now = now.Add(time.Second)
	}
	l.Over()
	l.Over()
	if l.backoff.Tried() {
		t.Error("after a success, the next failure does not begin with the first wait")
	}
	l.Failed(aboutKey{})
	var got strings.Builder
	for line := range strings.Lines(out.String()) {
		got.WriteString(line[strings.Index(line, "level="):])
	}
	want := `level=WARN msg="reading fails, trying again" partitions=3 error="it is away" for=0s
level=WARN msg="reading fails, trying again" partitions=3 error="it is away" for=30s
level=WARN msg="reading fails, trying again" partitions=3 error="it is away" for=1m0s
level=WARN msg="reading fails, trying again" partitions=3 error="it is away" for=1m30s
level=INFO msg="reading works again" after=1m40s
level=WARN msg="reading fails, trying again" error=again for=0s
level=DEBUG msg="it is about a key" key=k
`
	if got.String() != want {
		t.Errorf("logged\n%swant\n%s", got.String(), want)
	}
}

type slowKey struct{}

func (slowKey) Error() string { return "not yet" }
func (slowKey) Passing() bool { return true }

// What passes by itself is logged if it does not.
func TestTroubleThatPasses(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	l := Trouble{Log: slog.New(slog.NewTextHandler(&out, nil)), What: "reading", clock: func() time.Time { return now }}
	fail := func(err error, lasting time.Duration) {
		l.Failed(err)
		now = now.Add(lasting)
	}
	fail(fmt.Errorf("asked: %w", slowKey{}), passes-1)
	fail(slowKey{}, 0)
	l.Over()
	if out.Len() > 0 {
		t.Errorf("logged %s", out.String())
	}
	fail(slowKey{}, passes)
	fail(slowKey{}, time.Second)
	l.Over()
	fail(slowKey{}, 0)
	fail(errors.New("away"), time.Second)
	l.Over()
	got := regexp.MustCompile(`(?m)^.*? msg=`).ReplaceAllString(out.String(), "")
	want := "\"reading fails, trying again\" error=\"not yet\" for=3s\n\"reading works again\" after=4s\n" +
		"\"reading fails, trying again\" error=away for=0s\n\"reading works again\" after=1s\n"
	if got != want {
		t.Errorf("logged\n%swant\n%s", got, want)
	}
}

// A context that has ended is reported, even if the time is up as well.
func TestWait(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	if !Wait(ended, 0) || !Wait(ended, time.Nanosecond) {
		t.Error("a running context is reported as ended")
	}
	cancel()
	for range 100 {
		if Wait(ended, 0) {
			t.Fatal("an ended context is reported as running")
		}
	}
}
