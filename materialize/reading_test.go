package materialize

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/store/memory"
)

// Of several bad events the first is reported, or set aside as the first, though a later part may be read before.
func TestFirstBadEvent(t *testing.T) {
	in := strings.Builder{}
	in.WriteString("id,at,user,came\n")
	for i := range 300 {
		user := strings.Repeat("u", 1+(300-i)*3) // later parts take less time
		if i%100 == 99 {
			user = "\xff"
		}
		fmt.Fprintf(&in, "%d,%d,%s,%d\n", i, 1_700_000_000_000+i, user, 1_700_000_000_000+i)
	}
	r := load(t, `
streams: {s: {topic: t, timestamp: at, id: id, fields: {user: string}}}
features:
  n: COUNT(1h, s, user)
`)
	const first = "in.csv:101: stream s: user: the string is not valid UTF-8"
	for range 20 {
		m := making{Registry: r, stream: "s", inputs: []text{{"s", "in.csv", in.String()}}}
		if _, _, err := m.run(t); fmt.Sprint(err) != first {
			t.Fatalf("error %v, want %s", err, first)
		}
		m.asServed, m.recordTime = true, "came"
		_, summary, err := m.run(t)
		if err != nil || summary.SetAside != 3 || summary.Rows != 297 || fmt.Sprint(summary.FirstSetAside) != first {
			t.Fatalf("error %v, %d rows, set aside %d, the first: %v", err, summary.Rows, summary.SetAside, summary.FirstSetAside)
		}
	}
}

// endless repeats a line.
type endless struct {
	line string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.line[e.at:])
	e.at = (e.at + n) % len(e.line)
	return n, nil
}

// A reading that is cancelled ends, with all its goroutines.
func TestCancelledReading(t *testing.T) {
	r := load(t, `
streams: {s: {topic: t, timestamp: at, id: id, fields: {user: string}}}
features:
  n: COUNT(1h, s, user)
`)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		replay := Replay{
			Registry: r, NewState: func() State { return memory.New() }, Cores: 2, Stream: r.Streams[0],
			Inputs: []Input{{Name: "in", Stream: r.Streams[0], Open: func(*record.Stream) (source.Source, error) {
				return source.NewEvents("in", &endless{line: `{"id":1,"at":1700000000000,"user":"u"}` + "\n"}), nil
			}}},
			Progress: func(p Progress) {
				if p.Events > 10_000 {
					cancel()
				}
			},
		}
		_, err := replay.Run(ctx, func([]Column) (Writer, error) { return nil, errors.New("it was read to its end") })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that of the context", err)
		}
	})
}
