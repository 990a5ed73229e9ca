package tables

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
)

// ReadFile reads a table from a file, in which every row counts once: of several with the same key, that with the
// greatest timestamp, or else the last one. In JSON lines rows may be in envelopes, as materialize reads them, and are
// records of the topic; else a list has the entries that features.Table.EntriesOfFile describes. Errors name the file and
// the line, except ErrTooLarge.
func ReadFile(ctx context.Context, t *features.Table, name string, keep Keep) (*Contents, error) {
	file, err := source.Open(ctx, name, nil, "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	rows, removed := t.Rows, t.Deletes
	var events source.Source
	if t.List && !file.Enveloped() {
		events, err = file.Rows(func(columns []string) *record.Stream {
			rows, removed = t.EntriesOfFile(columns)
			return rows
		})
	} else {
		events, err = file.Events(rows)
	}
	if err != nil {
		return nil, err
	}
	c := NewDecoded(t, events.NewDecoder([]*record.Stream{rows}))
	c.keep, c.ofFile, c.deletes = keep, true, removed
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
		bad, err := c.Take(&record.Record{Partition: state.Partition{Topic: t.Rows.Topic}, Key: keyOf(e.Key), Timestamp: e.RecordTime, Value: e.Value})
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

// keyOf returns the key of a record that an envelope has in JSON: a text, or another value as it is written; nil for none.
func keyOf(written []byte) []byte {
	var text string
	switch {
	case len(written) == 0 || string(written) == "null":
		return nil
	case json.Unmarshal(written, &text) == nil:
		return []byte(text)
	}
	return written
}
