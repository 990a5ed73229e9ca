package record

import (
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/weir-stream/weir/value"
)

// Records are scanned once, strictly and without building a tree: what is
// accepted is exactly what encoding/json accepts, and of a key that stands
// twice in an object the last one counts, as there.

// maxDepth is how deep values may be nested, as in encoding/json.
const maxDepth = 10000

// valueKind is the kind of a JSON value; absent is the zero one.
type valueKind uint8

const (
	absent valueKind = iota
	isNull
	isTrue
	isFalse
	isNumber
	isString
	isEscaped // a string with escapes in it
	isObject
	isArray
)

var kindNames = [...]string{"nothing", "null", "a bool", "a bool", "a number", "a string", "a string", "an object", "an array"}

func (k valueKind) String() string { return kindNames[k] }

// span is where a value stands in the record. Those of strings are without
// the quotes.
type span struct {
	kind       valueKind
	start, end int
}

// pathNode is a place in records that is looked at. The slots of a node and
// of those below it are next to each other.
type pathNode struct {
	name        string
	children    []*pathNode
	parent      *pathNode
	slot, until int
}

// add finds or makes the node at a path below n.
func (n *pathNode) add(path []string) *pathNode {
	for _, name := range path {
		child := n.child([]byte(name))
		if child == nil {
			child = &pathNode{name: name, parent: n}
			n.children = append(n.children, child)
		}
		n = child
	}
	return n
}

func (n *pathNode) child(name []byte) *pathNode {
	for _, c := range n.children {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}

// number gives slots to n and all below it, from the first free one.
func (n *pathNode) number(free int) int {
	n.slot = free
	free++
	for _, c := range n.children {
		free = c.number(free)
	}
	n.until = free
	return free
}

// jsonScan is one pass over a record.
type jsonScan struct {
	data  []byte
	pos   int
	depth int
	spans []span // by slot
	key   []byte // memory for keys with escapes
}

// scan finds the values of the tree in data. Where it is not JSON, it returns
// false and pos is near the error.
func (s *jsonScan) scan(data []byte, tree *pathNode) bool {
	s.data, s.pos, s.depth = data, 0, 0
	s.space()
	if !s.value(tree) {
		return false
	}
	s.space()
	return s.pos == len(data)
}

// peek is the next byte, 0 at the end.
func (s *jsonScan) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *jsonScan) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// value scans a value and keeps its place if n is not nil.
func (s *jsonScan) value(n *pathNode) bool {
	if n != nil {
		clear(s.spans[n.slot:n.until])
	}
	start := s.pos
	var kind valueKind
	switch c := s.peek(); c {
	case '{':
		if !s.members(n, '}') {
			return false
		}
		kind = isObject
	case '[':
		if !s.members(nil, ']') {
			return false
		}
		kind = isArray
	case '"':
		escaped, ok := s.text()
		if !ok {
			return false
		}
		if n != nil {
			kind = isString
			if escaped {
				kind = isEscaped
			}
			s.spans[n.slot] = span{kind, start + 1, s.pos - 1}
		}
		return true
	case 't':
		if !s.word("true") {
			return false
		}
		kind = isTrue
	case 'f':
		if !s.word("false") {
			return false
		}
		kind = isFalse
	case 'n':
		if !s.word("null") {
			return false
		}
		kind = isNull
	default:
		end := value.ScanNumber(s.data, s.pos)
		if end < 0 {
			return false
		}
		s.pos = end
		kind = isNumber
	}
	if n != nil {
		s.spans[n.slot] = span{kind, start, s.pos}
	}
	return true
}

func (s *jsonScan) word(w string) bool {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return false
	}
	s.pos += len(w)
	return true
}

// members scans an object or an array up to the mark that closes it.
func (s *jsonScan) members(n *pathNode, closing byte) bool {
	if s.depth++; s.depth > maxDepth {
		return false
	}
	s.pos++
	s.space()
	for first := true; s.peek() != closing || !first; first = false {
		var child *pathNode
		if closing == '}' {
			var ok bool
			if child, ok = s.name(n); !ok {
				return false
			}
		}
		if !s.value(child) {
			return false
		}
		s.space()
		if s.peek() != ',' {
			break
		}
		s.pos++
		s.space()
	}
	if s.peek() != closing {
		return false
	}
	s.pos++
	s.depth--
	return true
}

// name scans the name of an object's member and the colon behind it, and finds
// the member below n, nil for none.
func (s *jsonScan) name(n *pathNode) (child *pathNode, ok bool) {
	if s.peek() != '"' {
		return nil, false
	}
	start := s.pos + 1
	escaped, ok := s.text()
	if !ok {
		return nil, false
	}
	if n != nil && len(n.children) > 0 {
		key := s.data[start : s.pos-1]
		if escaped {
			s.key = appendUnescaped(s.key[:0], key)
			key = s.key
		}
		child = n.child(key)
	}
	s.space()
	if s.peek() != ':' {
		return nil, false
	}
	s.pos++
	s.space()
	return child, true
}

// plain are the bytes of strings that stand for themselves.
var plain = func() (p [256]bool) {
	for c := range p {
		p[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return p
}()

// text scans a string and says whether it has escapes.
func (s *jsonScan) text() (escaped, ok bool) {
	data := s.data
	for i := s.pos + 1; i < len(data); i++ {
		if plain[data[i]] {
			continue
		}
		switch c := data[i]; {
		case c == '"':
			s.pos = i + 1
			return escaped, true
		case c == '\\':
			escaped = true
			if i++; i == len(data) {
				break
			}
			switch data[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if len(data)-i < 5 || !isHex(data[i+1]) || !isHex(data[i+2]) || !isHex(data[i+3]) || !isHex(data[i+4]) {
					s.pos = i
					return false, false
				}
				i += 4
			default:
				s.pos = i
				return false, false
			}
		default: // a control character
			s.pos = i
			return false, false
		}
	}
	s.pos = len(data)
	return false, false
}

func isHex(c byte) bool { return value.IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// appendUnescaped appends the content of a string whose escapes are sound.
// Half a surrogate pair becomes U+FFFD, as in encoding/json.
func appendUnescaped(dst, text []byte) []byte {
	dst = slices.Grow(dst, len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		i++
		switch text[i] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(text[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				whole := rune(utf8.RuneError)
				if rest := text[i+1:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
					whole = utf16.DecodeRune(r, hex4(rest[2:]))
				}
				if whole != utf8.RuneError {
					i += 6
				}
				r = whole
			}
			dst = utf8.AppendRune(dst, r)
		default: // " \ /
			dst = append(dst, text[i])
		}
	}
	return dst
}

func hex4(text []byte) (r rune) {
	for _, c := range text[:4] {
		switch {
		case value.IsDigit(c):
			c -= '0'
		default:
			c = c | 0x20 - 'a' + 10
		}
		r = r<<4 | rune(c)
	}
	return r
}
