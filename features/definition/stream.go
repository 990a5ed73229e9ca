package definition

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

const (
	defaultMaxFuture = 5 * time.Minute
	defaultScale     = 2 // cents
)

var (
	lateWays  = []string{"count", "dead_letter"}
	topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)
)

// The keys of a stream and of what is in it.
var (
	streamKeys    = []string{"topic", "topics", "match", "format", "timestamp", "id", "remember_ids", "dedup", "fields", "max_bytes", "max_future", "late", "lenient", "each", "enrich"}
	streamNeeds   = []string{"topic", "timestamp", "fields"}
	timestampKeys = []string{"path", "unit", "layout", "tz"}
	fieldKeys     = []string{"type", "path", "scale", "exponent", "round", "encoding", "lat", "lon", "unit", "layout", "tz", "lenient", "null_values", "expr", "max_bytes", "required"}
)

// streams compiles the streams.
type streams struct {
	*reader
	registry *features.Registry
	readFile func(path string) ([]byte, error)             // for files that definitions name
	latest   func(topic string) (record.Registered, error) // nil if no registry is checked
	written  map[string]named
	reads    []pathRead   // of the stream being compiled
	enriched []enrichment // compiled after the services
}

// stream compiles a stream of one topic. It omits the parts that are wrong, so that the stream's features can still be checked.
func (l *streams) stream(d source) *record.Stream {
	s := &record.Stream{Name: d.name.text, Format: record.JSON, MaxFuture: defaultMaxFuture}
	what := "stream " + strconv.Quote(s.Name)
	keys := l.keyed(d.node, what, streamKeys...)
	for _, key := range streamNeeds {
		if _, ok := keys[key]; !ok && d.node.Kind == yaml.MappingNode && !(key == "topic" && d.node.has("topics")) {
			needs := what
			if d.topic != "" {
				needs += " in topic " + strconv.Quote(d.topic)
			}
			l.report(d.name.location, "%s needs %s", needs, key)
		}
	}
	l.reads = nil
	if n, ok := keys["lenient"]; ok {
		if w, ok := l.scalar(n, "lenient"); ok {
			s.Timestamp.Form.Lenient = l.truth(w, "lenient")
		}
	}
	if n, ok := keys["timestamp"]; ok {
		s.Timestamp = l.timestamp(n, s.Timestamp.Form.Lenient)
	}
	l.fields(what, s, keys)
	if n, ok := keys["format"]; ok {
		s.Format = l.format(n)
	}
	if n, ok := keys["enrich"]; ok && d.topic == "" {
		l.enriched = append(l.enriched, enrichment{s, n})
	}
	for key, take := range map[string]func(word){
		"topic": func(w word) {
			l.topic(w)
			s.Topic = w.text
		},
		"match": func(w word) { l.match(s, w) },
		"id":    func(w word) { s.ID = l.readPath(w) },
		"each": func(w word) {
			s.Each = l.path(w)
			if s.Format != nil && !record.ArraysIn(s.Format) {
				l.report(w.location, "each is for arrays in JSON, and the format of %s is %s", what, strings.Fields(s.Format.String())[0])
			}
			if n, ok := keys["enrich"]; ok {
				l.report(n.location(), "%s makes several events of a record, of which enrich would write as many; enrich is for streams without each", what)
			}
			if n, ok := keys["dedup"]; ok {
				l.report(n.location(), "%s makes several events of a record, and dedup knows one ID of a record; dedup is for streams without each", what)
			}
		},
		"remember_ids": func(w word) {
			remember, ok := l.duration(w)
			if s.RememberIDs = remember; ok && remember == 0 {
				l.report(w.location, "remember_ids must be longer than 0; omit it if IDs need not be remembered")
			}
			if _, ok := keys["id"]; !ok {
				l.report(w.location, "%s has remember_ids but no id; add id, the path of the event's ID", what)
			}
		},
		"dedup": func(w word) {
			within, ok := l.duration(w)
			switch s.Dedup = within; {
			case ok && within == 0:
				l.report(w.location, "dedup must be longer than 0; omit it if each record counts, whatever its ID")
			case within > record.MaxDedup:
				l.report(w.location, "dedup is %s, and can be %s at most: the IDs of that time are in the memory of processors", w.text, window.FormatDuration(record.MaxDedup))
			}
			if _, ok := keys["id"]; !ok {
				l.report(w.location, "%s has dedup but no id; add id, the path of the event's ID", what)
			}
		},
		"max_future": func(w word) {
			s.MaxFuture, _ = l.duration(w)
		},
		"late": func(w word) {
			l.oneOf(w, "late", lateWays)
			s.LateToDeadLetter = w.text == "dead_letter"
		},
	} {
		if n, ok := keys[key]; ok {
			if w, ok := l.scalar(n, key); ok {
				take(w)
			}
		}
	}
	return s
}

