package features

import (
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// For external tests: package definition imports this one.
var (
	SeriesIdentity = seriesIdentity
	GroupIdentity  = groupIdentity
)

// Write is a series that events of a stream write.
type Write struct {
	By     []int
	Series *state.Series
	Field  int
	Where  *expr.Expr
}

// Writes are the series that events of a stream write, in their order.
func (r *Registry) Writes(s *record.Stream) (list []Write) {
	for _, e := range r.writes[s] {
		for _, w := range e.series {
			list = append(list, Write{e.by, w.series, w.field, w.where})
		}
	}
	return list
}
