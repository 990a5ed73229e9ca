package backfill

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// forgetful is a store that may lack the fills, like a master that started empty, until another takes its place.
type forgetful struct {
	store.Store
	mu     sync.Mutex
	empty  bool
	worked map[string]int // how often the progress of a fill was read, by ID
}

func (s *forgetful) Fills(ctx context.Context, p *state.Plan) ([]*state.Fill, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.empty {
		return nil, nil
	}
	return s.Store.Fills(ctx, p)
}

func (s *forgetful) Fillings(ctx context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worked[f.ID]++
	return s.Store.Fillings(ctx, f, nil)
}

// became sets whether the store is empty, and returns the fills that are worked on in the next minutes.
func (s *forgetful) became(empty bool) (worked []string) {
	s.mu.Lock()
	s.empty = empty
	s.mu.Unlock()
	time.Sleep(time.Minute) // of the synctest bubble: work that has begun ends
	s.mu.Lock()
	clear(s.worked)
	s.mu.Unlock()
	time.Sleep(time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.worked {
		worked = append(worked, id)
	}
	return worked
}

// A backfill works on all fills of the store, also if the store did not know them when the backfill began, or forgets
// them for a while.
func TestFillsAreFoundAgain(t *testing.T) {
	k := keepingSome(t, "a")
	k.take("a", "b")
	plan, history, err := k.store.Bind(t.Context(), lifetimes(t, "a", "b").Plan())
	if err != nil {
		t.Fatal(err)
	}
	fills, err := k.store.Fills(t.Context(), plan)
	if err != nil || len(fills) != 1 {
		t.Fatalf("got the fills %v, error %v; want one fill", fills, err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &forgetful{Store: k.store, empty: true, worked: map[string]int{}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			New(Config{Store: s, Transport: &kafka.Transport{}}).Run(ctx, Work{
				Registry: lifetimes(t, "a", "b").Keeping(plan, history), Partitions: func() []state.Partition { return nil },
			})
		}()
		for _, empty := range []bool{true, false, true, false} {
			worked, want := s.became(empty), []string{fills[0].ID}
			if empty {
				want = nil
			}
			if !slices.Equal(worked, want) {
				t.Errorf("with the store empty = %v, the fills %v are worked on, want %v", empty, worked, want)
			}
		}
		cancel()
		<-ended
	})
}

// unread is a store that cannot be read until a moment.
type unread struct {
	store.Store
	until time.Time
}

func (s *unread) Fills(context.Context, *state.Plan) ([]*state.Fill, error) {
	if time.Now().Before(s.until) {
		return nil, errors.New("no answer")
	}
	return nil, nil
}

// A store that is away for long does not fill the log.
func TestFillsThatCannotBeReadAreLoggedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := New(Config{Store: &unread{until: time.Now().Add(5 * time.Minute)}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if _, ok := b.fills(t.Context(), &state.Plan{}); !ok {
			t.Fatal("the fills were not read once the store was back")
		}
		failed, over := strings.Count(log.String(), "fails, trying again"), strings.Count(log.String(), "works again")
		if failed == 0 || failed > 10 || over != 1 {
			t.Errorf("an outage of five minutes is logged %d times, want each half minute, and its end %d times, want once:\n%s", failed, over, &log)
		}
	})
}

// spares is a writer that notes what batches let be pruned.
type spares struct{ prunedBy []int64 }

func (s *spares) Apply(_ context.Context, b *state.Batch) error {
	s.prunedBy = append(s.prunedBy, b.Now-b.Spare)
	return nil
}

// A fill prunes nothing: its records may be newer than those that live events have reached.
func TestFillsDoNotPrune(t *testing.T) {
	w := &spares{}
	for _, now := range []int64{0, 1, newest} {
		if _, written := write(t.Context(), w, &state.Batch{Now: now}, func(error) {}); !written {
			t.Error("not written")
		}
	}
	if !slices.Equal(w.prunedBy, []int64{0, 0, 0}) {
		t.Errorf("state is pruned by %d, want by no record", w.prunedBy)
	}
}
