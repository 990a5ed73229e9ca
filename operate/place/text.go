package place

import (
	"fmt"
	"strings"

	"github.com/weir-stream/weir/pipeline/fetch"
)

// WriteText describes the steps.
func WriteText(text *strings.Builder, steps []Step) {
	for i := range steps {
		steps[i].write(text)
	}
}

func (s *Step) write(text *strings.Builder) {
	fmt.Fprintf(text, "%v: to offset %d of the log, which %s\n", s.Partition, s.To.Offset, holds(&s.Log))
	if s.First > 0 {
		fmt.Fprintf(text, "  %s no progress yet, and will begin there\n", shards(s.First, "has", "have"))
	}
	if s.Adopting > 0 {
		fmt.Fprintf(text, "  %s another log: %v; the state is kept, and further records are applied from %v\n",
			shards(s.Adopting, "has applied", "have applied"), s.Was, s.Log.ID)
		text.WriteString("  records that both logs hold will count twice\n")
	}
	if s.Forward > 0 {
		fmt.Fprintf(text, "  %s forward\n", shards(s.Forward, "moves", "move"))
	}
	if s.Skipped > 0 {
		fmt.Fprintf(text, "  up to %s will NOT be applied; features say so in complete_since\n", offsets(s.Skipped))
	}
	if s.Back > 0 {
		fmt.Fprintf(text, "  %s back: up to %s will be applied AGAIN, and count twice\n", shards(s.Back, "moves", "move"), offsets(s.Repeated))
	}
	if s.Following > 0 {
		fmt.Fprintf(text, "  %s there under a later leader epoch, and will follow the present leader, of epoch %d\n",
			shards(s.Following, "is", "are"), s.To.Epoch)
	}
	if s.Staying > 0 {
		fmt.Fprintf(text, "  %s there or further, and will stay\n", shards(s.Staying, "is", "are"))
	}
}

func shards(n int, one, more string) string {
	if n == 1 {
		return "1 shard " + one
	}
	return fmt.Sprintf("%d shards %s", n, more)
}

func offsets(n int64) string {
	if n == 1 {
		return "1 offset"
	}
	return fmt.Sprintf("%d offsets", n)
}

// holds describes the offsets of a log.
func holds(l *fetch.Log) string {
	if l.Start == l.End {
		return fmt.Sprintf("is empty at offset %d", l.End)
	}
	return fmt.Sprintf("holds %d to %d", l.Start, l.End-1)
}
