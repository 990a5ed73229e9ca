package record

import "fmt"

// debeziumSpec is the row of the format of Debezium's change events in JSON, with or without the
// schema that Kafka Connect adds. A path leads into the row: as it is after the change, or as it
// was before a deletion. __op, __ts_ms and __source are those of the envelope. Changes without a row
// belong to no stream.
var debeziumSpec = FormatSpec{
	Name: "debezium", Describes: "one change event of Debezium in JSON",
	New: func(Options) (Format, error) { return debeziumFormat{}, nil },
}

type debeziumFormat struct{ jsonFormat }

func (debeziumFormat) String() string { return "debezium" }

// debeziumNames maps names in paths to members of the envelope.
var debeziumNames = map[string]string{"__op": "op", "__ts_ms": "ts_ms", "__source": "source"}

func (debeziumFormat) NewScanner(tree *Node) Scanner {
	s := &debeziumScanner{size: tree.until}
	after, before := &Node{name: "after", until: tree.until}, &Node{name: "before", slot: tree.until, until: 2 * tree.until}
	free := 2 * tree.until
	s.op = free
	members := []*Node{after, before, {name: "op", slot: free, until: free + 1}}
	free++
	for _, c := range tree.children {
		name, ofEnvelope := debeziumNames[c.name]
		switch {
		case !ofEnvelope:
			after.children = append(after.children, c)
			before.children = append(before.children, c.moved(tree.until))
		case name == "op":
			s.meta = append(s.meta, movedNode{c, s.op})
		default:
			s.meta = append(s.meta, movedNode{c, free})
			member := c.moved(free - c.slot)
			member.name = name
			members = append(members, member)
			free = member.until
		}
	}
	payload := &Node{name: "payload", children: members, slot: free, until: free + 1}
	s.payload = free
	s.json.tree = &Node{children: append([]*Node{payload}, members...), slot: free + 1, until: free + 2}
	s.values = make([]Datum, free+2)
	return s
}

// moved returns a copy of a node and those below it, with shifted slots.
func (n *Node) moved(by int) *Node {
	m := &Node{name: n.name, slot: n.slot + by, until: n.until + by}
	for _, c := range n.children {
		m.children = append(m.children, c.moved(by))
	}
	return m
}

// movedNode is a node whose values are scanned into other slots.
type movedNode struct {
	*Node
	from int
}

// debeziumScanner reads change events for one tree.
type debeziumScanner struct {
	json   jsonScanner
	size   int     // of the tree
	values []Datum // of the row after and before, and of the envelope
	op     int     // slot
	// payload is the slot of what follows a schema.
	payload int
	meta    []movedNode
}

// unavailable is what connectors, such as that for PostgreSQL, write in place of a long value that a change has left as it was:
// the database does not log it. In place of bytes they write the same bytes, which are base64 in JSON.
const (
	unavailable       = "__debezium_unavailable_value"
	unavailableBase64 = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
)

// Scan finds the values of the tree in a change event.
func (s *debeziumScanner) Scan(rec *Record, values []Datum) error {
	clear(values)
	clear(s.values)
	if err := s.json.Scan(rec, s.values); err != nil {
		return err
	}
	row, name := s.values[:s.size], "after"
	switch op := &s.values[s.op]; string(op.Text) {
	case "c", "u", "r":
	case "d":
		row, name = s.values[s.size:2*s.size], "before"
	case "t", "m": // a table was emptied, or a message
		return nil
	default:
		if op.Type == Absent && s.values[s.payload].Type == Null {
			return nil // a tombstone with a schema
		}
		hint := ""
		if op.Type == Absent {
			hint = "; flattened rows are of format json, and heartbeats and the like should have topics of their own"
		}
		return &Poison{Reason: Malformed, Message: fmt.Sprintf("not a change event of Debezium: its op is %s%s", op.describe(), hint)}
	}
	if typ := row[0].Type; typ != Object {
		return &Poison{Reason: WrongType, Path: name, Message: "expected an object, found " + typ.String()}
	}
	copy(values, row)
	for i := range values {
		if v := &values[i]; v.Type == String && (string(v.Text) == unavailable || string(v.Text) == unavailableBase64) {
			*v = Datum{Type: Null}
		}
	}
	for _, m := range s.meta {
		copy(values[m.slot:m.until], s.values[m.from:])
	}
	return nil
}
