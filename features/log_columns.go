package features

import (
	"slices"

	"github.com/weir-stream/weir/state"
)

// LogColumn names a column of a log: a field, or the text of a filter or condition, whose column is present if it is
// true.
type LogColumn struct {
	state.Column
	Name string
}

// LogColumns lists the columns that the definitions give a log; nil if the series is not a log.
func (r *Registry) LogColumns(s *state.Series) (list []LogColumn) {
	for _, stream := range r.Streams {
		for _, w := range r.writes[stream] {
			i := slices.IndexFunc(w.logs, func(l *logWrite) bool { return l.series == s })
			if i < 0 {
				continue
			}
			for _, c := range w.logs[i].columns {
				if c.where != nil {
					list = append(list, LogColumn{c.Column, c.where.Text})
				} else {
					list = append(list, LogColumn{c.Column, stream.Fields[c.field].Name})
				}
			}
		}
	}
	return list
}
