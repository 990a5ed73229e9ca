package record

import (
	"slices"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// Formats is the table of the formats of records. A format is one file with a
// Format, a Scanner and its row here; definitions, their JSON Schema and the
// messages about unknown formats are made of the table.
var Formats = []FormatSpec{
	{Name: "json", Describes: "one JSON object", New: func(Options) (Format, error) { return JSON, nil }},
	csvSpec,
	avroSpec,
	protobufSpec,
	jsonSchemaSpec,
	debeziumSpec,
	cloudEventsSpec,
}

// FormatSpec is what definitions may say of a format.
type FormatSpec struct {
	Name      string
	Describes string // what a record is, for the JSON Schema
	Options   []Option
	// New makes the format of the options given, which are of Options and have
	// all those that are required. Its error is an *OptionError.
	New func(Options) (Format, error)
}

// Option is an option of a format.
type Option struct {
	Name, Describes string
	List            bool // it is a list of texts, else one text
	Required        bool
	// File is how the names of files end, such as ".avsc", where the option names
	// files: paths from the folder of the definitions that name them.
	File string
}

// Options are the options given for a format, by name: a list each, of one text
// where the option is no list. Of a file the text is its path.
type Options struct {
	Texts map[string][]string
	Files map[string][]byte // contents, by path
}

// one is an option that is no list; empty for none.
func (o Options) one(name string) string {
	if given := o.Texts[name]; len(given) > 0 {
		return given[0]
	}
	return ""
}

// framing says whether records stand behind the ID of their schema: unless there is
// a file of it, or as the option says.
func (o Options) framing() (bool, error) {
	switch given := o.one("framing"); {
	case given == "confluent", given == "" && o.one("schema") == "":
		return true, nil
	case given != "" && given != "none":
		return false, &OptionError{"framing", spelling.Unknown("framing", given, []string{"confluent", "none"})}
	case o.one("schema") == "":
		return false, &OptionError{"framing", "framing none needs schema: without an ID, nothing tells what a record is written with"}
	}
	return false, nil
}

// OptionError is what is wrong with an option.
type OptionError struct{ Option, Message string }

// Error is the message alone; who shows it knows where the option stands.
func (e *OptionError) Error() string { return e.Message }

// FindFormat finds a format's row by its name.
func FindFormat(name string) (FormatSpec, bool) {
	i := slices.IndexFunc(Formats, func(f FormatSpec) bool { return f.Name == name })
	if i < 0 {
		return FormatSpec{}, false
	}
	return Formats[i], true
}

// FormatNames are the names of all formats.
func FormatNames() (names []string) {
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return names
}

// Format is how the records of a topic are written. All streams of a topic have
// the same one.
type Format interface {
	// String is the format and its options in one form: it is equal for formats
	// that read records alike. It is part of what plans are told apart by.
	String() string
	// Check says why no value of a type can stand at a path, for a finding about the
	// stream that reads it; nil where one may, or where the format does not know. The
	// type is Null where any is read.
	Check(path []string, t value.Type) error
	// NewScanner makes a scanner for the values of a tree. It serves one goroutine.
	NewScanner(tree *Node) Scanner
}

// RegisteredFormat is a Format whose records name schemas of a registry.
type RegisteredFormat interface {
	Format
	// Registered says whether they do, as the options have it.
	Registered() bool
	// SchemaOf makes a format whose Check knows a schema that records are written
	// with, to look at definitions; the error says why it is none of the format.
	SchemaOf(Registered) (Format, error)
}

// Scanner takes the records of a topic apart.
type Scanner interface {
	// Scan puts the values that the scanner's tree looks for into their slots, and
	// an Object, or what else is there, into those above them; the slots of what
	// is not there it makes Absent. What was left in the slots by the record
	// before must go. Where the record holds nothing, as a tombstone, all of them are
	// Absent, and it is of no stream. The values may alias the record, and hold until the next
	// Scan.
	//
	// A record that can never be read is a *Poison without a stream.
	//
	// Scan depends on the record and on what the scanner was made of, and does no
	// I/O. A format whose records name a schema by an ID returns a *MissingSchema
	// for one that its Format has not been given. Decode and Mapper.Map return it as
	// it is, and nothing of the record has been used then: who maps fetches the
	// schema, gives it to the Format, and maps the same record again. A schema never
	// changes under its ID, so a replay decides alike.
	Scan(rec *Record, values []Datum) error
}
