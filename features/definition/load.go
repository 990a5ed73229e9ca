// Package definition reads definitions in YAML and compiles them to a registry: streams, features
// in one line or in the long form, macros and services. Mistakes are reported as Findings, each
// with its location.
package definition

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
)

// Load reads definitions from files and from the *.yaml and *.yml files of folders, and compiles
// them. They may be in any order and refer to each other across files. The error is Findings: all
// mistakes.
func Load(paths ...string) (*features.Registry, error) { return LoadFS(hostFiles{}, paths...) }

// LoadFS is Load on a file system.
func LoadFS(fsys fs.FS, paths ...string) (*features.Registry, error) {
	return newLoader().load(fsys, paths)
}

// LoadLatest is Load with a check against a schema registry: the paths that streams read in records that name schemas
// must be in the latest schema of their topic.
func LoadLatest(latest func(topic string) (record.Registered, error), paths ...string) (*features.Registry, error) {
	l := newLoader()
	l.streams.latest = latest
	return l.load(hostFiles{}, paths)
}

func (l *loader) load(fsys fs.FS, paths []string) (*features.Registry, error) {
	l.streams.readFile = func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) }
	for _, p := range paths {
		l.read(fsys, p)
	}
	return l.compile()
}

// LoadFiles is Load on the texts of the files that a registry was loaded from. It reads no others.
func LoadFiles(files features.Files) (*features.Registry, error) {
	return LoadFilesWithin(context.Background(), files)
}

// LoadFilesWithin is LoadFiles until a context ends, for files of somebody who must not keep the process busy. The error
// is then that of the context.
func LoadFilesWithin(ctx context.Context, files features.Files) (r *features.Registry, err error) {
	l := newLoader()
	l.interrupted = ctx.Err
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interruption:
			r, err = nil, p.error
		default:
			panic(p)
		}
	}()
	l.streams.readFile = func(name string) ([]byte, error) {
		for _, s := range files.Schemas {
			if s.Path == name {
				return []byte(s.Text), nil
			}
		}
		return nil, fs.ErrNotExist
	}
	for _, s := range files.Definitions {
		l.collect(s.Path, []byte(s.Text))
	}
	return l.compile()
}

// interruption ends a loader whose time is up, from within whatever it does: nothing of it is used.
type interruption struct{ error }

// NamesIn returns the names of the features that a file defines, sorted, even if other parts of it are wrong.
func NamesIn(name string, data []byte) []string {
	l := newLoader()
	l.collect(name, data)
	return append([]string{}, slices.Sorted(maps.Keys(l.features))...)
}

// loader collects definitions, and has them compiled in an order in which each finds what it needs.
type loader struct {
	*compiler
	services map[string]named
}

// named is a definition with a name.
type named struct {
	name    word
	node    node
	comment string // right above it
}

func newLoader() *loader {
	r := &reader{interrupted: func() error { return nil }}
	s := &streams{reader: r, registry: &features.Registry{}, written: map[string]named{}}
	return &loader{
		compiler: &compiler{
			macros:   &macros{reader: r, defined: map[string]*macro{}},
			streams:  s,
			tables:   &tables{s, map[string]named{}, map[string]bool{}},
			features: map[string]named{}, compiled: map[string]*features.Feature{}, series: features.NewCompiler(),
			byTypes: map[string]byType{}, wheres: map[*record.Stream]map[string]*expr.Expr{},
		},
		services: map[string]named{},
	}
}

// read collects the definitions of a file or a folder.
func (l *loader) read(fsys fs.FS, name string) {
	failed := func(name string, err error) {
		l.report(location{file: name}, "cannot read definitions: %s", cause(err))
	}
	names, err := filesOf(fsys, name)
	if err != nil {
		failed(name, err)
		return
	}
	if names == nil {
		l.report(location{file: name}, "no *.yaml or *.yml file in the folder")
	}
	for _, n := range names {
		if slices.ContainsFunc(l.streams.registry.Files.Definitions, func(f features.File) bool { return path.Clean(f.Path) == path.Clean(n) }) {
			continue // a folder was given and a file in it, or a path twice
		}
		data, err := fs.ReadFile(fsys, n)
		if err != nil {
			failed(n, err)
			continue
		}
		l.collect(n, data)
	}
}

