package features

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/record"
)

// Version returns a hash of the definitions' meaning: definitions that differ only in their files, order or form have
// the same.
func (r *Registry) Version() string { return r.version }

// Same reports whether other definitions mean the same and read the same files.
func (r *Registry) Same(other *Registry) bool {
	return r.version == other.version &&
		slices.EqualFunc(r.Tables, other.Tables, func(a, b *Table) bool { return a.Identity() == b.Identity() })
}

// makeVersion writes the definitions in canonical form and hashes them.
func (r *Registry) makeVersion() {
	var b strings.Builder
	for _, stream := range r.Streams {
		for _, s := range stream.Sources() {
			fmt.Fprintf(&b, "stream %s %s %s %q %s %q %d %s %t\n", s.Name, s.Topic, s.Format, s.Timestamp.Path, s.Timestamp.Form,
				s.ID, s.RememberIDs, s.MaxFuture, s.LateToDeadLetter)
			if s.Dedup > 0 {
				fmt.Fprintf(&b, "dedup %s\n", s.Dedup)
			}
			if s.Each != nil {
				fmt.Fprintf(&b, "each %q\n", s.Each)
			}
			if s.Match != nil {
				fmt.Fprintf(&b, "match %q\n", s.Match.Text)
			}
			if e := r.Enrichment(s); e != nil {
				fmt.Fprintf(&b, "enrich %s %s %t\n", e.Service.Name, e.Topic, e.Avro)
			}
			for _, f := range s.Fields {
				b.WriteString(fieldVersion(&f) + "\n")
			}
		}
	}
	for _, t := range r.Tables {
		b.WriteString(t.Meaning() + "\n")
	}
	for _, f := range r.Features {
		fmt.Fprintf(&b, "feature %s %s %q %q\n", f.Name, f.Definition, f.Description, f.Owner)
	}
	for _, s := range r.Services {
		fmt.Fprintf(&b, "service %s", s.Name)
		for _, f := range s.Features {
			b.WriteString(" " + f.Name)
		}
		b.WriteByte('\n')
	}
	r.version = hashID("definitions 1\n"+b.String(), versionLength)
}

// fieldVersion writes a field in canonical form.
func fieldVersion(f *record.Field) string {
	text := fmt.Sprintf("field %s %s %d %s %t %d %q", f.Name, f.Type, f.Scale, f.Form, f.Required, f.MaxBytes, f.Path) + f.Reading()
	if f.Expr != nil {
		text += fmt.Sprintf(" %q", f.Expr.Text)
	}
	return text
}
