package backfill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// noted records what is written, in order: to the topic of dead letters, which fails some times first, and to the store.
type noted struct {
	failures int
	written  []string
}

func (n *noted) WriteMessages(_ context.Context, messages ...kafka.Message) error {
	if n.failures--; n.failures >= 0 {
		return errors.New("Kafka is away")
	}
	for _, m := range messages {
		n.written = append(n.written, fmt.Sprintf("%s %s %s", m.Headers[0].Key, m.Headers[0].Value, m.Value))
	}
	return nil
}

func (n *noted) Apply(context.Context, *state.Batch) error {
	n.written = append(n.written, "applied")
	return nil
}

// What a fill cannot use is noted before its position passes it, however long Kafka is away.
func TestSkippedRecordsAreNotedFirst(t *testing.T) {
	note := `weir-skipped payments/1 {"namespace":"shop","topic":"payments","partition":1,"offsets":[3,5],"series":["AAAAA","BBBBB"]}`
	for _, c := range []struct {
		failures int
		ends     bool // the context, meanwhile
		skipped  []int64
		want     []string
	}{
		{0, false, nil, []string{"applied"}},
		{0, false, []int64{3, 5}, []string{note, "applied"}},
		{3, false, []int64{3, 5}, []string{note, "applied"}},
		{1000, true, []int64{3, 5}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := &noted{failures: c.failures}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.ends {
				time.AfterFunc(time.Minute, cancel)
			}
			j := &job{Partition: state.Partition{Topic: "payments", ID: 1}, steps: []step{{to: 10}}, progress: make([]state.Position, 1)}
			r := &runner{
				Backfiller: New(Config{Namespace: "shop", DeadLetters: n}), writer: n, batch: &batch{}, spare: &batch{}, wrote: make(chan *batch, 1),
				fill:   &state.Fill{Columns: map[string][]string{"payments": {"AAAAA one", "BBBBB one", "BBBBB two"}, "logins": {"AAAAA two"}}},
				jobs:   map[state.Partition]*job{j.Partition: j},
				report: reporter{log: slog.New(slog.DiscardHandler)},
			}
			for range 2 { // the second batch has none
				r.rangeOf(j)
				for _, offset := range c.skipped {
					r.batch.skip(j.Partition, offset)
				}
				if done := r.flush(ctx, false); done == c.ends {
					t.Errorf("%+v: the batch is written: %v", c, done)
				}
				if !slices.Equal(n.written, c.want) {
					t.Errorf("%+v: got\n%v\nwant\n%v", c, n.written, c.want)
				}
				n.written, c.skipped, c.want = nil, nil, []string{"applied"}
				if c.ends {
					break
				}
			}
		})
	}
}

// starting is a store that notes since when fills cover partitions.
type starting struct {
	store.Store
	since []int64
}

func (s *starting) StartFill(_ context.Context, starts ...state.FillStart) error {
	for _, start := range starts {
		s.since = append(s.since, start.Since)
	}
	return nil
}

// noBroker reaches none: a poller asks for the leaders of what it is given.
type noBroker struct{}

func (noBroker) RoundTrip(context.Context, net.Addr, kafka.Request) (kafka.Response, error) {
	return nil, errors.New("there is no broker")
}

// What a fill covers begins after a batch that it skips: by the timestamp in its header, which is not believed of a damaged one.
func TestSkippedBatchesAreNotCovered(t *testing.T) {
	errWritten := errors.New("written so")
	for name, c := range map[string]struct {
		timestamp int64
		reason    error
		tries     int
		later     bool // than now
		want      int64
	}{
		"written so":     {1000, errWritten, 1, false, 1001},
		"without a time": {0, errWritten, 1, true, 1},
		"damaged":        {1000, fetch.ErrChecksum, 3, true, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			if c.later {
				c.want += time.Now().UnixMilli()
			}
			started := &starting{}
			j := &job{Partition: state.Partition{Topic: "payments", ID: 1}, steps: []step{{from: 10, to: 30}}, next: 10}
			r := &runner{
				Backfiller: New(Config{Store: started}), poller: fetch.NewPoller(fetch.PollerConfig{Transport: noBroker{}}), batch: &batch{},
				jobs: map[state.Partition]*job{j.Partition: j}, log: slog.New(slog.DiscardHandler),
			}
			defer r.poller.Close()
			r.poller.Add(j.Topic, j.ID, 10)
			for try := 1; try <= c.tries; try++ {
				if len(started.since) > 0 || j.next != 10 {
					t.Errorf("%s: it is skipped before try %d", name, try)
				}
				r.pass(t.Context(), j, &fetch.CorruptError{Topic: j.Topic, Partition: j.ID, Offset: 10, EndOffset: 20, Timestamp: c.timestamp, Reason: c.reason})
			}
			if !slices.Equal(started.since, []int64{c.want}) || j.next != 20 {
				t.Errorf("%s: the fill covers the partition since %d, want %d; it goes on at %d", name, started.since, c.want, j.next)
			}
		})
	}
}

// A job ends where the next offsets are not wanted, rather than read them.
func TestJobsEndBeforeGaps(t *testing.T) {
	for name, c := range map[string]struct {
		steps  []step
		offset int64
		goesOn bool
	}{
		"within a step":          {[]step{{from: 0, to: 10}, {from: 20, to: 30}}, 9, true},
		"at a gap":               {[]step{{from: 0, to: 10}, {from: 20, to: 30}}, 10, false},
		"beyond a gap":           {[]step{{from: 0, to: 10}, {from: 20, to: 30}}, 20, true},
		"where a step follows":   {[]step{{from: 0, to: 10}, {from: 10, to: 30}}, 10, true},
		"before the first step":  {[]step{{from: 20, to: 30}}, 10, true},
		"at the end of all":      {[]step{{from: 0, to: 10}}, 10, false},
		"beyond several to none": {[]step{{from: 0, to: 10}, {from: 10, to: 20}}, 25, false},
	} {
		n := &noted{}
		j := &job{Partition: state.Partition{Topic: "payments", ID: 1}, steps: c.steps, progress: make([]state.Position, 1)}
		r := &runner{
			Backfiller: New(Config{DeadLetters: n}), writer: n, poller: fetch.NewPoller(fetch.PollerConfig{}), fill: &state.Fill{},
			batch: &batch{}, spare: &batch{}, wrote: make(chan *batch, 1), jobs: map[state.Partition]*job{j.Partition: j}, log: slog.New(slog.DiscardHandler),
			report: reporter{log: slog.New(slog.DiscardHandler)},
		}
		defer r.poller.Close()
		if got := r.reach(t.Context(), j, c.offset); got != c.goesOn || (r.jobs[j.Partition] == j) != c.goesOn {
			t.Errorf("%s: the job goes on: %v, want %v", name, got, c.goesOn)
		}
	}
}
