package inspect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weir-stream/weir/internal/spelling"
)

// Keys are the keys of an entity.
type Keys []Key

// MarshalJSON makes an object of the keys.
func (keys Keys) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string][]Key{"keys": keys})
}

// WriteText writes the keys in words.
func (keys Keys) WriteText(out *strings.Builder) {
	for i, k := range keys {
		if i > 0 {
			out.WriteByte('\n')
		}
		k.writeText(out)
	}
}

func (k *Key) writeText(text *strings.Builder) {
	for i, name := range k.By {
		if i > 0 {
			text.WriteByte(' ')
		}
		fmt.Fprintf(text, "%s=%s", name, k.Entity[name])
	}
	fmt.Fprintf(text, "\n  key       %s\n  shard     %d%s\n", visible(k.Key), k.Shard, k.progress())
	switch {
	case k.Bytes == 0 && k.Damage == "":
		text.WriteString("  holds     nothing\n")
	case k.Bytes == 0:
	case k.untold:
		fmt.Fprintf(text, "  holds     %s\n", spelling.Counted(k.Bytes, "byte"))
	case k.TimeToLive == nil:
		fmt.Fprintf(text, "  holds     %s, forever\n", spelling.Counted(k.Bytes, "byte"))
	default:
		fmt.Fprintf(text, "  holds     %s, for %s more\n", spelling.Counted(k.Bytes, "byte"), time.Duration(*k.TimeToLive)*time.Second)
	}
	switch {
	case k.Damage != "" && k.untold:
		fmt.Fprintf(text, "  damaged   %s\n", k.Damage)
	case k.Damage != "":
		fmt.Fprintf(text, "  damaged   %s; see weir state drop\n", k.Damage)
	}
	for _, l := range k.Lost {
		of := "all series"
		if len(l.Series) > 0 {
			of = "series " + strings.Join(l.Series, ", ")
		}
		refill := ""
		if l.Refilling {
			refill = "; a refill is under way or was interrupted: see weir state drop --refill"
		}
		fmt.Fprintf(text, "  lost      what records up to %s changed in %s%s\n", spelling.Moment(l.Until), of, refill)
	}
	for i := range k.Series {
		k.Series[i].writeText(text)
	}
	for _, c := range k.Children {
		fmt.Fprintf(text, "\n  state by %s, which this key holds: %s in %s\n",
			strings.Join(c.By, ", "), spelling.Counted(c.Bytes, "byte"), spelling.Counted(c.Sections, "section"))
	}
	for _, u := range k.Unknown {
		fmt.Fprintf(text, "\n  series with tag %s, which these definitions do not have: %s in %s\n",
			u.Tag, spelling.Counted(u.Bytes, "byte"), spelling.Counted(u.Sections, "section"))
	}
}

func (k *Key) progress() string {
	text := ""
	for _, p := range k.Progress {
		text += fmt.Sprintf(", %s/%d at %d", p.Topic, p.Partition, p.Applied)
	}
	if k.Newest > 0 {
		text += ", newest record of " + spelling.Moment(k.Newest)
	}
	return text
}

func (s *Series) writeText(text *strings.Builder) {
	fmt.Fprintf(text, "\n  series %s: %s", s.ID, s.Measure)
	if s.Field != "" {
		fmt.Fprintf(text, " of %s", s.Field)
	}
	if s.Per != "" {
		fmt.Fprintf(text, " per %s", s.Per)
	}
	fmt.Fprintf(text, " in %s", s.Stream)
	if s.Where != "" {
		fmt.Fprintf(text, " where %s", s.Where)
	}
	if s.Condition != "" {
		fmt.Fprintf(text, " if %s", s.Condition)
	}
	fmt.Fprintf(text, "\n  as %s, tile %s, kept %s: %s in %s\n", s.State, s.Tile, s.Keep, spelling.Counted(s.Bytes, "byte"), spelling.Counted(s.Sections, "section"))
	fmt.Fprintf(text, "  for %s\n", cmp.Or(strings.Join(s.Features, ", "), "no feature any more"))
	if s.CutOff != nil {
		fmt.Fprintf(text, "    events up to %s were cut off by max %d\n", spelling.Moment(*s.CutOff), s.Max)
	}
	table := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	for _, e := range s.Entries {
		fmt.Fprintf(table, "    %s\n", strings.Join(e.cells(), "\t"))
	}
	_ = table.Flush() // a Builder takes all
}

// maxTimes is how many of a member's tiles are named.
const maxTimes = 5

// cells returns an entry in words.
func (e *Entry) cells() (cells []string) {
	if e.Key != nil {
		cells = append(cells, visible(*e.Key))
	}
	if e.Member != nil {
		cells = append(cells, visible(*e.Member))
	}
	var times []string
	for i, t := range e.Times {
		if i == maxTimes {
			times = append(times, fmt.Sprintf("and %d more", len(e.Times)-i))
			break
		}
		times = append(times, spelling.Moment(t))
	}
	if len(times) > 0 {
		cells = append(cells, strings.Join(times, " "))
	}
	if e.Value != nil {
		cells = append(cells, visible(*e.Value))
	}
	if e.Estimate != nil {
		cells = append(cells, "about "+spelling.Counted(int(*e.Estimate), "value"), fmt.Sprintf("%s set", spelling.Counted(e.Registers, "register")))
	}
	if m := e.Moments; m != nil {
		cells = append(cells, spelling.Counted(int(m.Number), "value"), fmt.Sprintf("mean %g", m.Mean), fmt.Sprintf("squares %g", m.Squares))
	}
	if e.Hashes > 0 || e.Bits > 0 {
		cells = append(cells, spelling.Counted(e.Hashes, "value")+" as hashes", spelling.Counted(e.Bits, "bit")+" of filters set")
	}
	if len(e.Columns) > 0 {
		var columns []string
		for _, name := range slices.Sorted(maps.Keys(e.Columns)) {
			columns = append(columns, visible(name)+": "+visible(e.Columns[name]))
		}
		cells = append(cells, strings.Join(columns, ", "))
	}
	return cells
}

// visible is spelling.Visible, in quotes if there is nothing to see.
func visible(text string) string { return cmp.Or(spelling.Visible(text), `""`) }
