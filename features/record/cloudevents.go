package record

import "strings"

// cloudEventsSpec is the row of the format of CloudEvents in JSON: structured, one JSON object with
// the attributes and the data, or binary, with the attributes in headers and the data as the value.
// A path leads into the data; ce_NAME is the attribute NAME.
var cloudEventsSpec = FormatSpec{
	Name: "cloudevents", Describes: "one CloudEvent with data in JSON, structured or binary",
	New: func(Options) (Format, error) { return cloudEventsFormat{}, nil },
}

const attributePrefix = "ce_"

type cloudEventsFormat struct{ jsonFormat }

func (cloudEventsFormat) String() string { return "cloudevents" }

func (cloudEventsFormat) NewScanner(tree *Node) Scanner {
	s := &cloudEventsScanner{}
	var inData []*Node
	for _, c := range tree.children {
		if strings.HasPrefix(c.name, attributePrefix) {
			s.attributes = append(s.attributes, c)
		} else {
			inData = append(inData, c)
		}
	}
	data := &Node{name: "data", children: inData, until: tree.until}
	s.binary.tree = data
	// The envelope's own values follow those of the tree.
	free := tree.until
	envelope := &Node{children: []*Node{data}}
	member := func(name string) int {
		n := envelope.add([]string{name})
		if n.until == 0 { // it is new
			n.slot, n.until = free, free+1
			free++
		}
		return n.slot
	}
	s.version, s.base64 = member("specversion"), member("data_base64")
	for _, a := range s.attributes {
		s.from = append(s.from, member(strings.TrimPrefix(a.name, attributePrefix)))
	}
	envelope.slot, envelope.until = free, free+1
	s.structured.tree = envelope
	s.values = make([]Datum, free+1)
	return s
}

// cloudEventsScanner reads events for one tree.
type cloudEventsScanner struct {
	attributes         []*Node
	structured, binary jsonScanner
	values             []Datum // of the tree, and those of the envelope
	version, base64    int     // slots of specversion and data_base64
	from               []int   // slots of the attributes
}

func (*cloudEventsScanner) readsWithoutValue() {} // one with its attributes in headers may have no data

// Scan finds the values of the tree in an event.
func (s *cloudEventsScanner) Scan(rec *Record, values []Datum) error {
	clear(s.values)
	if rec.Headers != nil {
		if _, ok := rec.Headers.Last(attributePrefix + "specversion"); ok {
			return s.scanBinary(rec, values)
		}
	}
	if rec.Value == nil {
		clear(values)
		return nil // a tombstone
	}
	if err := s.structured.Scan(rec, s.values); err != nil {
		return err
	}
	if s.values[s.version].Type != String {
		return &Poison{Reason: Malformed, Message: "not a CloudEvent: it has neither specversion nor a header ce_specversion"}
	}
	copy(values, s.values)
	for i, a := range s.attributes {
		values[a.slot] = s.values[s.from[i]]
	}
	if typ := s.values[s.base64].Type; typ != Absent && typ != Null {
		return &Poison{Reason: WrongType, Path: "data_base64", Message: "expected data in JSON, found bytes"}
	}
	switch root := &values[0]; root.Type {
	case Absent, Null: // an event with attributes only
		root.Type = Object
	case Object:
	default:
		return &Poison{Reason: WrongType, Path: "data", Message: "expected an object, found " + root.Type.String()}
	}
	return nil
}

func (s *cloudEventsScanner) scanBinary(rec *Record, values []Datum) error {
	clear(values)
	values[0].Type = Object
	if len(rec.Value) > 0 {
		if err := s.binary.Scan(rec, values); err != nil {
			return err
		}
	}
	for _, a := range s.attributes {
		clear(values[a.slot:a.until])
		if text, ok := rec.Headers.Last(a.name); ok {
			values[a.slot] = Datum{Type: String, Text: text}
		}
	}
	return nil
}
