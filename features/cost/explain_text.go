package cost

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteText writes the explanation as tables for a terminal.
func (p *Explanation) WriteText(w *strings.Builder) {
	t := &table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row("EVENT OF", "TOPIC", "ENTITIES", "FILTERS", "MUTATIONS", "IDS KEPT", "WRITTEN TO", "WITH SERVICE")
	for _, s := range p.Streams {
		topic, service := "-", "-"
		if e := s.Enrich; e != nil {
			topic, service = fmt.Sprintf("%s (%s)", e.Topic, e.Format), e.Service
		}
		t.row(s.Name, strings.Join(s.Topics, ", "), s.Entities, s.Filters, s.Mutations,
			cmp.Or(s.RememberIDs, "-"), topic, service)
	}
	p.writeDedups(t)
	t.section("ENTITY", "SERIES", "BYTES, ONE EVENT", "BYTES, FULL")
	for _, e := range p.Entities {
		t.row(strings.Join(e.By, ", "), len(e.Series), e.BytesOnce, e.BytesFull)
	}
	t.section("FEATURE", "STATE", "KEYS", "TRIPS", "EXACT", "MEANS", "DEFINITION")
	for _, f := range p.Features {
		exact := "yes"
		switch {
		case f.FalsePositiveRate > 0:
			exact = "fp " + percent(f.FalsePositiveRate)
		case !f.Exact:
			exact = "±" + percent(max(f.StandardError, f.RelativeError))
		}
		t.row(f.Name, strings.Join(f.State, ", "), f.Keys, f.RoundTrips, exact, cmp.Or(f.Meaning, "-"), f.Definition)
	}
	t.section("SERIES", "GROUP", "STREAM", "ENTITY", "KEEPS", "TILE", "KEPT", "WHERE", "FEATURES")
	for _, s := range p.Series {
		keeps := s.Measure
		if s.Field != "" {
			keeps += " of " + s.Field
		}
		where := cmp.Or(s.Where, "-")
		if s.Condition != "" {
			where = strings.TrimPrefix(s.Where+", "+s.Condition, ", ")
		}
		switch {
		case s.Per != "" && s.Max > 0:
			keeps += " per " + s.Per
		case s.Per != "":
			keeps += " per range of " + s.Per
		}
		if s.Columns != nil {
			keeps += " (" + strings.Join(s.Columns, "; ") + ")"
		}
		if s.Limit != "" {
			keeps += ", " + s.Limit
		}
		t.row(s.ID, s.Group, s.Stream, strings.Join(s.By, ", "), keeps, s.Tile, s.Keep,
			where, cmp.Or(strings.Join(s.Features, ", "), "-"))
	}
	_ = t.Flush() // a Builder takes all
}

// writeDedups writes what it takes to know repetitions, if any stream does.
func (p *Explanation) writeDedups(t *table) {
	titled := false
	for _, s := range p.Streams {
		if s.Dedup == nil {
			continue
		}
		if !titled {
			t.section("ONCE BY ID", "WITHIN", "MEMORY, AN EVENT WITHIN IT", "MEMORY, A PARTITION")
			titled = true
		}
		t.row(s.Name, s.Dedup.Within, fmt.Sprintf("up to %d bytes", s.Dedup.EventBytes), fmt.Sprintf("up to %d MiB", s.Dedup.PartitionBytes>>20))
	}
}

func percent(f float64) string { return strconv.FormatFloat(100*f, 'g', 3, 64) + "%" }

// table writes rows with aligned columns.
type table struct{ *tabwriter.Writer }

// section begins a new table, with columns of its own.
func (t *table) section(titles ...any) {
	fmt.Fprintln(t)
	t.row(titles...)
}

func (t *table) row(cells ...any) {
	for i, c := range cells {
		if i > 0 {
			fmt.Fprint(t, "\t")
		}
		fmt.Fprint(t, c)
	}
	fmt.Fprintln(t)
}
