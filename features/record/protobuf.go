package record

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// protobufSpec is the row of the format whose records are single messages of Protocol Buffers. A
// path names fields of messages and keys of maps. Schemas come from a registry, by the ID in each
// record, or from a file.
var protobufSpec = FormatSpec{
	Name: "protobuf", Describes: "one message of Protocol Buffers", New: newProtobuf,
	Options: []Option{
		{Name: "schema", Describes: "the .proto file with the message, for records without framing; without it, records name their schemas in the registry", File: ".proto"},
		{Name: "imports", Describes: "the .proto files that it imports, except those that come with protoc", File: ".proto", List: true},
		{Name: "message", Describes: "the name of the message, if the file has several"},
	},
}

type protobufFormat struct {
	name       string
	message    protoreflect.MessageDescriptor // of the file; nil for none
	registered *registered                    // nil without framing
}

func newProtobuf(o Options) (Format, error) {
	path := o.one("schema")
	if path == "" {
		for _, option := range []string{"imports", "message"} {
			if o.Texts[option] != nil {
				return nil, &OptionError{option, option + " needs schema: without a file, records name their schemas and messages"}
			}
		}
		return &protobufFormat{name: "protobuf of a registry", registered: newRegistered(registeredProtobuf)}, nil
	}
	files, hash := protoFiles{path: string(o.Files[path])}, sha256.New()
	fmt.Fprintf(hash, "%s\x00", o.Files[path])
	for _, imported := range o.Texts["imports"] {
		files[imported] = string(o.Files[imported])
		fmt.Fprintf(hash, "%s\x00", o.Files[imported])
	}
	file, err := files.compile(path)
	if err != nil {
		return nil, &OptionError{"schema", err.Error()}
	}
	message, err := messageNamed(file, o.one("message"))
	if err != nil {
		return nil, err
	}
	return &protobufFormat{name: fmt.Sprintf("protobuf %x %s", hash.Sum(nil), message.FullName()), message: message}, nil
}

// messageNamed finds a file's message by name, with or without its package; without a name it is
// the only one.
func messageNamed(file protoreflect.FileDescriptor, name string) (protoreflect.MessageDescriptor, error) {
	messages := file.Messages()
	var known []string
	for i := range messages.Len() {
		m := messages.Get(i)
		if name == string(m.FullName()) || name == string(m.Name()) {
			return m, nil
		}
		known = append(known, string(m.Name()))
	}
	switch {
	case len(known) == 0:
		return nil, &OptionError{"schema", "the schema has no message"}
	case name != "":
		return nil, &OptionError{"message", spelling.Unknown("message", name, known)}
	case len(known) > 1:
		return nil, &OptionError{"schema", "the schema has several messages; set message to one of " + strings.Join(known, ", ")}
	}
	return messages.Get(0), nil
}

func registeredProtobuf(s Registered) (any, error) {
	if s.Type != "PROTOBUF" {
		return nil, fmt.Errorf("it is of type %s, and the stream's format is protobuf", s.Type)
	}
	const path = "schema.proto"
	files := protoFiles{path: s.Text}
	for _, r := range s.References {
		files[r.Name] = r.Text
	}
	return files.compile(path)
}

func (f *protobufFormat) String() string { return f.name }

func (f *protobufFormat) NewScanner(tree *Node) Scanner {
	s := &protoScanner{}
	if f.registered == nil {
		s.program = compileProto(f.message, tree)
		return s
	}
	compile := func(schema any) *protoPrograms {
		return &protoPrograms{file: schema.(protoreflect.FileDescriptor), tree: tree, byIndexes: map[string]*protoMessage{}}
	}
	return &framedScanner[*protoPrograms]{newPrograms(f.registered, compile), func(of *protoPrograms, body []byte, values []Datum) error {
		program, body, err := of.find(body) // the record names its message, too
		if err != nil {
			return err
		}
		return s.scan(program, body, values)
	}}
}

func (f *protobufFormat) Check(path []string, t value.Type) error {
	if f.message == nil {
		return nil
	}
	return checkProto(f.message, path, t)
}

func (f *protobufFormat) Registered() bool { return f.registered != nil }

// SchemaOf makes a format that knows the registry's schema of its records. It assumes that they are
// its first message.
func (f *protobufFormat) SchemaOf(s Registered) (Format, error) {
	file, err := registeredProtobuf(s)
	if err != nil {
		return nil, err
	}
	messages := file.(protoreflect.FileDescriptor).Messages()
	if messages.Len() == 0 {
		return nil, errors.New("it has no message")
	}
	return &protobufFormat{name: f.name, message: messages.Get(0), registered: f.registered}, nil
}

// protoPrograms are the compiled messages of a file.
type protoPrograms struct {
	file      protoreflect.FileDescriptor
	tree      *Node
	byIndexes map[string]*protoMessage
}

// find returns the program of a record's message. After the schema's ID come the number of indexes
// and these: that of a message in the file, that of one within it, and so on, as variable-length
// zigzag integers; a single zero means the file's first message.
func (p *protoPrograms) find(body []byte) (*protoMessage, []byte, error) {
	count, n := binary.Varint(body)
	if n <= 0 || count < 0 || count > int64(len(body)) {
		return nil, nil, &Poison{Reason: Malformed, Message: "expected the indexes of a message after the ID of its schema"}
	}
	end := n
	for range count {
		_, n := binary.Varint(body[end:])
		if n <= 0 {
			return nil, nil, &Poison{Reason: Malformed, Message: "expected the indexes of a message after the ID of its schema"}
		}
		end += n
	}
	program := p.byIndexes[string(body[:end])]
	if program == nil {
		message, err := p.message(body[n:end])
		if err != nil {
			return nil, nil, err
		}
		program = compileProto(message, p.tree)
		p.byIndexes[string(body[:end])] = program
	}
	return program, body[end:], nil
}

// message returns the message at a path of indexes.
func (p *protoPrograms) message(indexes []byte) (protoreflect.MessageDescriptor, error) {
	messages, text := p.file.Messages(), []string(nil)
	if len(indexes) == 0 {
		indexes = []byte{0}
	}
	var message protoreflect.MessageDescriptor
	for len(indexes) > 0 {
		i, n := binary.Varint(indexes)
		indexes, text = indexes[n:], append(text, fmt.Sprint(i))
		if i < 0 || i >= int64(messages.Len()) {
			return nil, &Poison{Reason: UnusableSchema, Message: "the record's schema has no message " + strings.Join(text, ".")}
		}
		message = messages.Get(int(i))
		messages = message.Messages()
	}
	return message, nil
}
