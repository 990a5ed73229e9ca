package tables

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
)

// ReadFile reads a table from a file, in which every row counts once: of several with the same key, that with the greatest
// timestamp, or else the last one. In JSON lines rows may be in envelopes, as materialize reads them. History keeps all
// versions of rows. Errors name the file and the line, except ErrTooLarge.
func ReadFile(ctx context.Context, t *features.Table, name string, history bool) (*Contents, error) {
	file, err := source.Open(ctx, name, nil, "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	events, err := file.Events(t.Rows)
	if err != nil {
		return nil, err
	}
	c := NewDecoded(t, events.NewDecoder([]*record.Stream{t.Rows}))
	c.history = history
	for n := 0; ; n++ {
		var e source.Event
		switch err := events.Next(&e); {
		case err == io.EOF:
			return c, nil
		case err != nil:
			return nil, err
		case n%1024 == 0 && ctx.Err() != nil:
			return nil, ctx.Err()
		case e.Topic != "" && e.Topic != t.Rows.Topic:
			return nil, events.At(e.Line, fmt.Errorf("the envelope is of topic %s, not of %s", e.Topic, t.Rows.Topic))
		}
		bad, err := c.Take(&record.Record{Partition: state.Partition{Topic: t.Rows.Topic}, Timestamp: e.RecordTime, Value: e.Value})
		switch {
		case bad != nil:
			return nil, events.At(e.Line, bad)
		case errors.Is(err, ErrTooLarge):
			return nil, err
		case err != nil:
			return nil, events.At(e.Line, err)
		}
	}
}
