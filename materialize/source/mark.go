package source

import (
	"bufio"
	"io"
)

// mark is the byte order mark with which spreadsheets and some other programs begin a text.
const mark = "\ufeff"

// unmarked reads a text without its byte order mark.
type unmarked struct {
	text  *bufio.Reader
	begun bool
}

func withoutMark(text io.Reader) io.Reader { return &unmarked{text: bufio.NewReader(text)} }

func (u *unmarked) Read(p []byte) (int, error) {
	if !u.begun {
		u.begun = true
		if start, _ := u.text.Peek(len(mark)); string(start) == mark {
			_, _ = u.text.Discard(len(mark))
		}
	}
	return u.text.Read(p)
}
