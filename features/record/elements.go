package record

import (
	"strconv"
	"unicode/utf8"

	"github.com/weir-stream/weir/value"
)

// MaxElements is the greatest number of elements of an array of which each makes an event.
const MaxElements = 1000

// elements reads the elements of an array in JSON, of which each makes an event of its stream.
type elements struct {
	array   *Node // of the topic's tree
	tree    *Node // of an element
	scanner jsonScanner
	values  []value.Value // memory for those of the events
	text    []byte        // memory for their identities and derived texts
}

func newElements(array *Node) *elements {
	e := &elements{array: array, tree: &Node{}}
	e.scanner.tree = e.tree
	return e
}

// ArraysIn reports whether records of a format may have arrays whose elements make events.
func ArraysIn(f Format) bool {
	_, ok := f.(interface{ arrays() })
	return ok
}

func (jsonFormat) arrays() {}

// number assigns slots to an element's nodes, from the first free one.
func (e *elements) number(free int) int {
	if e == nil {
		return free
	}
	return e.tree.number(free)
}

// eachElement adds the events of a stream's elements. A null one makes none.
func (d *Decoder) eachElement(s *streamDecoder, recorded int64) error {
	e, path := s.elements, s.stream.Each
	switch array := &s.data[e.array.slot]; array.Type {
	case Absent:
		return s.reachable(WrongType, e.array, path)
	case Null:
		return nil
	case Array:
		if array.Text == nil { // of a format without texts of arrays
			return s.poison(WrongType, path, "expected an array in JSON")
		}
		e.scanner.begin(array.Text, s.data)
	default:
		return s.poison(WrongType, path, "expected an array, found %s", array.describe())
	}
	e.values, e.text = e.values[:0], e.text[:0]
	for i := 0; e.scanner.nextElement(e.tree); i++ {
		if i == MaxElements {
			return s.poison(Oversized, path, "the array has more than %d elements", MaxElements)
		}
		if s.data[e.tree.slot].Type == Null {
			continue
		}
		before := len(d.events)
		if err := d.event(s, recorded); err != nil {
			return err
		}
		if len(d.events) == before {
			continue
		}
		event, from := &d.events[before], len(e.values)
		e.values = append(e.values, s.values...)
		event.Values = e.values[from:len(e.values):len(e.values)]
		for i := range s.fields {
			if v := &event.Values[i]; s.fields[i].expr != nil && v.Type == value.String {
				from := len(e.text)
				e.text = append(e.text, v.Str...) // for the next element the expression writes over it
				v.Str = e.text[from:len(e.text):len(e.text)]
			}
		}
		if event.ID != nil && !s.stream.Within(s.stream.ID) {
			from := len(e.text)
			e.text = append(append(e.text, event.ID...), '/')
			e.text = strconv.AppendInt(e.text, int64(i), 10)
			event.ID = e.text[from:len(e.text):len(e.text)]
		}
	}
	return nil
}

// begin begins with an array that was scanned before.
func (s *jsonScanner) begin(array []byte, values []Datum) {
	s.data, s.pos, s.depth, s.values, s.text = array, 1, 1, values, s.text[:0]
	s.utf8 = utf8.Valid(array)
}

// nextElement scans the next element; false after the last one.
func (s *jsonScanner) nextElement(n *Node) bool {
	s.space()
	if s.peek() == ',' {
		s.pos++
		s.space()
	}
	return s.peek() != ']' && s.value(n)
}
