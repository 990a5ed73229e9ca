package record

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// protoMessage reads the used fields of a message.
type protoMessage struct {
	node    *Node // if the message is an object; nil if it is a value
	fields  []*protoField
	lacking []protoDefault
}

// protoDefault is the value of a missing field whose presence is not tracked or that declares a
// default.
type protoDefault struct {
	slot  int
	datum Datum
}

// protoField reads one field.
type protoField struct {
	number  protowire.Number
	kind    protoreflect.Kind
	wire    protowire.Type
	node    *Node // nil for one that matters only for its oneof
	list    bool
	symbols map[int64][]byte // of an enum
	others  []*Node          // of the same oneof, which are unset once the field is set
	message *protoMessage
	value   protoValue // of a message that is itself a value
	entries *protoEntries
}

// protoEntries reads the entries of a map.
type protoEntries struct {
	key    *protoField
	values []*protoField // by the node's children
}

// protoValue is how the bytes of a message that is one value are read.
type protoValue uint8

const (
	noProtoValue protoValue = iota
	protoTimestamp
	protoDuration
	protoDecimal
)

var protoValues = map[protoreflect.FullName]protoValue{
	"google.protobuf.Timestamp": protoTimestamp,
	"google.protobuf.Duration":  protoDuration,
	"confluent.type.Decimal":    protoDecimal,
}

// protoTransparent are the messages whose fields are read as those of the message around them.
var protoTransparent = map[protoreflect.FullName]bool{
	"google.protobuf.DoubleValue": true, "google.protobuf.FloatValue": true, "google.protobuf.Int64Value": true,
	"google.protobuf.UInt64Value": true, "google.protobuf.Int32Value": true, "google.protobuf.UInt32Value": true,
	"google.protobuf.BoolValue": true, "google.protobuf.StringValue": true, "google.protobuf.BytesValue": true,
	"google.protobuf.Value": true, "google.protobuf.Struct": true, "google.protobuf.ListValue": true,
	"google.type.Decimal": true,
}

const protoNull protoreflect.FullName = "google.protobuf.NullValue"

// compileProto compiles a message for the nodes below n.
func compileProto(d protoreflect.MessageDescriptor, n *Node) *protoMessage {
	m := &protoMessage{node: n}
	transparent := protoTransparent[d.FullName()]
	if transparent {
		m.node = nil
	}
	fields := d.Fields()
	for i := range fields.Len() {
		fd, node := fields.Get(i), n
		if !transparent {
			node = n.child([]byte(fd.Name()))
		}
		others := protoOthers(fd, n, transparent)
		if node == nil && others == nil {
			continue
		}
		f := compileProtoField(fd, node)
		f.others = others
		m.fields = append(m.fields, f)
		if node != nil {
			m.lacking = appendProtoDefault(m.lacking, fd, f)
		}
	}
	return m
}

// protoOthers returns the nodes of the fields that a set field unsets.
func protoOthers(fd protoreflect.FieldDescriptor, n *Node, transparent bool) (nodes []*Node) {
	oneof := fd.ContainingOneof()
	if oneof == nil || oneof.IsSynthetic() {
		return nil
	}
	if transparent {
		return []*Node{n}
	}
	for i := range oneof.Fields().Len() {
		other := oneof.Fields().Get(i)
		if node := n.child([]byte(other.Name())); node != nil && other != fd {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func compileProtoField(fd protoreflect.FieldDescriptor, n *Node) *protoField {
	f := &protoField{number: fd.Number(), kind: fd.Kind(), wire: protoWires[fd.Kind()], node: n, list: fd.IsList()}
	switch {
	case n == nil || f.list:
	case fd.IsMap():
		f.entries = compileProtoMap(fd, n)
	case fd.Enum() != nil:
		f.symbols = protoSymbols(fd.Enum())
	case fd.Message() != nil:
		if f.value = protoValues[fd.Message().FullName()]; f.value == noProtoValue {
			f.message = compileProto(fd.Message(), n)
		}
	}
	return f
}

func compileProtoMap(fd protoreflect.FieldDescriptor, n *Node) *protoEntries {
	e := &protoEntries{key: compileProtoField(fd.MapKey(), nil)}
	for _, child := range n.children {
		e.values = append(e.values, compileProtoField(fd.MapValue(), child))
	}
	return e
}

// protoSymbols returns the names of an enum's values, the first if a number has several.
func protoSymbols(d protoreflect.EnumDescriptor) map[int64][]byte {
	symbols := map[int64][]byte{}
	for i := range d.Values().Len() {
		v := d.Values().Get(i)
		if symbols[int64(v.Number())] == nil && d.FullName() != protoNull {
			symbols[int64(v.Number())] = []byte(v.Name())
		}
	}
	return symbols
}

// appendProtoDefault appends the value of a field that a message lacks.
func appendProtoDefault(list []protoDefault, fd protoreflect.FieldDescriptor, f *protoField) []protoDefault {
	if f.list || fd.IsMap() || fd.Message() != nil || fd.HasPresence() && !fd.HasDefault() {
		return list
	}
	return append(list, protoDefault{f.node.slot, protoDefaultOf(fd, f)})
}

func protoDefaultOf(fd protoreflect.FieldDescriptor, f *protoField) Datum {
	def := fd.Default()
	switch fd.Kind() {
	case protoreflect.BoolKind:
		if def.Bool() {
			return Datum{Type: True}
		}
		return Datum{Type: False}
	case protoreflect.StringKind:
		return Datum{Type: String, Text: []byte(def.String())}
	case protoreflect.BytesKind:
		return Datum{Type: String, Text: slices.Clone(def.Bytes())}
	case protoreflect.EnumKind:
		return f.symbol(int64(def.Enum()), nil)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		bits := 64
		if fd.Kind() == protoreflect.FloatKind {
			bits = 32
		}
		return Datum{Type: Number, Text: appendFloat(nil, def.Float(), bits)}
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return Datum{Type: Number, Text: strconv.AppendUint(nil, def.Uint(), 10)}
	}
	return Datum{Type: Number, Text: strconv.AppendInt(nil, def.Int(), 10)}
}

// symbol returns the enum value with a number: its name, or the number if the schema has none. Its text may be written
// to dst.
func (f *protoField) symbol(n int64, dst []byte) Datum {
	if name := f.symbols[n]; name != nil {
		return Datum{Type: String, Text: name}
	}
	if len(f.symbols) == 0 { // of NullValue
		return Datum{Type: Null}
	}
	return Datum{Type: Number, Text: strconv.AppendInt(dst, n, 10)}
}

// protoWires are the wire types of kinds that are not varints.
var protoWires = map[protoreflect.Kind]protowire.Type{
	protoreflect.StringKind: protowire.BytesType, protoreflect.BytesKind: protowire.BytesType, protoreflect.MessageKind: protowire.BytesType,
	protoreflect.GroupKind:   protowire.StartGroupType,
	protoreflect.Fixed32Kind: protowire.Fixed32Type, protoreflect.Sfixed32Kind: protowire.Fixed32Type, protoreflect.FloatKind: protowire.Fixed32Type,
	protoreflect.Fixed64Kind: protowire.Fixed64Type, protoreflect.Sfixed64Kind: protowire.Fixed64Type, protoreflect.DoubleKind: protowire.Fixed64Type,
}
