package cost

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteText writes the sizing as tables for a terminal.
func (z *Sizing) WriteText(w *strings.Builder) {
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row("TOPIC", "EVENTS A SECOND", "KEYS AN EVENT", "PARTITIONS")
	for _, s := range z.Topics {
		t.row(s.Topic, amount(s.Events), amount(s.Keys), s.Partitions)
	}
	t.section("ENTITY", "NUMBER", "EVENTS OF ONE", "BYTES OF ONE", "GIB OF ALL")
	for _, e := range z.Entities {
		t.row(strings.Join(e.By, ", "), amount(e.Number), amount(e.Events), amount(e.Bytes), gibibytes(e.Number*e.Bytes))
	}
	t.section("HAVE", "", "FOR")
	t.row("Redis masters", z.Masters, fmt.Sprintf("the greater of %d for %s GiB of state in %s GiB each, and %d for %s busy cores; a replica for each",
		z.MastersByMemory, gibibytes(z.Memory), gibibytes(z.load.Memory), z.MastersByCPU, cores(z.RedisCores)))
	t.row("shards", z.Shards, "the setting")
	t.row("processor cores", z.Processors, cores(z.ProcessorCores)+" busy; over two processes or more")
	if z.APIs > 0 {
		t.row("API cores", z.APIs, fmt.Sprintf("%s busy with %s questions a second of %d features in %d keys; over two processes or more",
			cores(z.APICores), amount(z.load.Questions), z.QuestionValues, z.QuestionKeys))
	}
	_ = t.Flush() // a Builder takes all
}

// amount writes a number in three significant digits.
func amount(n float64) string {
	n, _ = strconv.ParseFloat(strconv.FormatFloat(n, 'e', 2, 64), 64) // first, because 999.9 is 1k
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= u.size {
			return strconv.FormatFloat(n/u.size, 'f', -1, 64) + u.name
		}
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

func gibibytes(n float64) string { return strconv.FormatFloat(n/(1<<30), 'f', 1, 64) }

func cores(n float64) string { return strconv.FormatFloat(n, 'f', 2, 64) }
