package source

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/weir-stream/weir/features/record"
)

// maxLine is the greatest length of a line, or of a record of a CSV, in bytes.
const maxLine = 64 << 20

// lines reads the lines of a file and skips empty ones.
type lines struct {
	file string
	textLines
}

func newLines(file string, r io.Reader) *lines {
	return &lines{file, textLines{cutter: &cutter{in: withoutMark(r), most: maxLine}}}
}

func (l *lines) At(line int, err error) error {
	return &lineError{File: l.file, Line: line, Err: err}
}

func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.textLines.next()
		switch {
		case err == io.EOF:
			return nil, err
		case err != nil:
			return nil, l.At(l.line, err)
		case len(line) > maxLine:
			return nil, l.At(l.line, fmt.Errorf("the line has more than %d bytes", maxLine))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// jsonEvents reads one JSON object per line: an event, or an envelope with one. The first line
// decides which.
type jsonEvents struct {
	*lines
	known, wrapped bool
}

// NewEvents reads events from lines of JSON. A line is an event as in the topic, or an envelope as
// `weir generate` writes it: {"topic", "key", "value"}, and optionally the record's "timestamp".
// A value of null is a tombstone. Errors name the file.
func NewEvents(file string, r io.Reader) Source { return &jsonEvents{lines: newLines(file, r)} }

func (e *jsonEvents) NewDecoder(streams []*record.Stream) *record.Decoder {
	return record.NewTextDecoder(streams)
}

func (e *jsonEvents) Cut(p *Part, size int) error {
	err := e.cut(p, size)
	if err != nil && err != io.EOF {
		return e.At(e.line, err)
	}
	if first := (&lines{textLines: textLines{rest: p.text}}); err == nil && !e.known {
		if line, _ := first.next(); line != nil {
			err = e.begin(line, first.line)
		}
	}
	p.enveloped = e.wrapped
	return err
}

// begin learns from the first line what the lines are.
func (e *jsonEvents) begin(line []byte, number int) error {
	_, e.wrapped = unwrap(line)
	e.known = true
	if !e.wrapped && isKcat(line) {
		// It may have all that its stream requires, such as a ts of its own.
		return e.At(number, errors.New(kcat))
	}
	return nil
}

func (e *jsonEvents) NewPartReader() PartReader {
	return &jsonEvents{lines: &lines{file: e.file}, known: true}
}

func (e *jsonEvents) Reset(p *Part) {
	e.set(p)
	e.wrapped = p.enveloped
}

func (e *jsonEvents) Next(event *Event) error {
	line, err := e.next()
	if err != nil {
		return err
	}
	if !e.known {
		if err := e.begin(line, e.line); err != nil {
			return err
		}
	}
	*event = Event{Value: line, RecordTime: record.NoTime, Line: e.line}
	if !e.wrapped {
		return nil
	}
	envelope, ok := unwrap(line)
	if !ok {
		err := errors.New(`expected an envelope as on the first line: an object of "topic", "key", "value" and perhaps "timestamp", and nothing else`)
		return e.At(e.line, WithHint(err, line))
	}
	if event.Topic, event.Value = *envelope.Topic, envelope.Value; string(event.Value) == "null" {
		event.Value = nil // a tombstone
	}
	if envelope.Timestamp != nil {
		event.RecordTime = *envelope.Timestamp
	}
	event.Key = envelope.Key
	return nil
}

// envelope is a record in JSON, with its topic, key and time.
type envelope struct {
	Topic     *string         `json:"topic"`
	Key       json.RawMessage `json:"key"`
	Value     json.RawMessage `json:"value"`
	Timestamp *int64          `json:"timestamp"`
	Partition *int64          `json:"partition"`
	Offset    *int64          `json:"offset"`
	Headers   json.RawMessage `json:"headers"`
}

// unwrap reads an envelope. ok is false if the line is not an envelope.
func unwrap(line []byte) (e envelope, ok bool) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(&e)
	return e, err == nil && e.Topic != nil && len(e.Value) > 0 && !d.More()
}

const kcat = "it looks like a line of kcat -J; make an envelope of it with jq -c '{topic, key, value: (.payload | fromjson?), timestamp: .ts}'"

// isKcat reports whether a line is one of kcat -J, which has all these members.
func isKcat(line []byte) bool {
	var members struct {
		Topic, TSType     *string
		Partition, Offset *int64
		TS, Broker        *int64
		Payload           json.RawMessage
	}
	err := json.Unmarshal(line, &members)
	return err == nil && members.Topic != nil && members.TSType != nil && members.Partition != nil && members.Offset != nil &&
		members.TS != nil && members.Broker != nil && members.Payload != nil
}

