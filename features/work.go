package features

import (
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
)

// Work is the work for one event of a stream that has all fields and passes all filters.
type Work struct {
	Entities  int // that it touches
	Filters   int // filters and conditions that are evaluated
	Mutations int // mutations of state
}

// Work counts the work for an event of a stream.
func (r *Registry) Work(s *record.Stream) Work {
	w := Work{Entities: len(r.writes[s])}
	filters := map[*expr.Expr]bool{}
	for _, e := range r.writes[s] {
		w.Mutations += len(e.series)
		for _, w := range e.series {
			for _, e := range []*expr.Expr{w.where, w.condition} {
				if e != nil {
					filters[e] = true
				}
			}
		}
		w.Mutations += len(e.ids) + len(e.logs)
		for _, log := range e.logs {
			for _, c := range log.columns {
				if c.where != nil {
					filters[c.where] = true
				}
			}
		}
	}
	w.Filters = len(filters)
	return w
}
