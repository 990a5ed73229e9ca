package definition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/spelling"
)

// writtenFeature is a feature as written, in either form. Words that are missing are zero.
type writtenFeature struct {
	name                    word
	location                location // of the whole, for findings about what is missing
	function, stream, field word
	window                  windowWords
	by                      []word

	method, tile, bounds, delay, exclude, where, per, max, keep, through, description, owner word
	// parameters are those of all functions, by name.
	parameters map[string]*word

	flat   bool // the function was spelt FLAT_…
	first  bool // it is the set of a multi-hop feature
	fanOut word // the max of a feature that goes through a set
}

// options returns the parts with the same names in both forms.
func (d *writtenFeature) options() map[string]*word {
	options := map[string]*word{
		"method": &d.method, "tile": &d.tile, "bounds": &d.bounds, "delay": &d.delay, "exclude": &d.exclude,
		"where": &d.where, "per": &d.per, "max": &d.max, "keep": &d.keep,
		"through": &d.through, "description": &d.description, "owner": &d.owner,
	}
	d.parameters = map[string]*word{}
	for _, k := range aggregate.All {
		for _, p := range k.Spec().Parameters {
			if d.parameters[p.Name] == nil {
				d.parameters[p.Name] = new(word)
				options[p.Name] = d.parameters[p.Name]
			}
		}
	}
	return options
}

// parse parses a one-line form; false if it reported a finding.
func (l *macros) parse(w word) (call, bool) {
	c, err := parseCall(w)
	if bad, ok := errors.AsType[*syntaxError](err); ok {
		l.report(w.at(bad.offset), "%s", err)
		return c, false
	}
	return c, true
}

// oneLine reads FUNCTION(window, stream, arguments…, name=value…).
func (l *compiler) oneLine(d *writtenFeature, w word) aggregate.Function {
	c, ok := l.parse(w)
	if !ok {
		return nil
	}
	return l.callOf(d, c)
}

// callOf reads a call.
func (l *compiler) callOf(d *writtenFeature, c call) aggregate.Function {
	c, ok := l.expand(c)
	if !ok {
		return nil
	}
	if l.isLong(c) {
		l.report(c.function.location, "macro %s has a mapping as its body and is not allowed inside a call; define a feature with it and name that feature in `through`",
			c.function.text)
		return nil
	}
	d.function = c.function
	d.unflatten()
	options := d.options()
	var by word
	options["by"], options["field"] = &by, &d.field
	for _, o := range c.options {
		target, ok := options[o.name.text]
		switch {
		case !ok:
			l.report(o.name.location, "%s", spelling.Unknown("option", o.name.text, slices.Collect(maps.Keys(options))))
		case target.given():
			l.report(o.name.location, "option %q is given twice", o.name.text)
		default:
			*target = o.value
		}
	}
	function := l.function(d, slices.Collect(maps.Keys(l.defined))...)
	if function == nil {
		return nil
	}
	spec := function.Spec()
	least, fieldFollows := 3, spec.Types != nil && !d.field.given()
	if fieldFollows {
		least++
	}
	if by.given() {
		least--
	}
	if len(c.arguments) < least {
		l.report(c.function.location, "%s takes %d arguments or more, not %d: %s",
			strings.ToUpper(spec.Name), least, len(c.arguments), expectedForm(spec))
		return nil
	}
	d.window, d.stream, d.by = windows{l.reader}.windowText(c.arguments[0]), c.arguments[1], c.arguments[2:]
	switch last := len(d.by) - 1; {
	case !fieldFollows:
	case spec.FieldLast:
		d.field, d.by = d.by[last], d.by[:last]
	default:
		d.field, d.by = d.by[0], d.by[1:]
	}
	if by.given() {
		for _, w := range d.by {
			l.report(w.location, "argument %q follows the stream, but by is given by its name: name the fields in one place", w.text)
		}
		d.by = l.words(by)
	}
	if !l.throughCall(d, c) {
		return nil
	}
	return function
}

