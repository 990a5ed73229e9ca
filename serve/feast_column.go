package serve

import (
	"strconv"
	"time"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/state"
)

// column holds the answers of one feature, or the values of one key: the JSON content of their lists, without brackets.
type column struct {
	values, statuses, times, since []byte
	partial                        bool   // since has other values than null
	cells                          []cell // by entity
}

// cell is one value of a column, for repeated entities.
type cell struct {
	bounds // in values
	status query.Status
	at     int64
	since  int64
}

// repeat repeats the value of an entity.
func (c *column) repeat(entity int) {
	again := c.cells[entity]
	c.add(c.values[again.from:again.to], again.status, again.at, again.since)
}

// add adds a value that counts up to a moment. since is the event time since which it is complete;
// state.MinTime if it is complete as a whole.
func (c *column) add(value []byte, status query.Status, at, since int64) {
	if c.values != nil {
		c.values, c.statuses, c.times, c.since = append(c.values, ','), append(c.statuses, ','), append(c.times, ','), append(c.since, ',')
	}
	from := len(c.values)
	c.values = append(c.values, value...)
	c.cells = append(c.cells, cell{bounds{from, len(c.values)}, status, at, since})
	c.statuses = query.AppendString(c.statuses, feastStatuses[status])
	// Always three fractional digits: not every version of Python reads others.
	c.times = time.UnixMilli(at).UTC().AppendFormat(c.times, `"2006-01-02T15:04:05.000Z"`)
	if since == state.MinTime {
		c.since = append(c.since, "null"...)
		return
	}
	c.since, c.partial = strconv.AppendInt(c.since, since, 10), true
}

func (c *column) size() int {
	n := len(c.values) + len(c.statuses) + len(c.times)
	if c.partial {
		n += len(c.since)
	}
	return n
}

// append writes the column as one of Feast's results. Its clients skip the list that Feast's server does not send.
func (c *column) append(dst []byte) []byte {
	dst = append(append(dst, `{"values":[`...), c.values...)
	dst = append(append(dst, `],"statuses":[`...), c.statuses...)
	dst = append(append(dst, `],"event_timestamps":[`...), c.times...)
	if c.partial {
		dst = append(append(dst, `],"complete_since":[`...), c.since...)
	}
	return append(dst, "]}"...)
}