// match compiles which records a stream takes.
func (l *streams) match(s *record.Stream, w word) {
	s.Match = l.expr(w, func() (*expr.Expr, error) { return expr.CompileMatch(w.text) })
	for _, path := range s.Match.Paths() {
		l.reads = append(l.reads, pathRead{path, value.Null, w.location})
	}
}

// fields compiles the fields of a stream or a table, which what names.
func (l *streams) fields(what string, s *record.Stream, keys map[string]node) {
	maxBytes := value.MaxText
	if n, ok := keys["max_bytes"]; ok {
		if w, ok := l.scalar(n, "max_bytes"); ok {
			maxBytes = l.maxBytes(w)
		}
	}
	n, ok := keys["fields"]
	if !ok {
		return
	}
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		l.report(n.location(), "%s needs at least one field", what)
	}
	for _, e := range l.entries(n, "fields", "field") {
		l.checkTime()
		f, at := l.field(e, s.Fields, s.Timestamp.Form.Lenient)
		f.MaxBytes = cmp.Or(f.MaxBytes, maxBytes)
		f.Lenient = f.Lenient && f.Type != value.String && f.Type != value.Decimal && f.Expr == nil // which take their texts anyway
		f.Form.Lenient = f.Lenient && f.Type == value.Timestamp
		s.Fields = append(s.Fields, f)
		for _, path := range f.Paths() {
			l.reads = append(l.reads, pathRead{path, f.TypeRead(), at})
		}
	}
}

func (l *streams) topic(w word) {
	if !topicName.MatchString(w.text) {
		l.report(w.location, "bad topic %q: a topic has up to 249 letters, digits, '.', '_' and '-'", w.text)
	}
}

// timestamp compiles the location of an event's time: a path, or a mapping with its form.
func (l *streams) timestamp(n node, lenient bool) record.TimestampPath {
	t := record.TimestampPath{Form: record.TimeForm{Unit: "ms", Lenient: lenient}}
	if n.Kind == yaml.ScalarNode {
		if w, ok := l.scalar(n, "timestamp"); ok {
			t.Path = l.readPath(w)
		}
		return t
	}
	keys := l.keyed(n, "timestamp", timestampKeys...)
	if p, ok := keys["path"]; !ok {
		l.report(n.location(), "timestamp needs path")
	} else if w, ok := l.scalar(p, "path"); ok {
		t.Path = l.readPath(w)
	}
	words := map[string]word{}
	for _, key := range timeFormKeys {
		if n, ok := keys[key]; ok {
			if w, ok := l.scalar(n, key); ok {
				words[key] = w
			}
		}
	}
	t.Form = l.timeForm(words, "ms")
	t.Form.Lenient = lenient
	return t
}

// timeFormKeys are the keys that say how a time is written.
var timeFormKeys = []string{"unit", "layout", "tz"}

// timeForm compiles how a time is written; by default it is of the given unit.
func (l *streams) timeForm(words map[string]word, usual string) (f record.TimeForm) {
	unit, layout, tz := words["unit"], words["layout"], words["tz"]
	f.Unit = usual
	if unit.given() {
		l.oneOf(unit, "unit", record.TimeUnits)
		f.Unit = unit.text
	}
	if layout.given() {
		if unit.given() {
			l.report(unit.location, "unit and layout both say how the time is written; omit one of them")
		}
		if err := record.CheckLayout(layout.text); err != nil {
			l.report(layout.location, "bad layout %q: %s", layout.text, err)
		}
		f.Unit, f.Layout = "", layout.text
	}
	if !tz.given() {
		return f
	}
	var err error
	switch f.Zone, err = window.ParseZone(tz.text); {
	case err != nil:
		l.report(tz.location, "%s", err)
	case layout.given() && record.HasOffset(layout.text):
		l.report(tz.location, "tz is for texts without an offset from UTC, and those of the layout %q have one; omit tz", layout.text)
	case slices.Contains([]string{"s", "ms", "us", "ns"}, f.Unit):
		l.report(tz.location, "tz is for times that are texts, and those in %s are numbers; omit tz, or set unit: datetime or a layout", f.Unit)
	}
	return f
}