// cause returns a file system error without its path, which findings name already.
func cause(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

// sectionKeys are the keys of a definitions file.
var sectionKeys = []string{"streams", "tables", "lists", "features", "services", "macros"}

// collect collects the definitions of one file by name.
func (l *loader) collect(name string, data []byte) {
	l.streams.registry.Files.Definitions = append(l.streams.registry.Files.Definitions, features.File{Path: name, Text: string(data)})
	sections := map[string]map[string]named{"streams": l.streams.written, "tables": l.tables.written, "lists": l.tables.written, "features": l.features, "services": l.services}
	for _, document := range l.documents(name, data) {
		if document.Kind == yaml.ScalarNode && document.Tag == "!!null" {
			continue
		}
		found := l.keyed(document, "definitions", sectionKeys...)
		for _, key := range sectionKeys { // in one order, because tables and lists share their names
			section, ok := found[key]
			if !ok {
				continue
			}
			if key == "macros" {
				for _, e := range l.entries(section, key, "macro") {
					l.macro(e)
				}
				continue
			}
			noun := strings.TrimSuffix(key, "s")
			for _, e := range l.entries(section, key, noun) {
				if first, ok := sections[key][e.key.text]; ok {
					l.report(e.key.location, duplicate, noun, e.key.text, first.name.location)
					continue
				}
				sections[key][e.key.text] = named{e.key, e.value, e.comment}
				if key == "lists" {
					l.tables.lists[e.key.text] = true
				}
				if !isName(e.key.text) {
					l.report(e.key.location, "bad name %q of a %s: "+nameRule, e.key.text, noun)
				}
				if (key == "features" || key == "tables" || key == "lists") && e.key.text == expr.EventName {
					l.report(e.key.location, "%q is not allowed as the name of a %s: in expressions over features it is the event being scored", e.key.text, noun)
				}
			}
		}
	}
}

const nameRule = "a name has letters, digits and '_', and begins with no digit"

// byName are definitions sorted by name.
func byName(section map[string]named) []named {
	return slices.SortedFunc(maps.Values(section), func(a, b named) int { return cmp.Compare(a.name.text, b.name.text) })
}

// compile makes the registry from what was collected.
func (l *loader) compile() (*features.Registry, error) {
	if files := l.streams.registry.Files.Definitions; len(files) > 0 && len(l.findings)+len(l.streams.written)+len(l.tables.written)+len(l.features)+len(l.services)+len(l.defined) == 0 {
		l.report(location{file: files[0].Path}, "nothing is defined")
	}
	l.checkMacros()
	for _, d := range byName(l.streams.written) {
		l.streams.registry.Streams = append(l.streams.registry.Streams, l.streams.streamOf(d))
	}
	l.tables.all()
	for _, d := range byName(l.features) {
		if f := l.featureNamed(d.name.text); f != nil {
			l.streams.registry.Features = append(l.streams.registry.Features, f)
		}
	}
	for _, d := range byName(l.services) {
		l.streams.registry.Services = append(l.streams.registry.Services, l.service(d))
	}
	for _, e := range l.streams.enriched {
		(&enrichments{l.streams, l.services}).enrich(e)
	}
	if len(l.findings) > 0 {
		return nil, l.findings.sorted()
	}
	l.series.Finish(l.streams.registry)
	return l.streams.registry, nil
}

// service compiles a list of features.
func (l *loader) service(d named) *features.Service {
	s := &features.Service{Name: d.name.text}
	if d.node.Kind != yaml.SequenceNode || len(d.node.Content) == 0 {
		l.report(d.node.location(), "service %q must be a list of features, not %s", s.Name, describe(d.node))
		return s
	}
	seen := map[string]bool{}
	for _, w := range l.list(d.node, "the service") {
		_, defined := l.features[w.text]
		switch {
		case !defined:
			l.report(w.location, "%s", spelling.Unknown("feature", w.text, slices.Collect(maps.Keys(l.features))))
		case seen[w.text]:
			l.report(w.location, "feature %q is listed twice in service %q", w.text, s.Name)
		default:
			seen[w.text] = true
			f, _ := l.streams.registry.Feature(w.text)
			s.Features = append(s.Features, f)
		}
	}
	return s
}