// WithHint adds to an error about a line what is wrong with it as a line of JSON, or as an envelope if it may have been meant as
// one.
func WithHint(err error, line []byte) error {
	if hint := cmp.Or(nearLine(line), nearEnvelope(line)); hint != "" {
		return fmt.Errorf("%w (%s)", err, hint)
	}
	return err
}

// nearLine says what is wrong with a text that is JSON, but no line of it; "" if nothing is.
func nearLine(line []byte) string {
	if text := string(line); text == "{" || text == "[" {
		return "an object must be on one line: jq -c . makes such lines, of a list with jq -c '.[]'"
	}
	d := json.NewDecoder(bytes.NewReader(line))
	if d.Decode(new(json.RawMessage)) != nil || !d.More() {
		return ""
	}
	if bytes.ContainsRune(line, '\r') {
		return carriageReturns
	}
	return "the line continues after its first object: jq -c . makes lines of both"
}

// nearEnvelope says what is wrong with a line that may have been meant as an envelope; "" if it was not.
func nearEnvelope(line []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil || len(members["topic"]) == 0 || members["topic"][0] != '"' {
		return ""
	}
	if members["value"] == nil {
		if members["payload"] == nil || members["offset"] == nil {
			return ""
		}
		return kcat
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch name {
		case "topic", "key", "value", "headers":
		case "timestamp", "partition", "offset":
			if json.Unmarshal(members[name], new(int64)) != nil {
				return fmt.Sprintf("it is no envelope, because its %s is no whole number", name)
			}
		default:
			return fmt.Sprintf("it is no envelope, because of its member %q: an envelope has topic, key, value and perhaps timestamp, partition, offset and headers", name)
		}
	}
	return ""
}

// jsonTable is a table of flat JSON objects, one per line. The first line has all columns.
type jsonTable struct {
	*lines
	columns []string
	cells   []Cell
	first   bool // the row that was read for its columns comes next
}

// newJSONTable reads a table from lines of JSON. Errors name the file.
func newJSONTable(file string, r io.Reader) (Table, error) {
	t := &jsonTable{lines: newLines(file, r)}
	line, err := t.next()
	if err == io.EOF {
		return nil, t.At(1, errors.New("the file is empty; its first line must have all columns"))
	}
	if err != nil {
		return nil, err
	}
	err = members(line, func(name string, c Cell) error {
		t.columns, t.cells = append(t.columns, name), append(t.cells, c)
		return nil
	})
	if err == nil {
		err = twice(t.columns)
	}
	if err != nil {
		return nil, t.At(t.line, err)
	}
	t.first = true
	return t, nil
}

func (t *jsonTable) Columns() []string { return t.columns }
func (t *jsonTable) Select([]int)      {}
func (t *jsonTable) Line() int         { return t.line }

func (t *jsonTable) Next() ([]Cell, error) {
	if t.first {
		t.first = false
		return t.cells, nil
	}
	line, err := t.next()
	if err != nil {
		return nil, err
	}
	clear(t.cells)
	err = members(line, func(name string, c Cell) error {
		i := slices.Index(t.columns, name)
		if i < 0 {
			return fmt.Errorf("the first line has no member %q: it must have those of all lines", name)
		}
		t.cells[i] = c
		return nil
	})
	if err != nil {
		return nil, t.At(t.line, err)
	}
	return t.cells, nil
}

// members reads the members of a flat JSON object in order.
func members(line []byte, each func(name string, c Cell) error) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("expected a JSON object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return errors.New("malformed JSON")
		}
		v, err := d.Token()
		if err != nil {
			return errors.New("malformed JSON")
		}
		var c Cell
		switch v := v.(type) {
		case json.Delim:
			return fmt.Errorf("member %q: expected a string, a number, true, false or null, found a list or an object", name)
		case string:
			c = Cell{Type: String, Text: []byte(v)}
		case json.Number:
			c = Cell{Type: Number, Text: []byte(v)}
		case bool:
			c = Cell{Type: Bool, Text: fmt.Append(nil, v)}
		}
		if err := each(name.(string), c); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return errors.New("malformed JSON")
	}
	if d.More() {
		return errors.New("malformed JSON: the line continues after the object")
	}
	return nil
}