// field compiles a field: its type, or a mapping. A derived one may use the fields before it. The
// type is Null if it is unknown. It also returns the location of the field's path.
func (l *streams) field(e entry, before []record.Field, lenient bool) (f record.Field, at location) {
	f, at = record.Field{Name: e.key.text, Path: []string{e.key.text}}, e.key.location
	f.Lenient = lenient
	if !isName(f.Name) {
		l.report(e.key.location, "bad name %q of a field: "+nameRule, f.Name)
	}
	if e.value.Kind == yaml.ScalarNode {
		if w, ok := l.scalar(e.value, "a field's type"); ok {
			f.Type = l.fieldType(w)
		}
		if f.Type == value.Decimal {
			f.Scale = defaultScale
		}
		return f, at
	}
	words := map[string]word{}
	what := "field " + strconv.Quote(f.Name)
	for key, n := range l.keyed(e.value, what, fieldKeys...) {
		if key == "null_values" {
			f.NullValues = l.nullValues(n)
			words[key] = n.word()
		} else if w, ok := l.scalar(n, key); ok {
			words[key] = w
		}
	}
	if w := words["type"]; w.given() {
		f.Type = l.fieldType(w)
	} else {
		l.report(e.key.location, "%s needs type", what)
	}
	l.decimal(&f, words["scale"])
	l.rounding(&f, words)
	l.encoding(&f, words["encoding"])
	l.fieldForm(&f, words)
	l.fieldMaxBytes(&f, words["max_bytes"])
	if w := words["required"]; w.given() {
		f.Required = l.truth(w, "required")
	}
	if w := words["lenient"]; w.given() {
		if f.Lenient = l.truth(w, "lenient"); f.Type == value.String {
			l.report(w.location, "lenient takes texts for values of other types, and field %q is of type string", f.Name)
		}
	}
	if w := words["path"]; w.given() {
		f.Path, at = l.path(w), w.location
	}
	l.place(&f, words)
	if w := words["expr"]; w.given() {
		f.Path = nil
		for _, key := range readingKeys {
			if p := words[key]; p.given() {
				l.report(p.location, "%s has both expr and %s; omit one of them", what, key)
			}
		}
		if f.Type != value.Null && (len(before) == 0 || typesKnown(before)) {
			f.Expr = l.expr(w, func() (*expr.Expr, error) { return expr.Compile(w.text, record.VariablesOf(before), f.Type) })
		}
	}
	return f, at
}

func (l *streams) decimal(f *record.Field, scale word) {
	switch {
	case !scale.given():
		if f.Type == value.Decimal {
			f.Scale = defaultScale
		}
	case f.Type != value.Decimal && f.Type != value.Null:
		l.report(scale.location, "scale is for decimals, and field %q is of type %s", f.Name, f.Type)
	default:
		n, err := strconv.Atoi(scale.text)
		if err != nil || n < 0 || n > int(value.MaxScale) {
			l.report(scale.location, "bad scale %q: it must be a number of digits from 0 to %d", scale.text, value.MaxScale)
		}
		f.Scale = uint8(n)
	}
}

// readingKeys are the keys of a field that say how it is read from the record.
var readingKeys = []string{"path", "exponent", "round", "encoding", "lat", "lon", "unit", "layout", "tz", "lenient", "null_values"}

// maxExponent is the greatest power of ten by which numbers are multiplied: 10^18 wei are an ether.
const maxExponent = 40

// rounding compiles how the digits of a decimal are read.
func (l *streams) rounding(f *record.Field, words map[string]word) {
	exponent, round := words["exponent"], words["round"]
	for _, key := range []string{"exponent", "round"} {
		if w := words[key]; w.given() && f.Type != value.Decimal && f.Type != value.Null {
			l.report(w.location, "%s is for decimals, and field %q is of type %s", key, f.Name, f.Type)
			return
		}
	}
	if exponent.given() {
		n, err := strconv.Atoi(exponent.text)
		if err != nil || n == 0 || n < -maxExponent || n > maxExponent {
			l.report(exponent.location, "bad exponent %q: it must be a power of ten from -%d to %[2]d, such as -2 for an amount in cents", exponent.text, maxExponent)
		}
		f.Exponent = n
	}
	if round.given() {
		f.Round = l.truth(round, "round")
	}
}

// encodingOfDecimal is the encoding of decimals.
const encodingOfDecimal = "base64"

