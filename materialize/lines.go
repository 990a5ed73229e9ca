package materialize

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine is the greatest length of an event's line in bytes.
const maxLine = 64 << 20

type lines struct {
	file    string
	scanner *bufio.Scanner
	line    int
}

// NewLines reads events from lines, a JSON object each; empty lines are passed
// over. The file is named in errors.
func NewLines(file string, r io.Reader) Source {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 1<<16), maxLine)
	return &lines{file: file, scanner: s}
}

func (l *lines) At(err error) error { return &LineError{File: l.file, Line: l.line, Err: err} }

func (l *lines) Next() ([]byte, error) {
	for l.scanner.Scan() {
		l.line++
		if event := bytes.TrimSpace(l.scanner.Bytes()); len(event) > 0 {
			return event, nil
		}
	}
	switch err := l.scanner.Err(); {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		l.line++
		return nil, l.At(fmt.Errorf("the line has more than %d bytes", maxLine))
	default:
		l.line++
		return nil, l.At(err)
	}
}
