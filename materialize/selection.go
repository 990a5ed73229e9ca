package materialize

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
)

// Selection describes the wanted columns of a training set.
type Selection struct {
	Registry *features.Registry
	Inputs   []*record.Stream // the streams with events
	// Stream is the stream whose events are the rows; nil if the rows are those of Spine.
	Stream *record.Stream
	Spine  *Spine
	// Names are the wanted features and fields of Stream, which are followed by the features of Service. Without
	// either, all features are wanted that can be computed.
	Service string
	Names   []string
	Lists   bool // the output supports lists
	// HasRows reports whether the rows of a table are given; nil for those of every one.
	HasRows func(*features.Table) bool
	Quality bool // with columns about the quality of each value
	// ExcludeCurrent is that of the Replay.
	ExcludeCurrent bool

	// LeftOut is set by Columns if all features are wanted: why each of the others cannot be computed.
	LeftOut []error
}

// Columns finds the columns: the event's id, its time and its keys of the wanted features, or those of the spine; and
// then the wanted ones. A field that is named among these is not repeated.
func (s *Selection) Columns() ([]Column, error) {
	columns, err := s.first()
	if err != nil {
		return nil, err
	}
	wanted, err := s.wanted()
	if err != nil {
		return nil, err
	}
	if s.Spine == nil {
		columns = append(columns, s.timeAndKeys(columns[0].Name, wanted)...)
	}
	columns = append(columns, wanted...)
	if s.Spine != nil {
		if err := s.Spine.ask(columns); err != nil {
			return nil, err
		}
	}
	return columns, unlike(columns)
}

// first returns the columns that identify a row.
func (s *Selection) first() (columns []Column, err error) {
	if s.Spine == nil {
		if s.Stream.ID == nil {
			return nil, fmt.Errorf("stream %s has no id, which identifies the events of a training set; add id: PATH to it", s.Stream.Name)
		}
		return []Column{idColumn(s.Stream)}, nil
	}
	for i, name := range s.Spine.table.Columns() {
		columns = append(columns, Column{Name: name, of: passedOn, at: i})
	}
	return columns, nil
}

// timeAndKeys returns the columns by which the rows of events can be told apart, split by time, and joined: the event's
// time, and its keys of the wanted features.
func (s *Selection) timeAndKeys(id string, wanted []Column) (columns []Column) {
	given := map[string]bool{id: true}
	for _, name := range s.Names {
		given[name] = true
	}
	if !given[TimeColumn] {
		columns = append(columns, Column{Name: TimeColumn, of: eventTime})
	}
	for i := range wanted {
		if wanted[i].of != answered {
			continue
		}
		for _, key := range wanted[i].feature.By {
			if !given[key] {
				given[key] = true
				at := s.Stream.FieldIndex(key)
				columns = append(columns, Column{Name: key, of: ofEvent, field: s.Stream.Fields[at], at: at})
			}
		}
	}
	return columns
}

func (s *Selection) wanted() (columns []Column, err error) {
	for _, name := range s.Names {
		c, err := s.named(name)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c...)
	}
	if s.Service != "" {
		service, ok := s.Registry.Service(s.Service)
		if !ok {
			return nil, errors.New(spelling.Unknown("service", s.Service, namesOf(s.Registry.Services, func(s *features.Service) string { return s.Name })))
		}
		for _, f := range service.Features {
			if slices.Contains(s.Names, f.Name) {
				continue
			}
			if err := s.can(f); err != nil {
				return nil, err
			}
			columns = append(columns, columnsOf(f, s.Quality)...)
		}
	}
	if s.Service == "" && len(s.Names) == 0 {
		for _, f := range s.Registry.Features {
			if err := s.can(f); err != nil {
				s.LeftOut = append(s.LeftOut, err)
				continue
			}
			columns = append(columns, columnsOf(f, s.Quality)...)
		}
		if len(columns) == 0 && len(s.Registry.Features) > 0 {
			return nil, errors.New("no feature can be computed from these inputs for these rows; name features with --columns or --service to see why")
		}
	}
	return columns, nil
}

// named finds the columns with a name: features before fields.
func (s *Selection) named(name string) ([]Column, error) {
	if f, ok := s.Registry.Feature(name); ok {
		return columnsOf(f, s.Quality), s.can(f)
	}
	known := namesOf(s.Registry.Features, func(f *features.Feature) string { return f.Name })
	if s.Stream == nil {
		return nil, errors.New(spelling.Unknown("feature", name, known))
	}
	for i, f := range s.Stream.Fields {
		if f.Name == name {
			return []Column{{Name: name, of: ofEvent, field: f, at: i}}, nil
		}
		known = append(known, f.Name)
	}
	return nil, errors.New(spelling.UnknownIn(" of stream "+s.Stream.Name, "feature or field", name, known))
}

