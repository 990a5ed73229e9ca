package features

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/weir-stream/weir/features/kinds"
)

const (
	defaultKeep = time.Hour
	maxMax      = 1_000_000
	// defaultLogMax is how many events the log of an entity keeps.
	defaultLogMax = 1000
)

// feature compiles a feature; it is nil where something is wrong with it.
func (l *loader) feature(n named) *Feature {
	if n.node.has("expr") {
		return l.derived(n)
	}
	d := &definition{name: n.name, place: n.node.place()}
	f := l.define(d, func(d *definition) kinds.Kind {
		switch n.node.Kind {
		case yaml.ScalarNode:
			if w, ok := l.scalar(n.node, "a feature"); ok {
				return l.oneLine(d, w)
			}
		case yaml.MappingNode:
			return l.longForm(d, n.node)
		default:
			l.report(n.node.place(), "a feature must be one line or a mapping, not %s", describe(n.node))
		}
		return nil
	})
	if f != nil && !d.description.given() {
		f.Description = n.comment
	}
	return f
}

// define compiles a definition that read fills in. What read returns is nil
// where the function is not known.
func (l *loader) define(d *definition, read func(*definition) kinds.Kind) *Feature {
	before := len(l.findings)
	kind := read(d)
	if kind == nil {
		return nil
	}
	f, in := l.typed(d, kind)
	if len(l.findings) > before || !settled(f.Stream.Fields) {
		return nil
	}
	if err := l.compiler.add(f, in); err != nil {
		l.report(d.place, "%s", err)
		return nil
	}
	return f
}

// kind finds the kind of a function and its method, nil for none. Macros are
// what else could be called.
func (l *loader) kind(d *definition, macros ...string) kinds.Kind {
	name, method := strings.ToLower(d.function.text), strings.ToLower(d.method.text)
	if k, ok := kinds.Find(name, method); ok {
		return k
	}
	names := functionNames()
	var methods []string
	for _, k := range kinds.All {
		s := k.Spec()
		if s.Name == name && s.Method != "" {
			methods = append(methods, s.Method)
		}
	}
	switch {
	case !slices.Contains(names, name):
		l.report(d.function.place, "%s", unknown("function", d.function.text, append(names, macros...)))
	case methods == nil:
		l.report(d.method.place, "%s has no methods", name)
	default:
		l.report(d.method.place, "%s", unknownIn(" of "+name, "method", d.method.text, methods))
	}
	return nil
}

// typed gives the words of a definition their meaning.
func (l *loader) typed(d *definition, kind kinds.Kind) (*Feature, inputs) {
	spec := kind.Spec()
	f := &Feature{
		Name: d.name.text, Description: d.description.text, Owner: d.owner.text,
		Kind: kind, Keep: defaultKeep,
	}
	f.Window = l.window(d, kind)
	if d.keep.given() {
		f.Keep, _ = l.duration(d.keep)
	}
	l.maximum(d, f, spec)
	stream, ok := l.registry.Stream(d.stream.text)
	if !ok {
		if d.stream.given() {
			l.report(d.stream.place, "%s", unknown("stream", d.stream.text, slices.Collect(maps.Keys(l.streams))))
		}
		return f, inputs{}
	}
	f.Stream = stream
	l.entity(d, f)
	in := inputs{field: l.measured(d, f, spec)}
	in.condition = l.parameters(d, f, spec)
	if d.where.given() && settled(stream.Fields) {
		if in.where = l.where(stream, d.where); in.where != nil {
			f.Where = in.where.Source
		}
	}
	return f, in
}