func (l *streams) encoding(f *record.Field, encoding word) {
	switch {
	case !encoding.given():
	case f.Type == value.Decimal:
		l.oneOf(encoding, "encoding", []string{encodingOfDecimal})
		f.Base64 = true
	case f.Type == value.Location:
		l.oneOf(encoding, "encoding", record.Points)
		f.Point = encoding.text
	case f.Type != value.Null:
		l.report(encoding.location, "encoding is for decimals and locations, and field %q is of type %s", f.Name, f.Type)
	}
}

// place compiles the paths of a location's degrees.
func (l *streams) place(f *record.Field, words map[string]word) {
	lat, lon := words["lat"], words["lon"]
	for _, key := range []string{"lat", "lon"} {
		switch w := words[key]; {
		case !w.given():
		case f.Type != value.Location && f.Type != value.Null:
			l.report(w.location, "%s is for locations, and field %q is of type %s", key, f.Name, f.Type)
			return
		case !lat.given() || !lon.given():
			l.report(w.location, "field %q needs both lat and lon: the paths of its degrees", f.Name)
			return
		}
	}
	if !lat.given() {
		return
	}
	for _, key := range []string{"path", "encoding", "null_values"} {
		if w := words[key]; w.given() {
			l.report(w.location, "field %q has lat and lon, and %s, which is for a location that is one value; omit one of them", f.Name, key)
		}
	}
	f.Path, f.Lat, f.Lon = nil, l.path(lat), l.path(lon)
}

// truth reads true or false.
func (l *reader) truth(w word, what string) bool {
	l.oneOf(w, what, []string{"true", "false"})
	return w.text == "true"
}

// nullValues reads the texts that mean null, of which one may be empty.
func (l *streams) nullValues(n node) (texts []string) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		l.report(n.location(), `null_values must be a list of texts, such as ["", "N/A"], not %s`, describe(n))
		return nil
	}
	for _, member := range n.Content {
		m := n.child(member)
		if m.Kind != yaml.ScalarNode || m.Tag == "!!null" {
			l.report(m.location(), `a member of null_values must be a text, not %s; put one such as NULL in quotes`, describe(m))
			continue
		}
		texts = append(texts, m.Value)
	}
	return texts
}

// fieldForm compiles how a timestamp field is written.
func (l *streams) fieldForm(f *record.Field, words map[string]word) {
	if f.Type == value.Timestamp || f.Type == value.Null {
		f.Form = l.timeForm(words, "")
		return
	}
	for _, key := range timeFormKeys {
		if w := words[key]; w.given() {
			l.report(w.location, "%s is for timestamps, and field %q is of type %s", key, f.Name, f.Type)
		}
	}
}

// maxMaxBytes is the greatest max_bytes of a field.
const maxMaxBytes = 64 << 10

// maxBytes reads the length of the longest text that is kept.
func (l *streams) maxBytes(w word) int {
	n, err := strconv.Atoi(w.text)
	if err != nil || n < value.LeastMaxText || n > maxMaxBytes {
		l.report(w.location, "bad max_bytes %q: it must be a number of bytes from %d to %d", w.text, value.LeastMaxText, maxMaxBytes)
	}
	return n
}

func (l *streams) fieldMaxBytes(f *record.Field, w word) {
	switch {
	case !w.given():
	case f.Type != value.String && f.Type != value.Null:
		l.report(w.location, "max_bytes is for strings, and field %q is of type %s", f.Name, f.Type)
	default:
		f.MaxBytes = l.maxBytes(w)
	}
}

func (l *streams) fieldType(w word) value.Type {
	t, ok := value.ParseType(w.text)
	if !ok {
		var known []string
		for t := value.String; t <= value.Location; t++ {
			known = append(known, t.String())
		}
		if ours, ok := otherTypes[strings.ToLower(w.text)]; ok {
			l.report(w.location, "unknown type %q; write %s", w.text, ours)
		} else {
			l.report(w.location, "%s", spelling.Unknown("type", w.text, known))
		}
	}
	return t
}

// otherTypes maps names that SQL, Avro, Protobuf and others give to types to what they are here.
var otherTypes = func() map[string]string {
	names := map[string]string{"number": "float, or decimal for money"}
	for ours, theirs := range map[string]string{
		"string":    "str text varchar char nvarchar keyword uuid enum",
		"int":       "integer int8 int16 int32 int64 uint8 uint16 uint32 uint64 long short smallint bigint tinyint byte",
		"float":     "double float32 float64 real",
		"decimal":   "numeric money bigdecimal dec",
		"bool":      "boolean bit",
		"timestamp": "date datetime time instant timestamptz timestamp_ms epoch",
		"location":  "geo point geopoint geo_point latlon geography",
	} {
		for name := range strings.FieldsSeq(theirs) {
			names[name] = ours
		}
	}
	return names
}()

