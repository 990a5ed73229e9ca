package model

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/storetest/plain"
)

// changing is a namespace whose definitions change while events flow. Two processors have a partition each, and each
// has its own definitions.
type changing struct {
	*rapid.T
	store      *plain.Store
	processors [2]processor
	logs       [2][]record.Record // of the partitions
	begins     [2]int64           // the first offsets that the logs still have
	records    []record.Record    // of both, in the order of writing
	now        int64              // the greatest timestamp, in ms
	times      map[int64]bool     // of the events; no two have the same
	lost       bool               // the plans have gone back in time

	truth      reference            // without caps
	least      reference            // with the least caps so far
	references map[string]reference // of all definitions so far, by version
}

// processor is a processor's definitions and mappers.
type processor struct {
	given, bound *features.Registry
	mapper       *features.Mapper
	progress     []state.Position
}

func partition(i int) state.Partition { return state.Partition{Topic: "pay", ID: int32(i)} }

// newChanging begins with definitions that both processors have.
func newChanging(t *rapid.T, first *features.Registry) *changing {
	c := &changing{
		T: t, store: plain.New(1), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), times: map[int64]bool{},
		truth: uncapped(t), references: map[string]reference{},
	}
	for i := range c.processors {
		c.take(i, first)
	}
	return c
}