// window reads a feature's window and tile.
func (l *loader) window(d *definition, kind kinds.Kind) Window {
	if d.tile.given() && strings.EqualFold(d.tile.text, "exact") {
		return l.exactWindow(d)
	}
	if t := l.measuredType(d); fromLog(kind, t) {
		if d.tile.given() {
			what := kind.Spec().Name
			if _, tiled := kind.(kinds.Tiled); tiled {
				what += " of a " + t.String()
			}
			l.report(d.tile.place, "tile %s does not apply to %s, which is answered from the log; leave tile out, or write tile: exact",
				d.tile.text, what)
		}
		return l.exactWindow(d)
	}
	if d.bounds.given() {
		l.report(d.bounds.place, "bounds are those of an exact window: add tile: exact")
	}
	w := l.tiledWindow(d, kind)
	if d.delay.given() && kind.Spec().Method == "last_seen" {
		l.report(d.delay.place, "delay does not apply to method last_seen, which knows of each value only when it was last met; add tile: exact")
		return w
	}
	l.delay(d, &w)
	if w.Delay > 0 && w.Tiled() && w.Delay%w.Tile != 0 {
		l.report(d.delay.place, "delay %s is no multiple of the tile %s; make it one, or use tile: exact",
			formatDuration(w.Delay), formatDuration(w.Tile))
	}
	return w
}

// measuredType is the type of the definition's field, Null where there is none.
func (l *loader) measuredType(d *definition) kinds.Type {
	if stream, ok := l.registry.Stream(d.stream.text); ok {
		if i := fieldIndex(stream, d.field.text); i >= 0 {
			return stream.Fields[i].Type
		}
	}
	return kinds.Null
}

// exactWindow reads a window that is cut to the millisecond.
func (l *loader) exactWindow(d *definition) Window {
	w := Window{Exact: true}
	switch size, err := parseDuration(d.window.text); {
	case !d.window.given():
	case strings.EqualFold(d.window.text, "lifetime"):
	case err != nil:
		l.report(d.window.place, "%s", err)
	case size == 0:
		l.report(d.window.place, "a window must be longer than 0")
	default:
		w.Size = size
	}
	if d.bounds.given() {
		edges, ok := bounds[d.bounds.text]
		if !ok {
			l.report(d.bounds.place, "%s", unknown("bounds", d.bounds.text, slices.Collect(maps.Keys(bounds))))
		}
		w.ClosedLeft, w.OpenRight = edges.closedLeft, edges.openRight
	}
	l.delay(d, &w)
	return w
}

// delay reads by how much a window ends before the moment asked for.
func (l *loader) delay(d *definition, w *Window) {
	if !d.delay.given() {
		return
	}
	if w.Size == 0 && d.window.given() {
		l.report(d.delay.place, "delay does not apply to a lifetime")
		return
	}
	w.Delay, _ = l.duration(d.delay)
}

// tiledWindow reads a rolling window in tiles, or of a kind whose state has an
// exact edge of its own.
func (l *loader) tiledWindow(d *definition, kind kinds.Kind) Window {
	exact := kind.(kinds.Tiled).Measures(kinds.Call{})[0].State() == kinds.LastSeen
	if exact && d.tile.given() {
		l.report(d.tile.place, "tile does not apply to method %s: its window is exact", kind.Spec().Method)
	}
	switch size, err := parseDuration(d.window.text); {
	case !d.window.given():
	case strings.EqualFold(d.window.text, "lifetime"):
		if !exact && d.tile.given() {
			l.report(d.tile.place, "tile does not apply to a lifetime, which has no tiles")
		}
		if exact {
			return Window{Tile: time.Millisecond}
		}
	case err != nil && !strings.ContainsAny(d.window.text[:1], "0123456789"):
		l.report(d.window.place, "unknown window %q; known: a rolling duration such as 7d, and lifetime", d.window.text)
	case err != nil:
		l.report(d.window.place, "%s", err)
	case size == 0:
		l.report(d.window.place, "a window must be longer than 0")
	case exact:
		return Window{Size: size, Tile: time.Millisecond}
	default:
		return Window{Size: size, Tile: l.tile(d, size)}
	}
	return Window{}
}

// tile reads the width of a rolling window's tiles.
func (l *loader) tile(d *definition, window time.Duration) time.Duration {
	tile, at := defaultTile(window), d.window.place
	if d.tile.given() {
		at = d.tile.place
		var ok bool
		if tile, ok = l.duration(d.tile); !ok {
			return 0
		}
		if tile == 0 {
			l.report(at, "a tile must be longer than 0")
			return 0
		}
	}
	if err := checkTile(window, tile); err != nil {
		l.report(at, "%s", err)
	}
	return tile
}

