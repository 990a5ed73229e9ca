package definition

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// A multi-hop feature is written in one of two forms. Either a call replaces the by-field, which is
// then named after the set's field:
//
//	COUNT(30d, login, SET(30d, login, device, user))
//
// or the by-field has its own name, and through names the set:
//
//	COUNT(30d, transaction, customer, through=device_users)

const (
	// defaultFanOut is how many members of a set a feature reads by default, maxFanOut how many at
	// most, over all its parts.
	defaultFanOut = 100
	maxFanOut     = 1000
	// flat is the prefix in the other spelling of multi-hop functions.
	flat = "flat_"
	// anyList describes what a feature can go through.
	anyList = "a feature that answers with a list of values, such as SET(30d, login, device_id, user_id)"
	tooDeep = "a list that a feature goes through cannot go through another one: at most two hops are allowed"
)

// unflatten removes FLAT_ from the name of a function and remembers that it was there.
func (d *writtenFeature) unflatten() {
	if name := d.function.text; len(name) > len(flat) && strings.EqualFold(name[:len(flat)], flat) {
		rest := name[len(flat):]
		if slices.ContainsFunc(aggregate.All, func(k aggregate.Function) bool { return strings.EqualFold(k.Spec().Name, rest) }) {
			d.function.text, d.flat = rest, true
		}
	}
}

// throughCall makes a call the set of the feature, in place of the by-fields. It returns false if it reported a call
// elsewhere.
func (l *compiler) throughCall(d *writtenFeature, c call) bool {
	before := len(l.findings)
	if w := d.window.whole; w.call != nil {
		name := w.call.function.text
		if kind := strings.ToLower(name); kind == "last" || slices.Contains(typeKeys, kind) {
			l.report(w.location, "write the window without brackets: %s", strings.Join(strings.Fields(kind+unbracketed.Replace(w.text[len(name):])), " "))
			return false
		}
	}
	elsewhere := []word{d.window.whole, d.stream, d.field}
	for _, o := range c.options {
		if o.name.text != "through" && o.name.text != "by" {
			elsewhere = append(elsewhere, o.value)
		}
	}
	for _, w := range elsewhere {
		if w.call != nil {
			l.report(w.location, "%s(…) is not allowed here: a call replaces the by-field, as in COUNT(30d, login, SET(30d, login, device_id, user_id))",
				w.call.function.text)
		}
	}
	i := slices.IndexFunc(d.by, func(w word) bool { return w.call != nil })
	switch {
	case i < 0:
	case len(d.by) > 1 || d.through.given():
		l.report(d.by[i].location, "%s(…) replaces all by-fields and the option through: a feature goes through one list and has no other by-field",
			d.by[i].call.function.text)
	default:
		d.through, d.by = d.by[0], nil
	}
	return len(l.findings) == before
}

// unbracketed takes from a call what is not a word of a window.
var unbracketed = strings.NewReplacer("(", " ", ")", " ", ",", " ", "=", " ")

// firstHop compiles the set of a multi-hop definition, and sets the by-field if the definition
// names none; nil if something is wrong with it, or if there is no set.
func (l *compiler) firstHop(d *writtenFeature, function aggregate.Function) *features.Feature {
	spec := function.Spec()
	switch {
	case !d.through.given() && !d.flat:
		return nil
	case d.first && d.through.given():
		l.report(d.through.location, tooDeep)
		return nil
	case !spec.MultiHop:
		l.report(d.function.location, "%s cannot go through a list; %s can", called(spec), spelling.Alternatives(throughNames()))
		return nil
	case !d.through.given():
		l.report(d.function.location, "%s needs a list to go through: %s", strings.ToUpper(flat+spec.Name), flatForm(spec))
		return nil
	case d.per.given():
		l.report(d.per.location, "per does not apply to a feature through a list, which answers for all members together; omit per or the list")
		return nil
	case expr.NamesEvent(d.where.text):
		l.report(d.where.location, "a filter that compares with the event in hand does not apply to a feature through a list, whose members' events are not of its entity; omit the list, or compare in a derived feature")
		return nil
	case d.exclude.given():
		l.report(d.exclude.location, "exclude would leave out an event of each member of the list; omit it, or put it into the list")
		return nil
	}
	d.fanOut, d.max = d.max, word{}
	before := len(l.findings)
	set := l.throughSet(d)
	if set == nil || len(l.findings) > before {
		return nil
	}
	return l.throughField(d, set, spec)
}

