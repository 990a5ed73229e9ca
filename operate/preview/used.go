package preview

import (
	"fmt"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// Used counts the events of the stream that a feature leaves out, by the first reason: a key is null, the feature's
// filter does not hold, its field is null, its category is null.
type Used struct {
	Stream     string `json:"stream"`
	Events     int    `json:"events"`
	NoKey      int    `json:"no_key"`
	Filtered   int    `json:"filtered"`
	NoValue    int    `json:"no_value"`
	NoCategory int    `json:"no_category"`
}

// use counts the events that a feature leaves out. A nil *use counts nothing.
type use struct {
	stream *record.Stream
	by     []int
	field  int        // -1 for none
	per    int        // of the category; -1 for none
	where  *expr.Expr // nil for none
	counts Used
}

// newUse returns nil for a feature that is made of others.
func newUse(f *features.Feature) *use {
	if _, ok := f.Basis.(features.OverStream); !ok {
		return nil
	}
	u := &use{stream: f.Stream, field: -1, per: -1, counts: Used{Stream: f.Stream.Name}}
	for _, key := range f.By {
		u.by = append(u.by, f.Stream.FieldIndex(key))
	}
	if f.Field != "" {
		u.field = f.Stream.FieldIndex(f.Field)
	}
	if f.Per != "" {
		u.per = f.Stream.FieldIndex(f.Per)
	}
	if text := f.Mapped(); text != "" {
		where, err := expr.Compile(text, f.Stream.Variables(), value.Bool)
		if err != nil {
			panic(fmt.Sprintf("%s: the filter %s was compiled before: %v", f.Name, text, err))
		}
		u.where = where
	}
	return u
}

// add counts an event that the mapper accepted; its filters have values.
func (u *use) add(e *record.Event) {
	if u == nil || e.Stream != u.stream {
		return
	}
	u.counts.Events++
	for _, field := range u.by {
		if e.Values[field].IsNull() {
			u.counts.NoKey++
			return
		}
	}
	if u.where != nil {
		if passed, err := u.where.True(e.Values); err != nil || !passed {
			u.counts.Filtered++
			return
		}
	}
	switch {
	case u.field >= 0 && e.Values[u.field].IsNull():
		u.counts.NoValue++
	case u.per >= 0 && e.Values[u.per].IsNull():
		u.counts.NoCategory++
	}
}

// writeText writes a line if the feature leaves out any event.
func (u *Used) writeText(b *strings.Builder, by []string) {
	if u == nil || u.NoKey+u.Filtered+u.NoValue+u.NoCategory == 0 {
		return
	}
	fmt.Fprintf(b, "  of %s of %s", spelling.Counted(u.Events, "event"), u.Stream)
	for _, left := range []struct {
		n   int
		why string
	}{{u.NoKey, "without " + strings.Join(by, " or ")}, {u.Filtered, "not passing the filter"}, {u.NoValue, "without a value of its field"}, {u.NoCategory, "without a category"}} {
		if left.n > 0 {
			fmt.Fprintf(b, ", %d %s", left.n, left.why)
		}
	}
	b.WriteByte('\n')
}