// maximum reads the greatest number of values to keep.
func (l *loader) maximum(d *definition, f *Feature, spec kinds.Spec) {
	f.Call.Max = spec.DefaultMax
	if f.Window.Exact {
		f.Call.Max = defaultLogMax
	}
	if !d.max.given() {
		return
	}
	n, err := strconv.Atoi(d.max.text)
	switch {
	case f.Call.Max == 0:
		l.report(d.max.place, "max does not apply to %s: it keeps all", called(spec))
	case err != nil || n < 1 || n > maxMax:
		l.report(d.max.place, "bad max %q: it is a number from 1 to %d", d.max.text, maxMax)
	}
	f.Call.Max = n
}

// called is the name of a kind in a message.
func called(s kinds.Spec) string {
	if s.Method == "" {
		return s.Name
	}
	return s.Name + " with method " + s.Method
}

// entity reads the by-fields.
func (l *loader) entity(d *definition, f *Feature) {
	for _, w := range d.by {
		i := l.fieldNamed(f.Stream, w)
		if i < 0 {
			continue
		}
		field := f.Stream.Fields[i]
		if slices.Contains(f.By, field.Name) {
			l.report(w.place, "field %q stands twice in by", field.Name)
			continue
		}
		f.By = append(f.By, field.Name)
		f.ByTypes = append(f.ByTypes, field.Type)
		switch field.Type {
		case kinds.Null:
			continue
		case kinds.Float, kinds.Location:
			l.report(w.place, "field %q is of type %s and cannot name an entity; use a string, int, bool, decimal or timestamp",
				field.Name, field.Type)
			continue
		}
		first, ok := l.byTypes[field.Name]
		if !ok {
			l.byTypes[field.Name] = byType{f.Name, field.Type}
		} else if first.kind != field.Type {
			l.report(w.place, "field %q is of type %s here and of type %s in feature %q: an entity must have one type in all streams",
				field.Name, field.Type, first.kind, first.feature)
		}
	}
}

// measured reads the field that a kind takes, and returns its index.
func (l *loader) measured(d *definition, f *Feature, spec kinds.Spec) int {
	if spec.Types == nil || !d.field.given() {
		switch {
		case d.field.given():
			l.report(d.field.place, "%s takes no field", spec.Name)
		case spec.Types != nil:
			l.report(d.name.place, "feature %q needs field: %s is of one", f.Name, spec.Name)
		}
		return -1
	}
	i := l.fieldNamed(f.Stream, d.field)
	if i < 0 {
		return -1
	}
	field := f.Stream.Fields[i]
	if field.Type != kinds.Null && !slices.Contains(spec.Types, field.Type) {
		var names []string
		for _, t := range spec.Types {
			names = append(names, t.String())
		}
		l.report(d.field.place, "%s needs a field of type %s, and %q is of type %s",
			spec.Name, alternatives(names), field.Name, field.Type)
	}
	f.Call.Type, f.Call.Scale = field.Type, field.Scale
	return i
}

// fieldNamed is the index of a field of a stream, -1 for none.
func (l *loader) fieldNamed(s *Stream, w word) int {
	i := fieldIndex(s, w.text)
	if i < 0 && w.given() && len(s.Fields) > 0 {
		var names []string
		for _, f := range s.Fields {
			names = append(names, f.Name)
		}
		l.report(w.place, "%s", unknownIn(" in stream "+strconv.Quote(s.Name), "field", w.text, names))
	}
	return i
}

// where compiles a filter, once for each canonical form.
func (l *loader) where(s *Stream, w word) *Expr {
	e := l.expr(w, func() (*Expr, error) { return CompileExpr(w.text, s.Fields, kinds.Bool) })
	if e == nil {
		return nil
	}
	if l.wheres[s] == nil {
		l.wheres[s] = map[string]*Expr{}
	}
	if first, ok := l.wheres[s][e.Source]; ok {
		return first
	}
	l.wheres[s][e.Source] = e
	return e
}
