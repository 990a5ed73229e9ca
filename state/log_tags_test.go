package state

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/value"
)

func TestTagsOfARecord(t *testing.T) {
	a, b := NewColumn(1, value.String, 0), NewColumn(2, value.Null, 0)
	record := AppendLogColumn(AppendLogTime(nil, 5), a, value.Value{Type: value.String, Str: []byte("x")})
	record = AppendLogColumn(record, b, value.Value{})
	for _, c := range []struct {
		record []byte
		want   string
	}{
		{record, fmt.Sprint([]uint32{a.Tag(), b.Tag()}, nil)},
		{record[:6], "[] <nil>"},
		{record[:len(record)-1], "[] the log is damaged"}, // in a tag
		{record[:10], "[] the log is damaged"},            // in a value
	} {
		log := Log(append([]byte(LogHeader), AppendLogRecord(nil, c.record)...))
		met := 0
		err := log.Records(func(r LogRecord) bool {
			met++
			tags, err := r.Tags()
			if got := fmt.Sprint(tags, err); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			return true
		})
		if err != nil || met != 1 {
			t.Errorf("%d records, error %v; want 1", met, err)
		}
	}
}
