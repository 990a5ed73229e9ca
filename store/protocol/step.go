package protocol

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// maxAttempts is how often a record may change while a step decides about it.
const maxAttempts = 1000

// step is a step of the protocol in some shards.
type step struct {
	shards []int
	// decide decides about the record of a shard, which has changed meanwhile that many times before. made is called once the
	// changes of the record are written, and reports whether to go on with the shard.
	decide func(shard int, r *progress.Record, before int) (made func() (more bool), err error)
	// begins is true if the shards get positions, so that those that have not begun are emptied first.
	begins bool
	runs   []string // see Query.Runs
	// missing takes the error of a shard that cannot be reached, while others can. If it is nil, the step fails in the end.
	missing func(shard int, err error)
}

// make reads the records and writes what is decided about them, each in one step; a record that has changed in between is read
// again.
func (s *step) make(ctx context.Context, p *Protocol) error {
	var unreachable error
	reached := false
	miss := func(shard int, err error) error {
		if !errors.Is(err, state.ErrUnavailable) {
			return err
		}
		unreachable = cmp.Or(unreachable, err)
		if s.missing != nil {
			s.missing(shard, err)
		}
		return nil
	}
	refused := map[int]int{}
	for shards := s.shards; len(shards) > 0; {
		records, errs := p.read(ctx, Query{Records: shards, For: ToChange, Runs: s.runs})
		if s.begins {
			if err := s.begin(ctx, p, shards, records, errs); err != nil {
				return err
			}
		}
		var again []int
		var changes []Change
		var made []func() (more bool)
		for i, shard := range shards {
			if errs[i] != nil {
				if err := miss(shard, errs[i]); err != nil {
					return err
				}
				continue
			}
			done, err := s.decide(shard, records[i], refused[shard])
			if err != nil {
				return err
			}
			if c := records[i].Change(); c != nil {
				changes, made = append(changes, Change{Record: shard, Run: runOf(s.runs, shard), Last: records[i].LastChange(), Change: c}), append(made, done)
				continue
			}
			reached = true
			if done() {
				again = append(again, shard)
			}
		}
		p.engine.Change(ctx, changes)
		for i, c := range changes {
			switch {
			case c.Err != nil:
				if err := miss(c.Record, c.Err); err != nil {
					return err
				}
			case !c.Made && refused[c.Record] == maxAttempts:
				return p.changesTooOften(c.Record)
			case !c.Made:
				refused[c.Record]++
				again = append(again, c.Record)
			default:
				reached = true
				if made[i]() {
					again = append(again, c.Record)
				}
			}
		}
		shards = again
	}
	if reached && s.missing != nil {
		return nil
	}
	return unreachable
}

// begin empties the shards that have not begun, and reads their records again.
func (s *step) begin(ctx context.Context, p *Protocol, shards []int, records []*progress.Record, errs []error) error {
	var of, begin []int
	for i, r := range records {
		if errs[i] == nil && !r.Begun() {
			of, begin = append(of, i), append(begin, shards[i])
		}
	}
	if len(begin) == 0 {
		return nil
	}
	if err := p.engine.Begin(ctx, begin); err != nil {
		return err
	}
	read, readErrs := p.read(ctx, Query{Records: begin, For: ToChange, Runs: s.runs})
	for n, i := range of {
		records[i], errs[i] = read[n], readErrs[n]
	}
	return nil
}

// read reads records of shards, each with its own error.
func (p *Protocol) read(ctx context.Context, q Query) ([]*progress.Record, []error) {
	records, errs := make([]*progress.Record, len(q.Records)), make([]error, len(q.Records))
	for i, found := range p.engine.Read(ctx, q) {
		if errs[i] = found.Err; errs[i] != nil {
			continue
		}
		var err error
		if records[i], err = progress.Of(found.Fields, found.Clock); err != nil {
			errs[i] = fmt.Errorf("%s: %w", p.engine.Name(q.Records[i]), err)
		}
	}
	return records, errs
}

// changeAll makes a step in all shards.
func (p *Protocol) changeAll(ctx context.Context, decide func(*progress.Record)) error {
	s := step{shards: p.allShards(), decide: func(_ int, r *progress.Record, _ int) (func() bool, error) {
		decide(r)
		return func() bool { return false }, nil
	}}
	return s.make(ctx, p)
}

// allShards returns the numbers of all shards.
func (p *Protocol) allShards() []int {
	shards := make([]int, p.engine.Shards())
	for shard := range shards {
		shards[shard] = shard
	}
	return shards
}

// changeRegister has a function decide how to change a register, given its fields and the time of its server in ms, and makes the
// change. If the register has changed meanwhile, it is called again.
func (p *Protocol) changeRegister(ctx context.Context, register int, decide func(fields map[string]string, clock int64) (*progress.Change, error)) error {
	for range maxAttempts {
		read := p.engine.Read(ctx, Query{Records: []int{register}, For: ToChange})[0]
		if read.Err != nil {
			return read.Err
		}
		c, err := decide(read.Fields, read.Clock)
		if err != nil {
			return err
		}
		if made, err := p.writeRegister(ctx, register, read.Fields[progress.ChangeField], c); made || err != nil {
			return err
		}
	}
	return p.changesTooOften(register)
}

// writeRegister makes a change of a register, and reports whether it was made: not if another one was made since the last one that
// was read.
func (p *Protocol) writeRegister(ctx context.Context, register int, last string, c *progress.Change) (bool, error) {
	write := []Change{{Record: register, Last: last, Change: c}}
	p.engine.Change(ctx, write)
	return write[0].Made, write[0].Err
}

func (p *Protocol) changesTooOften(record int) error {
	return fmt.Errorf("%s changed %d times while it was changed", p.engine.Name(record), maxAttempts)
}
