package diff

import (
	"fmt"
	"strings"

	"github.com/weir-stream/weir/features/window"
)

// WriteText writes the difference as text: + is added, - removed, ~ changed.
func (d *Difference) WriteText(b *strings.Builder) {
	before := b.Len()
	section := func(name string, changes []Change) {
		if len(changes) > 0 {
			fmt.Fprintf(b, "%s\n", name)
		}
		for _, c := range changes {
			fmt.Fprintf(b, "  %s\n", strings.Join(append([]string{c.mark() + " " + c.Name}, c.Changes...), "\n      "))
		}
	}
	section("streams", d.Streams)
	if len(d.Features) > 0 {
		b.WriteString("features\n")
	}
	for i := range d.Features {
		f := &d.Features[i]
		fmt.Fprintf(b, "  %s %s: %s\n", f.mark(), f.Name, f.said())
		for _, c := range f.Changes {
			fmt.Fprintf(b, "      %s\n", c)
		}
	}
	section("services", d.Services)
	section("enriched events", d.Enriched)
	if len(d.Cost) > 0 {
		b.WriteString("cost\n")
	}
	for _, c := range d.Cost {
		fmt.Fprintf(b, "  %s: %d -> %d\n", c.What, c.Before, c.After)
	}
	if b.Len() == before && d.Backfill == nil && d.Memory == nil {
		b.WriteString("nothing changes but perhaps descriptions\n")
	}
	if d.Memory != nil {
		d.Memory.writeText(b)
	}
	if d.Backfill != nil {
		d.Backfill.writeText(b)
	}
}

func (c *Change) mark() string {
	switch {
	case c.New:
		return "+"
	case c.Gone:
		return "-"
	default:
		return "~"
	}
}

// said returns the change of a feature on one line.
func (f *Feature) said() string {
	text := f.Effect()
	if len(f.Services) > 0 {
		text += " (in " + strings.Join(f.Services, ", ") + ")"
	}
	return text
}

// Effect says what those who ask for the feature see during the change and after it.
func (f *Feature) Effect() string {
	complete := "complete once it is filled"
	if f.Needs > 0 {
		complete += ", or after " + window.FormatMilliseconds(f.Needs)
	}
	switch {
	case f.Gone:
		return "gone"
	case f.State == All:
		return "all of its state is there"
	case f.State == Some && f.fewer:
		return "answers from its state, which has fewer values than it needs: " + complete
	case f.State == Some && f.Tile > 0:
		return fmt.Sprintf("answers from its tiles of %s, which reach back %s: %s",
			window.FormatMilliseconds(f.Tile), window.FormatMilliseconds(f.Has), complete)
	case f.State == Some:
		return fmt.Sprintf("answers from its state, which reaches back %s: %s", window.FormatMilliseconds(f.Has), complete)
	case f.New:
		return "new, from nothing: " + complete
	}
	return "starts over from nothing, and answers less than now: " + complete
}