// words reads one word, or a list of words in square brackets.
func (l *compiler) words(w word) []word {
	inner, opened := strings.CutPrefix(w.text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !opened || !closed {
		return []word{w}
	}
	list := split(w.part(1, inner), ",")
	if len(list) == 0 {
		l.report(w.location, "by must name at least one field, not an empty list")
	}
	return list
}

// expectedForm returns the one-line form of a function, for messages.
func expectedForm(s aggregate.Spec) string {
	arguments := "by…"
	switch {
	case s.Types == nil:
	case s.FieldLast:
		arguments = "by…, field"
	default:
		arguments = "field, by…"
	}
	for _, p := range s.Parameters {
		if p.Default == "" {
			arguments += ", " + p.Name + "=…"
		}
	}
	return fmt.Sprintf("%s(window, stream, %s)", strings.ToUpper(s.Name), arguments)
}

// longFormKeys returns the keys of a feature in the long form, longFormNeeds the required ones.
func longFormKeys() []string {
	return append(slices.Sorted(maps.Keys(new(writtenFeature).options())), "function", "stream", "field", "by", "window")
}

var longFormNeeds = []string{"function", "stream", "window"}

// longForm reads a mapping.
func (l *compiler) longForm(d *writtenFeature, n node) aggregate.Function {
	targets := d.options()
	targets["function"], targets["stream"], targets["field"] = &d.function, &d.stream, &d.field
	keys := l.keyed(n, "feature "+strconv.Quote(d.name.text), longFormKeys()...)
	for key, n := range keys {
		switch key {
		case "by":
			if d.by = l.list(n, "by"); n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
				l.report(n.location(), "by must name at least one field, not %s", describe(n))
			}
		case "window":
			d.window = windows{l.reader}.windowNode(n)
		case "bins":
			*targets[key] = l.edgesWord(n)
		default:
			*targets[key], _ = l.scalar(n, key)
		}
	}
	for _, key := range longFormNeeds {
		if _, ok := keys[key]; !ok {
			l.report(d.name.location, "feature %q needs %s", d.name.text, key)
		}
	}
	if _, ok := keys["by"]; !ok && !d.through.given() {
		l.report(d.name.location, "feature %q needs by", d.name.text)
	}
	if !d.function.given() {
		return nil
	}
	d.unflatten()
	return l.function(d)
}

// canonical returns the feature in the one-line form, with everything that affects its meaning: without its description
// and owner.
func canonical(f *features.Feature) string {
	spec := f.Spec
	by, through := f.By, ""
	multiHop, isMultiHop := f.Basis.(*features.MultiHop)
	if isMultiHop {
		by = make([]string, 1)
		by[0], through = throughEntity(multiHop)
	}
	arguments := append([]string{f.Window.String(), f.Stream.Name}, by...)
	switch {
	case f.Field == "":
	case spec.FieldLast:
		arguments = append(arguments, f.Field)
	default:
		arguments = slices.Insert(arguments, 2, f.Field)
	}
	option := func(name, value string) { arguments = append(arguments, name+"="+value) }
	if byDefault, _ := aggregate.Find(spec.Name, ""); byDefault.Spec().Method != spec.Method {
		option("method", spec.Method)
	}
	for _, p := range spec.Parameters {
		if text := parameterText(f, p); text != p.Default {
			option(p.Name, text)
		}
	}
	switch {
	case f.Window.Exact && choosesLog(f):
		option("tile", "exact")
	case f.Window.Tiled() && !spec.TilesAreUnits && f.Window.Tile != f.Window.TypeOrLifetime().(window.Clocked).DefaultTile():
		option("tile", window.FormatDuration(f.Window.Tile))
	}
	if bounds := f.Window.Brackets(); bounds != window.DefaultBounds {
		option("bounds", quote(bounds))
	}
	if f.Window.Delay > 0 {
		option("delay", window.FormatDuration(f.Window.Delay))
	}
	if f.Window.Exclude != window.ExcludeNothing {
		option("exclude", f.Window.Exclude.String())
	}
	if f.Where != "" {
		option("where", quote(f.Where))
	}
	if f.Per != "" {
		option("per", f.Per)
	}
	if f.Call.Max != defaultMax(f) {
		option("max", strconv.Itoa(f.Call.Max))
	}
	if f.Keep != defaultKeep {
		option("keep", window.FormatDuration(f.Keep))
	}
	if isMultiHop && multiHop.Max != defaultFanOut {
		option("max", strconv.Itoa(multiHop.Max))
	}
	if through != "" {
		option("through", through)
	}
	return strings.ToUpper(spec.Name) + "(" + strings.Join(arguments, ", ") + ")"
}

// choosesLog reports whether the feature is answered from the log only because its definition says tile: exact.
func choosesLog(f *features.Feature) bool {
	if fromLog(f.Function, f.Call.Type, f.Per != "", f.Window.Type == nil) != "" {
		return false
	}
	needs := f.Window.NeedsLog() != "" || f.Compared != nil && f.Window.Type != nil
	return !needs || layoutOf(f.Function).Chosen()
}
