package record

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// checkProto says why no value of a type can be at a path below a message.
func checkProto(d protoreflect.MessageDescriptor, path []string, t value.Type) error {
	if len(path) == 0 {
		return nil
	}
	var known []string
	for i := range d.Fields().Len() {
		fd := d.Fields().Get(i)
		if string(fd.Name()) == path[0] {
			return checkProtoField(fd, path[1:], t)
		}
		known = append(known, string(fd.Name()))
	}
	return errors.New(spelling.UnknownIn(" in message "+string(d.Name()), "field", path[0], known))
}

// checkProtoField does the same for a field.
func checkProtoField(fd protoreflect.FieldDescriptor, path []string, t value.Type) error {
	if fd.IsMap() && len(path) > 0 {
		return checkProtoField(fd.MapValue(), path[1:], t)
	}
	if m := fd.Message(); m != nil && !fd.IsMap() && !fd.IsList() && protoValues[m.FullName()] == noProtoValue {
		switch {
		case protoFree[m.FullName()]:
			return nil
		case protoTransparent[m.FullName()]:
			return checkProtoField(m.Fields().Get(0), path, t)
		case len(path) > 0:
			return checkProto(m, path, t)
		}
	}
	if len(path) > 0 {
		return fmt.Errorf("%s is inside %s, which has no fields", path[0], describeProto(fd))
	}
	if !protoHolds(fd, t) {
		return fmt.Errorf("%s cannot be read from %s", expectedType(t), describeProto(fd))
	}
	return nil
}

// protoFree are the messages that may hold anything.
var protoFree = map[protoreflect.FullName]bool{"google.protobuf.Value": true, "google.protobuf.Struct": true}

// describeProto names the type of a field.
func describeProto(fd protoreflect.FieldDescriptor) string {
	name := fd.Kind().String()
	switch {
	case fd.IsMap():
		name = "map"
	case fd.Message() != nil:
		name = string(fd.Message().FullName())
	}
	if fd.IsList() {
		name = "repeated " + name
	}
	return "Protobuf's " + name
}

// protoHolds reports whether a field may hold values of a field's type.
func protoHolds(fd protoreflect.FieldDescriptor, t value.Type) bool {
	var h holds
	switch {
	case fd.IsList(), fd.IsMap():
	case fd.Message() != nil:
		h.number = protoValues[fd.Message().FullName()] != noProtoValue
	case fd.Kind() == protoreflect.StringKind, fd.Kind() == protoreflect.BytesKind, fd.Kind() == protoreflect.EnumKind:
		h.text = true
	case fd.Kind() == protoreflect.BoolKind:
		h.truth = true
	default:
		h.number = true
	}
	return h.values(t)
}
