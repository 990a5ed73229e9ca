package recovery

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"testing"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// countingStore knows the progress of partitions, and counts its calls, each of which is a round
// trip. Calls of other methods panic.
type countingStore struct {
	store.Store
	progress map[int32]state.Position

	held                                int64 // how long the plan has had partitions
	claims, placements, logs, histories int
}

func (*countingStore) Create(context.Context) error { return nil }

func (*countingStore) Seal(context.Context) (state.Seal, error) { return state.Seal{}, nil }

func (s *countingStore) Claim(_ context.Context, partitions []state.Partition, _ state.Claimant) ([]state.Claim, error) {
	s.claims++
	claims := make([]state.Claim, len(partitions))
	for i, p := range partitions {
		claims[i] = state.Claim{Progress: []state.Position{state.NoPosition}, OwnedMs: s.held}
		if at, ok := s.progress[p.ID]; ok {
			claims[i].Progress[0] = at
		}
	}
	return claims, nil
}

func (s *countingStore) Place(_ context.Context, placements ...state.Placement) (int, error) {
	s.placements++
	for _, p := range placements {
		s.progress[p.Partition.ID] = p.To[0]
	}
	return len(placements), nil
}

func (s *countingStore) Log(context.Context, string) (state.LogID, error) {
	s.logs++
	return partial, nil
}

func (s *countingStore) History(context.Context) (*state.History, error) {
	s.histories++
	return &state.History{PlanEpochs: []state.PlanEpoch{{Topic: "tx", Version: state.Gap}}}, nil
}

// countingBrokers have a log of each partition, and count requests.
type countingBrokers struct{ logs, ends int }

func (b *countingBrokers) Logs(_ context.Context, partitions []state.Partition) ([]fetch.Log, error) {
	b.logs++
	return slices.Repeat([]fetch.Log{logOf(nil)}, len(partitions)), nil
}

func (b *countingBrokers) Earlier(_ context.Context, _ []state.Partition, _ []fetch.Log, asked []fetch.Before) (from []int64) {
	for _, b := range asked {
		from = append(from, b.Offset)
	}
	return from
}

func (b *countingBrokers) EpochEnds(_ context.Context, queries []fetch.EpochQuery) []fetch.EpochEnd {
	b.ends++
	ends := make([]fetch.EpochEnd, len(queries))
	for i := range ends {
		ends[i] = fetch.EpochEnd{Epoch: queries[i].Epoch, Offset: 100}
	}
	return ends
}

// Any number of partitions resume with as many round trips as one.
func TestResumingTakesTheRoundTripsOfOnePartition(t *testing.T) {
	const partitions = 100
	for name, test := range map[string]struct {
		known int // partitions with progress
		at    state.Position
		held  int64
		want  [6]int // claims, placements, what logs are, histories; logs of brokers, ends of epochs
	}{
		"all go on":                            {partitions, at(50, 4), math.MaxInt64, [6]int{1, 0, 0, 0, 1, 1}},
		"all are just taken over":              {partitions, at(50, 4), 0, [6]int{1, 0, 0, 1, 1, 1}},
		"brokers once reported less of the ID": {partitions, in(partial, at(50, 4)), math.MaxInt64, [6]int{2, 1, 1, 0, 2, 2}},
		"some are new":                         {partitions / 2, at(50, 4), math.MaxInt64, [6]int{2, 1, 0, 0, 2, 2}},
		"all are new":                          {0, at(50, 4), math.MaxInt64, [6]int{2, 1, 0, 0, 2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := &countingStore{progress: map[int32]state.Position{}, held: test.held}, &countingBrokers{}
			ids := make([]state.Partition, partitions)
			for id := range int32(partitions) {
				ids[id] = state.Partition{Topic: "tx", ID: id}
				if int(id) < test.known {
					s.progress[id] = test.at
				}
			}
			r := &Resumer{
				Rules: Rules{}.WithDefaults(), Store: s, Brokers: b, Plan: &state.Plan{Version: "v"},
				Register: func(context.Context) ([]state.Rival, *state.History, error) { return nil, nil, nil }, Log: slog.New(slog.DiscardHandler),
			}
			for i, got := range r.Resume(t.Context(), ids) {
				want := int64(10) // the start of the log
				if i < test.known {
					want = test.at.Offset
				}
				if got.Err != nil || got.Known.Offset != want || (got.Early > 0) != (test.held == 0) {
					t.Fatalf("partition %d continues at %d after a wait of %v, want %d; error %v", i, got.Known.Offset, got.Early, want, got.Err)
				}
			}
			if got := [6]int{s.claims, s.placements, s.logs, s.histories, b.logs, b.ends}; got != test.want {
				t.Errorf("round trips for claims, placements, logs and histories of the store, and logs and ends of the brokers: %v, want %v", got, test.want)
			}
		})
	}
}

// A partition continues from its lowest progress, and the poller knows how far some slices are.
func TestResumptionSaysWhatIsApplied(t *testing.T) {
	f := &finding{claim: state.Claim{Progress: []state.Position{at(70, 3).WithAhead(90, 5), at(50, 4), at(80, 4)}}, log: fetch.Log{LeaderEpoch: 6, ID: here}}
	want := fetch.Known{Offset: 50, Epoch: 4, LeaderEpoch: 6, Log: here, Applied: 90, AppliedEpoch: 3}
	if got := ready(f, nil).Known; got != want {
		t.Errorf("it continues from %+v, want %+v", got, want)
	}
}
