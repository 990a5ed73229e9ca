package redisstore

import (
	"strconv"
	"unsafe"
)

// arg takes w.bytes with one argument appended. The argument is passed as a
// pointer to a string, which unlike a string or a slice costs no allocation.
func (w *writer) arg(grown []byte) {
	n := len(w.bytes)
	w.bytes = grown // where it was moved, earlier texts stand on in the old memory
	w.text(viewString(grown[n:]))
}

func (w *writer) num(n int64) { w.arg(strconv.AppendInt(w.bytes, n, 10)) }

func (w *writer) text(s string) {
	w.texts = append(w.texts, s)
	w.args = append(w.args, &w.texts[len(w.texts)-1])
}

// viewString is b as a string without a copy; b must not change while it is used.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
