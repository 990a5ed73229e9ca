package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// mark is the byte order mark with which spreadsheets and some other programs begin a text.
const mark = "\ufeff"

// unmarked reads a text without its byte order mark. One whose mark is that of UTF-16 is an error.
type unmarked struct {
	text  *bufio.Reader
	begun bool
}

func withoutMark(text io.Reader) io.Reader { return &unmarked{text: bufio.NewReader(text)} }

func (u *unmarked) Read(p []byte) (int, error) {
	if !u.begun {
		switch start, _ := u.text.Peek(len(mark)); {
		case string(start) == mark:
			_, _ = u.text.Discard(len(mark))
		case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
			return 0, errors.New("the text is in UTF-16: convert it, for example with iconv -f UTF-16 -t UTF-8")
		}
		u.begun = true
	}
	return u.text.Read(p)
}
