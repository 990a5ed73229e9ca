package record

import (
	"slices"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// Formats is the table of record formats. A format is one file with a Format, a Scanner and its row
// here; definitions, their JSON Schema and the messages about unknown formats use the table.
var Formats = []FormatSpec{
	{Name: "json", Describes: "one JSON object", New: func(Options) (Format, error) { return JSON, nil }},
	csvSpec,
	avroSpec,
	protobufSpec,
	jsonSchemaSpec,
	debeziumSpec,
	cloudEventsSpec,
}

// FormatSpec describes a format to the definitions loader.
type FormatSpec struct {
	Name      string
	Describes string // what a record is; for the JSON Schema
	Options   []Option
	// New makes the format with the given options, which are among Options and include all required
	// ones. Its error is an *OptionError.
	New func(Options) (Format, error)
}

// Option is an option of a format.
type Option struct {
	Name, Describes string
	List            bool // it is a list of texts, else one text
	Required        bool
	// File is the extension of the files that the option names, such as ".avsc"; empty if it names
	// none. Their paths are relative to the folder of the definitions.
	File string
}

// Options are the options given for a format, by name: a list each, of one text if the option is
// not a list. For a file the text is its path.
type Options struct {
	Texts map[string][]string
	Files map[string][]byte // contents, by path
}

// one returns the value of an option that is not a list; empty for none.
func (o Options) one(name string) string {
	if given := o.Texts[name]; len(given) > 0 {
		return given[0]
	}
	return ""
}

// framing reports whether records begin with the ID of their schema: as the option says, by default unless there is a
// schema file.
func (o Options) framing() (bool, error) {
	switch given := o.one("framing"); {
	case given == "confluent", given == "" && o.one("schema") == "":
		return true, nil
	case given != "" && given != "none":
		return false, &OptionError{"framing", spelling.Unknown("framing", given, []string{"confluent", "none"})}
	case o.one("schema") == "":
		return false, &OptionError{"framing", "framing none needs schema: without an ID, a record does not say its schema"}
	}
	return false, nil
}

// OptionError is a mistake in an option.
type OptionError struct{ Option, Message string }

// Error returns the message alone; the caller knows the option's location.
func (e *OptionError) Error() string { return e.Message }

// FindFormat finds a format's row by its name.
func FindFormat(name string) (FormatSpec, bool) {
	i := slices.IndexFunc(Formats, func(f FormatSpec) bool { return f.Name == name })
	if i < 0 {
		return FormatSpec{}, false
	}
	return Formats[i], true
}

// FormatNames returns the names of all formats.
func FormatNames() (names []string) {
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return names
}

// Format is how the records of a topic are encoded. All streams of a topic have the same one.
type Format interface {
	// String returns the format and its options as text, which is equal for formats that read records alike. The
	// versions of plans depend on it.
	String() string
	// Check returns why no value of a type can be at a path, for a finding about a stream that reads it. It returns nil
	// if one can be there, or if the format does not know. The type is Null if any is read.
	Check(path []string, t value.Type) error
	// NewScanner makes a scanner for the values of a tree, for use by one goroutine.
	NewScanner(tree *Node) Scanner
}

// RegisteredFormat is a Format whose records may name schemas of a registry.
type RegisteredFormat interface {
	Format
	// Registered reports whether they do, according to the options.
	Registered() bool
	// SchemaOf makes a format whose Check knows a schema of the records, to check definitions; it
	// fails if the schema is not one of the format.
	SchemaOf(Registered) (Format, error)
}

// Scanner finds values in the records of a topic.
type Scanner interface {
	// Scan puts the values that the scanner's tree looks for into their slots, an Object, or what else is there, into
	// the slots above them, and Absent into the slots of missing values. Nothing of an earlier record may remain in the
	// slots. If all slots are Absent, the record belongs to no stream. Tombstones are not scanned. The values may
	// alias the record, and are valid until the next Scan.
	//
	// A record that can never be read is a *Poison without a stream.
	//
	// Scan depends only on the record and on what the scanner was made from, and does no I/O. If a record names a
	// schema by an ID that its Format has not been given, Scan returns a *MissingSchema. Decode and Mapper.Map return
	// it unchanged, before they use anything of the record: the caller fetches the schema, gives it to the Format, and
	// maps the same record again. A schema never changes under its ID, so a replay has the same result.
	Scan(rec *Record, values []Datum) error
}