// typesKnown reports whether there are fields and all their types are known. If not, a finding says so.
func typesKnown(fields []record.Field) bool {
	return len(fields) > 0 && !slices.ContainsFunc(fields, func(f record.Field) bool { return f.Type == value.Null })
}

// elementIndex matches a name with what other languages of paths name an element of an array by.
var elementIndex = regexp.MustCompile(`\[([0-9]*|\*)\]$`)

// path splits a path of names separated by dots. A name that has dots itself is written as in expressions: a["b.c"].
func (l *reader) path(w word) (path []string) {
	odd, element := false, false
	for rest, more := w.text, true; more; {
		var name string
		if quoted, after, ok := quotedName(rest); ok {
			name, rest, more = quoted, after, after != ""
			if more && after[0] == '.' {
				rest = after[1:]
			} else if more && after[0] != '[' {
				odd = true
			}
		} else {
			end := strings.IndexByte(rest, '.')
			if bracket := strings.IndexByte(rest, '['); bracket > 0 && (end < 0 || bracket < end) {
				if _, _, ok := quotedName(rest[bracket:]); ok {
					path, rest = append(path, rest[:bracket]), rest[bracket:]
					odd = odd || quoting(path[len(path)-1])
					continue
				}
			}
			name, rest, more = strings.Cut(rest, ".")
			odd, element = odd || quoting(name), element || elementIndex.MatchString(name)
		}
		path = append(path, name)
	}
	if slices.Contains(path, "") {
		l.report(w.location, "bad path %q: it must be names separated by dots", w.text)
	} else if element {
		l.report(w.location, "path %q can match nothing: a path does not lead into one element of an array, and `each` of the stream into all of them; "+
			`write a name that has brackets itself as ["a[0]"]`, w.text)
	} else if odd || path[0] == "$" {
		l.report(w.location, "path %q can match nothing: it must be names separated by dots, without quotes, brackets or backslashes; "+
			`write a name that has dots itself as ["a.b"]`, w.text)
	}
	return path
}

// quotedName reads a name in brackets and quotes at the beginning of a path.
func quotedName(path string) (name, rest string, ok bool) {
	for _, quote := range []string{`"`, "'"} {
		if inside, found := strings.CutPrefix(path, "["+quote); found {
			if name, rest, ok = strings.Cut(inside, quote+"]"); ok && !strings.ContainsAny(name, `"'\\`) {
				return name, rest, true
			}
		}
	}
	return "", "", false
}

// quoting reports whether a part of a path looks like one of another language, which names members as a\.b or $.a.
func quoting(name string) bool {
	return strings.ContainsAny(name, "\"\\") || strings.Count(name, "[") != strings.Count(name, "]")
}

// readPath records a path that the stream reads.
func (l *streams) readPath(w word) []string {
	p := l.path(w)
	l.reads = append(l.reads, pathRead{p, value.Null, w.location})
	return p
}

// oneOf reports a word that is not among those known.
func (l *reader) oneOf(w word, what string, known []string) {
	if !slices.Contains(known, w.text) {
		l.report(w.location, "%s", spelling.Unknown(what, w.text, known))
	}
}

func (l *reader) duration(w word) (time.Duration, bool) {
	d, err := window.ParseDuration(w.text)
	if err != nil {
		l.report(w.location, "%s", err)
	}
	return d, err == nil
}

// expr compiles the expression in a word.
func (l *reader) expr(w word, compile func() (*expr.Expr, error)) *expr.Expr {
	l.checkTime()
	if l.size += len(w.text); l.size > maxExpressions {
		if !l.tooLarge {
			l.report(w.location, "the expressions up to here, also those in the expansions of macros, have more than %d bytes and steps of patterns together", maxExpressions)
		}
		l.tooLarge = true
		return nil
	}
	e, err := compile()
	if err == nil {
		l.size += e.Steps
		return e
	}
	if errors.Is(err, expr.ErrReported) {
		return nil
	}
	at := w.location
	if bad, ok := errors.AsType[*expr.Error](err); ok && w.inner {
		at.column += bad.Column - 1
	}
	l.report(at, "%s", err)
	return nil
}