func (c *changing) succeed(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// take makes a processor use definitions, or bind its present ones again.
func (c *changing) take(i int, given *features.Registry) {
	plan, history, err := c.store.Bind(context.Background(), given.Plan())
	c.succeed(err)
	c.takeBound(i, given, plan, history)
}

// takeBound makes a processor use definitions with the plan that they were bound to.
func (c *changing) takeBound(i int, given *features.Registry, plan *state.Plan, history *state.History) {
	ctx, p := context.Background(), &c.processors[i]
	p.given, p.bound = given, given.Keeping(plan, history)
	p.mapper = p.bound.NewMapper()
	c.register(plan)
	claims, err := c.store.Claim(ctx, []state.Partition{partition(i)}, state.Claimant{Version: plan.Version})
	c.succeed(err)
	if p.progress = claims[0].Progress; !p.progress[0].Exists() {
		at := partition(i).WithPlan(plan.Version)
		_, err = c.store.Place(ctx, testkit.FirstPlacement(at, 1, 0))
		c.succeed(err)
		progress, err := c.store.Progress(ctx, []state.Partition{at})
		c.succeed(err)
		p.progress = progress[0]
	}
	c.refer(given)
}

// register registers a plan as in use.
func (c *changing) register(p *state.Plan) {
	_, err := c.store.Register(context.Background(), state.Registration{Plan: p})
	c.succeed(err)
}

// refer adds the reference of definitions.
func (c *changing) refer(given *features.Registry) {
	if _, known := c.references[given.Version()]; known {
		return
	}
	added := newReference(given)
	c.references[given.Version()] = added
	c.least = least(c.T, c.references)
	for _, rec := range c.records {
		c.succeed(added.model.Apply(rec))
		c.succeed(c.least.model.Apply(rec))
	}
}

// event writes an event to a partition, whose processor applies it.
func (c *changing) event(step time.Duration) {
	c.now += rapid.Int64Range(1, 2*step.Milliseconds()).Draw(c.T, "after")
	at := c.now - rapid.SampledFrom([]int64{0, 0, 1, 60_000, 600_000}).Draw(c.T, "behind")
	for c.times[at] {
		at--
	}
	c.times[at] = true
	i := rapid.IntRange(0, 1).Draw(c.T, "partition")
	rec := record.Record{Partition: partition(i), Offset: int64(len(c.logs[i])), Timestamp: c.now, Value: eventAt(c.T, at)}
	c.logs[i], c.records = append(c.logs[i], rec), append(c.records, rec)
	c.succeed(c.truth.model.Apply(rec))
	c.succeed(c.least.model.Apply(rec))
	for _, r := range c.references {
		c.succeed(r.model.Apply(rec))
	}
	p := &c.processors[i]
	p.progress = c.apply(p.mapper, partition(i).WithPlan(p.bound.Plan().Version), p.progress, c.logs[i][rec.Offset:])
}

// apply applies records to a partition, and returns its new progress.
func (c *changing) apply(m *features.Mapper, to state.Partition, progress []state.Position, records []record.Record) []state.Position {
	b := &state.Batch{EveryShard: true, Ranges: []state.PartitionRange{
		{Partition: to, To: records[len(records)-1].Offset + 1, Epoch: -1, Progress: progress},
	}}
	for i := range records {
		_, err := m.Map(&records[i], 0, b)
		c.succeed(err)
	}
	c.succeed(c.store.NewWriter().Apply(context.Background(), b))
	if b.Ranges[0].Behind {
		c.Fatalf("%v is behind", to)
	}
	return b.Ranges[0].Progress
}

// fill applies up to a number of records of each fill that a processor has.
func (c *changing) fill(i, most int) {
	ctx, r := context.Background(), c.processors[i].bound
	fills, err := c.store.Fills(ctx, r.Plan())
	c.succeed(err)
	for _, f := range fills {
		look := func() state.Filling {
			fillings, err := c.store.Fillings(ctx, f, []state.Partition{partition(i)})
			c.succeed(err)
			return fillings[0][0]
		}
		if is := look(); is.Known && !is.Broken && !is.Begun && len(is.Ranges) > 0 {
			c.succeed(c.store.StartFill(ctx, c.start(i, f)))
		}
		for n := most; n > 0; {
			is := look()
			left := is.Left()
			if len(left) == 0 {
				break
			}
			from, to := left[0].From, min(left[0].To, left[0].From+int64(min(n, math.MaxInt32)))
			n -= int(to - from)
			c.apply(r.NewFillMapper(f), f.Partition(partition(i)), []state.Position{is.At}, c.logs[i][from:to])
		}
	}
}

// start returns where a fill begins: at the first needed record in the log.
func (c *changing) start(i int, f *state.Fill) state.FillStart {
	reach := c.processors[i].bound.FillReach(f, "pay")
	s := state.FillStart{Fill: f, Partition: partition(i), Since: state.MinTime, From: c.begins[i]}
	for _, rec := range c.logs[i][:s.From] {
		s.Since = rec.Timestamp + 1
	}
	for _, rec := range c.logs[i][s.From:] {
		if reach.Forever || rec.Timestamp >= c.now-reach.Reach {
			break
		}
		s.From, s.Since = rec.Offset+1, c.now-reach.Reach
	}
	return s
}

func (c *changing) history() *state.History {
	h, err := c.store.History(context.Background())
	c.succeed(err)
	return h
}

// both reports whether both processors have a feature.
func (c *changing) both(name string) bool {
	return !slices.ContainsFunc(c.processors[:], func(p processor) bool { _, has := p.given.Feature(name); return !has })
}

// always reports whether all definitions so far had a feature.
func (c *changing) always(name string) bool {
	for _, r := range c.references {
		if _, has := r.Feature(name); !has {
			return false
		}
	}
	return true
}

// plansText describes the plans, for messages.
func (c *changing) plansText() (text string) {
	h := c.history()
	for _, e := range h.PlanEpochs {
		plan := cmp.Or(h.Plans[e.Version], &state.Plan{}) // it may be lost
		text += fmt.Sprintf("plan %s until %d: %v %v\n", e.Version, e.Last, plan.Generations, plan.Retained)
	}
	for _, f := range h.Fills {
		text += fmt.Sprintf("fill %s of %v: whole %v, broken %v, since %d\n", f.Fill.ID, f.Fill.Columns, f.Whole, f.Broken, f.Since)
	}
	return fmt.Sprintf("%snow %d", text, c.now)
}
