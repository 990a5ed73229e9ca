package expr

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/weir-stream/weir/value"
)

// textFunctions are those of texts. Characters are those of Unicode, and the first one has the number 1:
//
//	lower(s), upper(s)             in lower or upper case
//	trim(s)                        without white space at its ends
//	len(s)                         number of characters
//	string(x)                      any value as text
//	substr(s, start[, length])     from a character on; a negative start counts from the end
//	split(s, separator, n)         the n-th part; a negative n counts from the end. Null if there is none
//	replace(s, old, new)           with new in place of each old
//	extract(s, pattern[, group])   what a pattern (RE2) matches first, or a group of it, else null
//	email_domain(s)                what follows the last @, in lower case; null if nothing does, or nothing is before it
//	normalize(s)                   in the normal form C of Unicode, case-folded, with single spaces and none at its ends
//	hash(s)                        its SHA-256, 64 digits in lower case
var textFunctions = map[string]function{
	"lower":        of("s", value.String, mapped(unicode.ToLower), value.String),
	"upper":        of("s", value.String, mapped(unicode.ToUpper), value.String),
	"trim":         of("s", value.String, trim, value.String),
	"len":          of("s", value.Int, length, value.String),
	"string":       of("x", value.String, text, value.Null),
	"substr":       {arguments: "s, start[, length]", optional: 2, takes: []value.Type{value.String, value.Int, value.Int}, gives: givesText, prepare: prepared(substring)},
	"split":        of("s, separator, n", value.String, part, value.String, value.String, value.Int),
	"replace":      of("s, old, new", value.String, replace, value.String, value.String, value.String),
	"extract":      {arguments: "s, pattern[, group]", optional: 2, takes: []value.Type{value.String, value.String, value.Int}, gives: givesText, prepare: prepareExtract},
	"email_domain": of("s", value.String, emailDomain, value.String),
	"normalize":    of("s", value.String, normalize, value.String),
	"hash":         of("s", value.String, hash, value.String),
}

func givesText([]term) (value.Type, uint8, error) { return value.String, 0, nil }

func mapped(mapping func(rune) rune) apply {
	return func(f *frame, args []*value.Value) value.Value {
		start := len(f.text)
		f.text = slices.Grow(f.text, min(len(args[0].Str), maxText))
		for s := args[0].Str; len(s) > 0 && len(f.text) <= maxText; {
			r, size := utf8.DecodeRune(s)
			f.text = utf8.AppendRune(f.text, mapping(r))
			s = s[size:]
		}
		return f.held(start)
	}
}

func trim(_ *frame, args []*value.Value) value.Value { return textOf(bytes.TrimSpace(args[0].Str)) }

func length(_ *frame, args []*value.Value) value.Value {
	return intOf(int64(utf8.RuneCount(args[0].Str)))
}

func text(f *frame, args []*value.Value) value.Value {
	start := len(f.text)
	f.text = args[0].AppendText(f.text)
	return f.held(start)
}

// substring returns characters as SQL does: those at positions from start on, of which there may be fewer.
func substring(f *frame, args []*value.Value) value.Value {
	if slices.ContainsFunc(args[1:], (*value.Value).Wide) {
		return f.fail(ErrOverflow)
	}
	s, from := args[0].Str, args[1].Num
	all := int64(utf8.RuneCount(s))
	to := all
	if from < 0 {
		from += all + 1
	}
	if len(args) > 2 {
		count := args[2].Num
		if count < 0 {
			return value.Value{}
		}
		if end, ok := value.Plus(from, count); ok {
			to = min(to, end-1)
		}
	}
	from = max(from, 1)
	if from > to {
		return textOf(s[:0])
	}
	return textOf(s[byteOf(s, from-1):byteOf(s, to)])
}

// byteOf returns where the character after n others begins.
func byteOf(s []byte, n int64) (at int) {
	for ; n > 0; n-- {
		_, size := utf8.DecodeRune(s[at:])
		at += size
	}
	return at
}

func part(f *frame, args []*value.Value) value.Value {
	if args[2].Wide() {
		return f.fail(ErrOverflow)
	}
	s, separator, n := args[0].Str, args[1].Str, args[2].Num
	if len(separator) == 0 {
		return value.Value{}
	}
	parts := int64(bytes.Count(s, separator)) + 1
	if n < 0 {
		n += parts + 1
	}
	if n < 1 || n > parts {
		return value.Value{}
	}
	for ; n > 1; n-- {
		_, s, _ = bytes.Cut(s, separator)
	}
	s, _, _ = bytes.Cut(s, separator)
	return textOf(s)
}

func replace(f *frame, args []*value.Value) value.Value {
	s, old, by := args[0].Str, args[1].Str, args[2].Str
	if len(old) == 0 {
		return *args[0]
	}
	start := len(f.text)
	for len(f.text) <= maxText {
		before, after, found := bytes.Cut(s, old)
		f.text = append(f.text, before...)
		if !found {
			break
		}
		f.text, s = append(f.text, by...), after
	}
	return f.held(start)
}

func prepareExtract(c *exprCompiler, args []term) (apply, error) {
	text, err := textLiteral(args, 1, "pattern")
	if err != nil {
		return nil, err
	}
	p, err := compilePattern(text)
	if err != nil {
		return nil, &argumentError{1, err.Error()}
	}
	if p.NumSubexp() > maxGroups {
		return nil, &argumentError{1, fmt.Sprintf("the pattern has more than %d groups: write one that is not extracted as (?:…)", maxGroups)}
	}
	c.steps += p.size
	group := int64(min(1, p.NumSubexp())) // the first, if there is one
	if len(args) > 2 {
		if group, err = wholeLiteral(args, 2, "group", 0, int64(p.NumSubexp())); err != nil {
			return nil, err
		}
	}
	return func(f *frame, args []*value.Value) value.Value {
		s := args[0].Str
		if !p.searches(f, s) {
			return value.Value{}
		}
		at := p.FindSubmatchIndex(s)
		if at == nil || at[2*group] < 0 {
			return value.Value{}
		}
		return textOf(s[at[2*group]:at[2*group+1]])
	}, nil
}

func emailDomain(f *frame, args []*value.Value) value.Value {
	s := bytes.TrimSpace(args[0].Str)
	at := bytes.LastIndexByte(s, '@')
	if at < 1 || at == len(s)-1 {
		return value.Value{}
	}
	domain := textOf(s[at+1:])
	return mapped(unicode.ToLower)(f, []*value.Value{&domain})
}

func normalize(f *frame, args []*value.Value) value.Value {
	if len(args[0].Str) > maxText { // each of the three passes takes some 100 ns for a byte of marks that combine
		return f.fail(errNormalized)
	}
	folded := norm.NFC.Bytes(cases.Fold().Bytes(norm.NFC.Bytes(args[0].Str)))
	start := len(f.text)
	for word := range bytes.FieldsSeq(folded) {
		if len(f.text) > start {
			f.text = append(f.text, ' ')
		}
		f.text = append(f.text, word...)
	}
	return f.held(start)
}

func hash(f *frame, args []*value.Value) value.Value {
	sum := sha256.Sum256(args[0].Str)
	start := len(f.text)
	f.text = hex.AppendEncode(f.text, sum[:])
	return f.held(start)
}