// throughSet finds or compiles the set of a definition.
func (l *compiler) throughSet(d *writtenFeature) *features.Feature {
	w := d.through
	if strings.Contains(w.text, "(") && w.call == nil {
		c, ok := l.parse(w)
		if !ok {
			return nil
		}
		w.call = &c
	}
	var set *features.Feature
	name := strconv.Quote(w.text)
	switch _, defined := l.features[w.text]; {
	case w.call != nil:
		name = strings.ToUpper(w.call.function.text)
		first := &writtenFeature{name: word{text: d.name.text, location: w.location}, location: w.location, first: true}
		set = l.define(first, func(first *writtenFeature) aggregate.Function {
			function := l.callOf(first, *w.call)
			if !first.keep.given() {
				first.keep = d.keep
			}
			return function
		})
	case !defined:
		l.report(w.location, "%s", spelling.Unknown("feature", w.text, slices.Collect(maps.Keys(l.features))))
	case slices.Contains(l.underWay, w.text):
		i := slices.Index(l.underWay, w.text)
		l.report(w.location, "%s", cycleError("features", append(slices.Clone(l.underWay[i:]), w.text)))
	default:
		set = l.featureNamed(w.text)
	}
	if set == nil {
		return nil
	}
	if _, deep := set.Basis.(*features.MultiHop); deep {
		l.report(w.location, tooDeep)
		return nil
	}
	if set.Shape() != aggregate.List {
		l.report(w.location, "%s does not answer with a list; go through %s", name, anyList)
		return nil
	}
	if set.InHand != nil {
		l.report(w.location, "%s compares with the event in hand, and a list that a feature goes through cannot; omit that from its filter", name)
		return nil
	}
	return set
}

// throughField finds the by-field that holds the members of a set, by default the field of the set's
// own name; nil if no field has the set's type.
func (l *compiler) throughField(d *writtenFeature, set *features.Feature, spec aggregate.Spec) *features.Feature {
	stream, ok := l.streams.registry.Stream(d.stream.text)
	if !ok || !typesKnown(stream.Fields) {
		return set // the stream has a finding elsewhere
	}
	byDefault := len(d.by) == 0
	if byDefault {
		d.by = []word{{text: set.Field, location: d.through.location}}
	}
	if len(d.by) > 1 {
		l.report(d.by[1].location, "a feature that goes through a list has one by-field, which holds the list's members, not %d", len(d.by))
		return nil
	}
	w := d.by[0]
	switch i := stream.FieldIndex(w.text); {
	case i < 0 && byDefault:
		l.report(w.location, "the members of the list are values of %q, and stream %q has no such field; name the field that holds them: %s",
			set.Field, stream.Name, throughForm(d, spec))
	case i >= 0 && stream.Fields[i].Type != set.Call.Type:
		l.report(w.location, "field %q of stream %q is of type %s, and the members of the list are of type %s (%q): they match no entity of that field; name the field of type %s that holds them: %s",
			w.text, stream.Name, stream.Fields[i].Type, set.Call.Type, set.Field, set.Call.Type, throughForm(d, spec))
	case i >= 0 && set.Call.Type == value.String && set.Stream.Fields[set.Stream.FieldIndex(set.Field)].MaxBytes != value.MaxText:
		l.report(d.through.location, "field %q of stream %q has its own max_bytes, so its long values would match no entity; omit max_bytes, which defaults to %d",
			set.Field, set.Stream.Name, value.MaxText)
	default:
		return set
	}
	d.by = nil
	return nil
}

// throughForm returns the definition with a placeholder for its by-field, and for a window that is a mapping.
func throughForm(d *writtenFeature, spec aggregate.Spec) string {
	form := strings.NewReplacer("window", cmp.Or(d.window.whole.text, "window"), "stream", d.stream.text, "by…", "FIELD", "field", d.field.text)
	return strings.TrimSuffix(form.Replace(expectedForm(spec)), ")") + ", through=…)"
}

// multiHop makes the multi-hop feature from the set and the feature asked of each member.
func (l *compiler) multiHop(d *writtenFeature, set, each *features.Feature) *features.Feature {
	fanOut := defaultFanOut
	if d.fanOut.given() {
		var err error
		if fanOut, err = strconv.Atoi(d.fanOut.text); err != nil || fanOut < 1 || fanOut > maxFanOut {
			l.report(d.fanOut.location, "bad max %q: a feature goes through 1 to %d members of a list", d.fanOut.text, maxFanOut)
			return nil
		}
	}
	f, multiHop := *each, &features.MultiHop{Set: set, Each: each, Max: fanOut}
	if d.through.call == nil && !strings.Contains(d.through.text, "(") {
		multiHop.Name = set.Name
	}
	f.Basis = multiHop
	f.By, f.ByTypes = set.By, set.ByTypes
	f.Series = slices.Concat(set.Series, each.Series)
	if set.Forgets() && (!each.Forgets() || set.Keep < each.Keep) {
		f.Keep = set.Keep
	}
	f.Definition = canonical(&f)
	return &f
}

// throughEntity returns the by-fields in the canonical form and, if through is an option of its own, its value; else
// empty.
func throughEntity(t *features.MultiHop) (by, through string) {
	switch {
	case t.Name != "":
		return t.Each.By[0], t.Name
	case t.Each.By[0] != t.Set.Field:
		return t.Each.By[0], t.Set.Definition
	default:
		return t.Set.Definition, ""
	}
}

// throughNames returns the functions that can go through a set.
func throughNames() []string {
	var names []string
	for _, k := range aggregate.All {
		if k.Spec().MultiHop {
			names = append(names, k.Spec().Name)
		}
	}
	return names
}

// flatForm returns the one-line form of a function with a set.
func flatForm(s aggregate.Spec) string {
	return strings.ToUpper(flat) + strings.Replace(expectedForm(s), "by…", "SET(window, stream, by…, field)", 1)
}
