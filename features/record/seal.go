package record

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/state"
)

// HeaderPrefix begins the names of the headers that Weir writes.
const HeaderPrefix = "weir-"

// SealHeader is the last header of a record that Weir has written to be read by itself. It says how many headers before
// it are Weir's, and proves that these, the record and its other headers are as written. Headers of those names in any
// other place are somebody else's, whoever it is: anyone who may write an event may write them.
const SealHeader = HeaderPrefix + "seal"

// ReceiptHeader and SkippedHeader make a record of the dead-letter topic say what was replayed, and what a fill could
// not use.
const (
	ReceiptHeader = HeaderPrefix + "receipt"
	SkippedHeader = HeaderPrefix + "skipped"
)

// Header is one header of a record; a nil Value means that it has none.
type Header struct {
	Key   string
	Value []byte
}

// SealOf returns the seal of a record that goes to a topic, of whose headers the last few, and at least one, are Weir's.
func SealOf(seal state.Seal, topic string, key, value []byte, headers []Header, ours int) Header {
	count := strconv.Itoa(ours)
	return Header{SealHeader, []byte(count + " " + seal.Sign(sealed(topic, count, key, value, headers)...))}
}

// sealed lists what a seal covers.
func sealed(topic, count string, key, value []byte, headers []Header) [][]byte {
	texts := [][]byte{[]byte(topic), []byte(count), key, value}
	for _, h := range headers {
		texts = append(texts, []byte(h.Key), h.Value)
	}
	return texts
}

// Unseal returns the headers of a record of a topic: those that Weir has written, without the seal, and the others. Without
// a seal that proves it, all are others. They alias the record.
func Unseal(seal state.Seal, topic string, key, value []byte, of Headers) (ours, others HeaderList) {
	if of == nil {
		return nil, nil
	}
	for key, value := range of.All() {
		others = append(others, Header{key, value})
	}
	last := len(others) - 1
	if last < 1 || others[last].Key != SealHeader {
		return nil, others
	}
	count, proof, _ := strings.Cut(string(others[last].Value), " ")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > last || !seal.Proves([]byte(proof), sealed(topic, count, key, value, others[:last])...) {
		return nil, others
	}
	return others[last-n : last : last], others[: last-n : last-n]
}

// HeaderList are headers in memory.
type HeaderList []Header

// Last returns the value of the last header with a key.
func (l HeaderList) Last(key string) (value []byte, ok bool) {
	for _, h := range slices.Backward(l) {
		if h.Key == key {
			return h.Value, true
		}
	}
	return nil, false
}

// All iterates over the headers.
func (l HeaderList) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, h := range l {
			if !yield(h.Key, h.Value) {
				return
			}
		}
	}
}

// foreignPrefix marks, in a dead letter, the headers of a record whose names are of Weir's.
const foreignPrefix = "foreign-"

// Foreign returns the name that a record's own header has in a dead letter, beside those of the letter: Native's inverse.
func Foreign(name string) string {
	if strings.HasPrefix(name, HeaderPrefix) || isForeign(name) {
		return foreignPrefix + name
	}
	return name
}

// Native returns the name of a record's own header, given the one in its dead letter.
func Native(name string) string {
	if isForeign(name) {
		return strings.TrimPrefix(name, foreignPrefix)
	}
	return name
}

// isForeign reports whether a name may be one that Foreign has made.
func isForeign(name string) bool {
	rest, marked := strings.CutPrefix(name, foreignPrefix)
	return marked && (strings.HasPrefix(rest, HeaderPrefix) || isForeign(rest))
}