func namesOf[T any](list []T, name func(T) string) (names []string) {
	for _, t := range list {
		names = append(names, name(t))
	}
	return names
}

// can returns nil if the feature can be answered for each row.
func (s *Selection) can(f *features.Feature) error {
	for _, stream := range streamsOf(f) {
		if !slices.Contains(s.Inputs, stream) {
			return fmt.Errorf("feature %q reads events of stream %s, which has no input; add --input %s=FILE", f.Name, stream.Name, stream.Name)
		}
	}
	for _, t := range f.Tables() {
		if s.HasRows != nil && !s.HasRows(t) {
			return fmt.Errorf("feature %q looks up rows of table %s, which are in topic %s; add --table %s=FILE", f.Name, t.Name, t.Rows.Topic, t.Name)
		}
	}
	if !s.Lists && listed(f) {
		return fmt.Errorf("feature %q is a list, which a CSV cell cannot hold; write a .parquet file", f.Name)
	}
	if s.Stream != nil && f.InHand != nil && f.InHand != s.Stream {
		return fmt.Errorf("feature %q reads the event of stream %s, and the rows are events of %s", f.Name, f.InHand.Name, s.Stream.Name)
	}
	if some, all := excludes(f); s.ExcludeCurrent && some && !all {
		return fmt.Errorf("feature %q leaves the event itself out of some of its windows, and not of others, so there is no value before the event: "+
			"leave it out of --columns, or leave out --exclude-current", f.Name)
	}
	for _, key := range asks(f) {
		if s.Spine != nil {
			if columns := s.Spine.table.Columns(); !slices.Contains(columns, key.Name) {
				return s.Spine.table.At(1, fmt.Errorf("feature %q needs %s: %s", f.Name, key.Name, spelling.Unknown("column", key.Name, columns)))
			}
			continue
		}
		at := s.Stream.FieldIndex(key.Name)
		if at < 0 {
			return fmt.Errorf("feature %q needs %s, which stream %s does not have", f.Name, key.Name, s.Stream.Name)
		}
		if has := s.Stream.Fields[at]; has.Type != key.Type || has.Scale != key.Scale {
			return fmt.Errorf("feature %q needs %s of type %s, but in stream %s it is of type %s", f.Name, key.Name, typeName(key), s.Stream.Name, typeName(has))
		}
	}
	return nil
}

func typeName(f record.Field) string {
	if f.Scale > 0 {
		return fmt.Sprintf("%s of scale %d", f.Type, f.Scale)
	}
	return f.Type.String()
}

// asks returns the fields that a row must have to ask for a feature: its keys and, if the feature needs a member, that
// field.
func asks(f *features.Feature) (fields []record.Field) {
	for _, name := range f.By {
		key := f.Key(name)
		fields = append(fields, record.Field{Name: name, Type: key.Type, Scale: key.Scale, Path: []string{name}})
	}
	if f.Membership() == aggregate.MembersRequired {
		member := f.Stream.Fields[f.Stream.FieldIndex(f.Field)]
		fields = append(fields, record.Field{Name: member.Name, Type: member.Type, Scale: member.Scale, Path: []string{member.Name}})
	}
	return fields
}

// streamsOf returns the streams that a feature depends on.
func streamsOf(f *features.Feature) (streams []*record.Stream) {
	parts := f.Parts()
	switch {
	case f.Stream == nil && len(parts) == 0: // a row of a table
		return nil
	case len(parts) == 0:
		return []*record.Stream{f.Stream}
	}
	for _, part := range parts {
		streams = append(streams, streamsOf(part)...)
	}
	return streams
}

// unlike returns nil if no two columns have the same name.
func unlike(columns []Column) error {
	known := map[string]Column{}
	for _, c := range columns {
		first, ok := known[c.Name]
		known[c.Name] = c
		switch {
		case !ok:
		case first.of == passedOn:
			return fmt.Errorf("column %q is in the spine and also in the output; rename the spine's column", c.Name)
		case first.of == eventTime:
			return fmt.Errorf("column %q is repeated; it holds the events' time", c.Name)
		case first.of == identity:
			return fmt.Errorf("column %q is repeated; the first column is always %s, the id", c.Name, c.Name)
		case c.of > answered:
			return fmt.Errorf("column %q is repeated; it also holds the status of feature %q, so rename the other one", c.Name, c.feature.Name)
		default:
			return fmt.Errorf("column %q is repeated", c.Name)
		}
	}
	return nil
}
