package features

import (
	"cmp"
	"math"
	"slices"

	"github.com/weir-stream/weir/features/kinds"
)

// edges are the first and the last millisecond of an exact window at a moment;
// from is nil where there is no first.
func (w Window) edges(at int64) (from *int64, to int64) {
	to = at - w.Delay.Milliseconds()
	if w.Size > 0 {
		start := to - w.Size.Milliseconds()
		if !w.ClosedLeft {
			start++
		}
		from = &start
	}
	if w.OpenRight {
		to--
	}
	return from, to
}

// fold computes an exact feature at a moment from the log of its entity.
func (f *Feature) fold(log kinds.Log, at int64) (kinds.Result, error) {
	start, to := f.Window.edges(at)
	from := int64(math.MinInt64)
	if start != nil {
		from = *start
	}
	samples, cut, err := f.samples(log, from, to)
	if err != nil {
		return kinds.Result{}, err
	}
	slices.SortStableFunc(samples, func(a, b kinds.Sample) int { return cmp.Compare(a.Time, b.Time) })
	r := f.Kind.Fold(f.Call, at-f.Window.Delay.Milliseconds(), samples)
	r.Capped = r.Capped || cut != nothingCut && cut >= from
	return r, nil
}

// nothingCut stands for the time of events cut off where there are none.
const nothingCut = math.MinInt64

// samples are the events of a log from one time to another that pass the
// feature's filter, in the order in which they came, and the greatest time of
// those that a cap has cut off. Of more than the cap allows the earliest count
// as cut off, whether they are still there or not.
func (f *Feature) samples(log kinds.Log, from, to int64) (samples []kinds.Sample, cut int64, err error) {
	cut, ok := log.CutOff()
	if !ok {
		cut = nothingCut
	}
	over, within := -f.Series[0].Max, 0
	err = log.Records(func(r kinds.LogRecord) bool {
		over++
		if from <= r.Time && r.Time <= to {
			within++
		}
		return true
	})
	if err != nil {
		return nil, 0, err
	}
	samples = make([]kinds.Sample, 0, within)
	visitErr := log.Records(func(r kinds.LogRecord) bool {
		if over > 0 {
			over--
			cut = max(cut, r.Time)
			return true
		}
		if r.Time < from || r.Time > to {
			return true
		}
		s := kinds.Sample{Time: r.Time}
		if f.filter != nil {
			var passed bool
			if _, passed, err = r.Column(*f.filter); !passed {
				return err == nil
			}
		}
		if f.field != nil {
			if s.Value, _, err = r.Column(*f.field); err != nil {
				return false
			}
		}
		if f.condition != nil {
			if _, s.Holds, err = r.Column(*f.condition); err != nil {
				return false
			}
		}
		samples = append(samples, s)
		return true
	})
	return samples, cut, cmp.Or(err, visitErr)
}
