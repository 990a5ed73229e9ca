package definition

import (
	"errors"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// format compiles the format of a stream's records: its name, or a mapping with its type and
// options. It is nil if it reported a finding.
func (l *streams) format(n node) record.Format {
	if n.Kind == yaml.ScalarNode {
		w, ok := l.scalar(n, "format")
		if !ok {
			return nil
		}
		return l.formatOf(w, nil)
	}
	for _, e := range l.entries(n, "format", "key") {
		if e.key.text == "type" {
			w, ok := l.scalar(e.value, "type")
			if !ok {
				return nil
			}
			return l.formatOf(w, &n)
		}
	}
	if n.Kind == yaml.MappingNode {
		l.report(n.location(), "format needs type: %s", spelling.Alternatives(record.FormatNames()))
	}
	return nil
}

// formatOf compiles a format with the options of a mapping; nil if there is none.
func (l *streams) formatOf(name word, mapping *node) record.Format {
	spec, ok := record.FindFormat(name.text)
	if !ok {
		l.report(name.location, "%s", spelling.Unknown("format", name.text, record.FormatNames()))
		return nil
	}
	known := []string{"type"}
	for _, o := range spec.Options {
		known = append(known, o.Name)
	}
	findings, given := len(l.findings), map[string]node{}
	if mapping != nil {
		given = l.keyed(*mapping, "format "+spec.Name, known...)
	}
	options := record.Options{Texts: map[string][]string{}, Files: map[string][]byte{}}
	for _, o := range spec.Options {
		switch n, ok := given[o.Name]; {
		case ok && o.List:
			for _, w := range l.list(n, o.Name) {
				l.option(o, w, options)
			}
		case ok:
			if w, ok := l.scalar(n, o.Name); ok {
				l.option(o, w, options)
			}
		}
		if o.Required && options.Texts[o.Name] == nil {
			l.report(name.location, "format %s needs %s: %s", spec.Name, o.Name, o.Describes)
		}
	}
	if len(l.findings) > findings {
		return nil
	}
	f, err := spec.New(options)
	if err != nil {
		at := name.location
		if bad, ok := errors.AsType[*record.OptionError](err); ok {
			at = given[bad.Option].location()
		}
		l.report(at, "%s", err)
		return nil
	}
	return f
}

// option reads one value of an option, and the file that it names.
func (l *streams) option(o record.Option, w word, options record.Options) {
	options.Texts[o.Name] = append(options.Texts[o.Name], w.text)
	if o.File == "" {
		return
	}
	if path.Ext(w.text) != o.File {
		l.report(w.location, "bad %s %q: it must name a file that ends with %s", o.Name, w.text, o.File)
		return
	}
	content, err := l.beside(w.location.file, w.text)
	if err != nil {
		l.report(w.location, "cannot read %s: %s", w.text, cause(err))
	}
	options.Files[w.text] = content
}

// pathRead is a path that a stream reads in its records, and the type of the value: Null for any.
type pathRead struct {
	path []string
	typ  value.Type
	at   location
}

// checkFormat checks that values can occur where the stream reads them, and that no other stream
// reads the records of its topic in another format. what names the stream, or the table.
func (l *streams) checkFormat(what string, d named, s *record.Stream) {
	if s.Format == nil {
		return
	}
	format := l.withLatest(what, d, s)
	for _, r := range l.reads {
		if err := format.Check(r.path, r.typ); err != nil {
			l.report(r.at, "%s cannot read %s: %s", what, strings.Join(r.path, "."), err)
		}
	}
	for _, other := range l.registry.Streams {
		if in := other.In(s.Topic); in != nil && in.Format != nil && in.Format.String() != s.Format.String() {
			l.report(d.name.location, "stream %q and %s read topic %q in different formats; all records of a topic have the same format, with the same options",
				other.Name, what, s.Topic)
			return
		}
	}
}

// withLatest returns the stream's format with the latest schema of its topic, if Load checks against that.
func (l *streams) withLatest(what string, d named, s *record.Stream) record.Format {
	named, ok := s.Format.(record.RegisteredFormat)
	if l.latest == nil || !ok || !named.Registered() {
		return s.Format
	}
	schema, err := l.latest(s.Topic)
	if err != nil {
		l.report(d.name.location, "%s: the latest schema of topic %q cannot be fetched: %v", what, s.Topic, err)
		return s.Format
	}
	format, err := named.SchemaOf(schema)
	if err != nil {
		l.report(d.name.location, "%s: the latest schema of topic %q cannot be used: %v", what, s.Topic, err)
		return s.Format
	}
	return format
}
