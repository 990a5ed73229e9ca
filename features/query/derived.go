package query

import (
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// derive answers a derived feature by its parts. The value is found where that
// of any part is, and null where the expression cannot be computed. Where a part
// could not be read there is none, whatever the default. It is whole if each part is.
func (r *Reading) derive(a *Answer, f *features.Feature, of *features.Derived, at int64, c *Completeness) {
	*a = Answer{Status: NotFound, Exact: true, CompleteSince: state.MinTime}
	a.From, a.To = Covers(f, at, r.now)
	whole := *a // as far as all parts are
	values := make([]value.Value, len(of.Of))
	var p Answer
	for i, part := range of.Of {
		r.answer(&p, part, at, c.part(i))
		values[i] = p.Value
		whole.restOn(&p)
		a.Exact = a.Exact && p.Exact
		a.StandardError = max(a.StandardError, p.StandardError)
		a.RelativeError = max(a.RelativeError, p.RelativeError)
		a.Uncertain = max(a.Uncertain, p.Uncertain)
		a.Capped = a.Capped || p.Capped
		switch {
		case a.Status.Unread():
		case p.Status.Unread():
			a.Status, a.Err = p.Status, p.Err
		case p.Status != NotFound:
			a.Status = Present
		}
	}
	if a.Status.Unread() {
		unread(a, f, a.Err, at, r.now)
		return
	}
	// Its error is an overflow: there is no such value.
	a.Value, _ = of.Expr.Clone().Eval(values)
	if a.Value.IsNull() {
		a.Value = of.Default
		if a.Status == Present {
			a.Status = NullValue
		}
	}
	a.restOn(&whole)
}
