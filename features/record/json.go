package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/weir-stream/weir/value"
)

// JSON is the format of records that are one JSON object each.
var JSON Format = jsonFormat{}

type jsonFormat struct{}

func (jsonFormat) String() string                   { return "json" }
func (jsonFormat) Check([]string, value.Type) error { return nil }
func (jsonFormat) NewScanner(tree *Node) Scanner    { return &jsonScanner{tree: tree} }

// maxDepth is how deep values may be nested, as in encoding/json.
const maxDepth = 10000

// jsonScanner scans a record once, strictly and without building a tree: it accepts exactly what
// encoding/json accepts and, as there, the last value of a repeated key counts.
type jsonScanner struct {
	tree   *Node
	data   []byte
	pos    int
	depth  int
	utf8   bool    // data is valid UTF-8, and so all its strings
	values []Datum // by slot
	key    []byte  // memory for keys with escapes
	text   []byte  // memory for strings with escapes
}

// Scan finds the values of the tree in a JSON object.
func (s *jsonScanner) Scan(rec *Record, values []Datum) error {
	s.data, s.pos, s.depth, s.values, s.text = rec.Value, 0, 0, values, s.text[:0]
	s.utf8 = utf8.Valid(s.data)
	if len(s.data) == 0 {
		return &Poison{Reason: Malformed, Message: "the record is empty, and not a tombstone, which has no value at all"}
	}
	if !s.whole() {
		return &Poison{Reason: Malformed, Message: fmt.Sprintf("malformed JSON at byte %d of %d", s.pos, len(s.data))}
	}
	if root := &values[s.tree.slot]; root.Type != Object {
		return &Poison{Reason: WrongType, Message: "expected an object, found " + root.Type.String()}
	}
	return nil
}

// whole scans the record and reports whether it is JSON; if not, pos is near the error.
func (s *jsonScanner) whole() bool {
	s.space()
	if !s.value(s.tree) {
		return false
	}
	s.space()
	return s.pos == len(s.data)
}

// peek returns the next byte, 0 at the end.
func (s *jsonScanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *jsonScanner) space() {
	for s.pos < len(s.data) && s.data[s.pos] <= ' ' { // usually there is none
		switch s.data[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// value scans a value and stores it if n is not nil.
func (s *jsonScanner) value(n *Node) bool {
	if n != nil && n.until > n.slot+1 {
		clear(s.values[n.slot+1 : n.until])
	}
	start := s.pos
	var typ DatumType
	switch c := s.peek(); c {
	case '{':
		if !s.members(n, '}') {
			return false
		}
		typ = Object
	case '[':
		if !s.members(nil, ']') {
			return false
		}
		typ = Array
	case '"':
		escaped, ok := s.scanString()
		if ok && n != nil {
			s.values[n.slot] = Datum{Type: String, UTF8: s.utf8, Text: s.content(start+1, s.pos-1, escaped)}
		}
		return ok
	case 't':
		if !s.word("true") {
			return false
		}
		typ = True
	case 'f':
		if !s.word("false") {
			return false
		}
		typ = False
	case 'n':
		if !s.word("null") {
			return false
		}
		typ = Null
	default:
		end := value.ScanNumber(s.data, s.pos)
		if end < 0 {
			return false
		}
		s.pos = end
		typ = Number
	}
	if n != nil {
		s.values[n.slot] = Datum{Type: typ, Text: s.data[start:s.pos:s.pos]}
	}
	return true
}

// content returns the content of a string between its quotes.
func (s *jsonScanner) content(start, end int, escaped bool) []byte {
	text := s.data[start:end:end]
	if !escaped {
		return text
	}
	from := len(s.text)
	s.text = appendUnescaped(s.text, text)
	return s.text[from:len(s.text):len(s.text)]
}

func (s *jsonScanner) word(w string) bool {
	if len(s.data)-s.pos < len(w) || string(s.data[s.pos:s.pos+len(w)]) != w {
		return false
	}
	s.pos += len(w)
	return true
}

// members scans an object or an array up to the closing bracket.
func (s *jsonScanner) members(n *Node, closing byte) bool {
	if s.depth++; s.depth > maxDepth {
		return false
	}
	s.pos++
	s.space()
	at := 0
	for first := true; s.peek() != closing || !first; first = false {
		var child *Node
		if closing == '}' {
			var ok bool
			if child, ok = s.name(n, &at); !ok {
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

// name scans the name of an object's member and the colon after it, and finds the member below n, nil if there is none;
// at is the index after that of the last one found.
func (s *jsonScanner) name(n *Node, at *int) (child *Node, ok bool) {
	if n != nil {
		if child = n.beginning(s.data[s.pos:], at); child != nil {
			s.pos += len(child.member)
			s.space()
			return child, true
		}
	}
	if s.peek() != '"' {
		return nil, false
	}
	start := s.pos + 1
	escaped, ok := s.scanString()
	if !ok {
		return nil, false
	}
	if n != nil && len(n.children) > 0 {
		key := s.data[start : s.pos-1]
		if escaped {
			s.key = appendUnescaped(s.key[:0], key)
			key = s.key
		}
		if child = n.following(key, at); child != nil && child.member == nil && !escaped {
			child.member = append(bytes.Clone(s.data[start-1:s.pos]), ':')
		}
	}
	s.space()
	if s.peek() != ':' {
		return nil, false
	}
	s.pos++
	s.space()
	return child, true
}

// scanString scans a string and reports whether it has escapes.
func (s *jsonScanner) scanString() (escaped, ok bool) {
	data := s.data
	for i := plainUntil(data, s.pos+1); i < len(data); i = plainUntil(data, i+1) {
		switch data[i] {
		case '"':
			s.pos = i + 1
			return escaped, true
		case '\\':
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

// plainUntil is the index, from i on, of the first byte that strings do not contain unescaped: a quotation mark, a
// backslash or a control character; the length of data if there is none. It looks at eight bytes at a time: a byte of a
// word is less than n, for n up to 128, if subtracting n sets its high bit that was not set before. The first such byte
// is exact; those after it may be wrong by a borrow. See "Bit Twiddling Hacks" by Sean Eron Anderson.
func plainUntil(data []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(data); i += 8 {
		word := binary.LittleEndian.Uint64(data[i:])
		quotes, backslashes := word^ones*'"', word^ones*'\\'
		found := (word-ones*' ')&^word | (quotes-ones)&^quotes | (backslashes-ones)&^backslashes
		if found &= highs; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\'; i++ {
	}
	return i
}

func isHex(c byte) bool { return value.IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// appendUnescaped appends the content of a string whose escapes are valid. Half a surrogate pair
// becomes U+FFFD, as in encoding/json.
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
