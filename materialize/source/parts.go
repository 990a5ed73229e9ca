package source

import (
	"bytes"
	"fmt"
	"io"
	"slices"
)

// Part is a part of a text file: whole lines, and of a CSV whole records. Its memory is used again for the next part
// that is cut into it.
type Part struct {
	text      []byte
	before    int  // lines of the file before it
	quotes    bool // of a CSV: it may have some
	enveloped bool // its lines are envelopes
}

// Divisible is a Source of a text, whose parts can be read concurrently.
type Divisible interface {
	Source
	// Cut cuts the next part off the text, of size bytes or as many more as its first line or record has. It returns
	// io.EOF after the last part; other errors are a *lineError, and come after the lines before them.
	Cut(p *Part, size int) error
	// NewPartReader makes a source of the events of the parts that it is given.
	NewPartReader() PartReader
}

// PartReader is a Source of the events of one part.
type PartReader interface {
	Source
	// Reset makes it read a part, which is not changed until all its events have been read.
	Reset(p *Part)
}

// cutter cuts a text into parts.
type cutter struct {
	in     io.Reader
	quotes bool // line ends within quotes do not end a part
	most   int  // bytes of a line, which is cut after them, or of a record, which is an error; 0 if there is no limit
	rest   []byte
	lines  int   // cut off
	err    error // of in
}

// cut cuts the next part off the text. Its error is that of the reader, or about a record that is too long.
func (c *cutter) cut(p *Part, size int) error {
	p.text, p.before = append(p.text[:0], c.rest...), c.lines
	c.rest = c.rest[:0]
	for end := 0; end == 0; size *= 2 {
		if c.most > 0 {
			size = min(size, c.most+1)
		}
		c.read(p, size)
		end = c.end(p)
		switch {
		case end == 0 && c.quotes && c.most > 0 && len(p.text) > c.most:
			return fmt.Errorf("the record has more than %d bytes; perhaps a quote is not closed", c.most)
		case c.err == io.EOF || end == 0 && c.most > 0 && len(p.text) > c.most:
			end = len(p.text) // also a last line without an end
		case end == 0 && c.err == nil:
			continue
		}
		if end == 0 {
			return c.err
		}
		c.rest = append(c.rest, p.text[end:]...)
		p.text = p.text[:end]
	}
	c.lines += bytes.Count(p.text, lineEnd)
	return nil
}

// read reads until the part has size bytes, or until an error.
func (c *cutter) read(p *Part, size int) {
	p.text = slices.Grow(p.text, max(0, size-len(p.text)))
	for c.err == nil && len(p.text) < size {
		var n int
		n, c.err = c.in.Read(p.text[len(p.text):size])
		p.text = p.text[:len(p.text)+n]
	}
}

// end returns the end of the last whole line or record, 0 if there is none. A line end after an odd number of quotes is
// within quotes.
func (c *cutter) end(p *Part) int {
	end := bytes.LastIndexByte(p.text, '\n') + 1
	if !c.quotes {
		return end
	}
	count := bytes.Count(p.text, quote)
	p.quotes = count > 0
	count -= bytes.Count(p.text[end:], quote)
	for end > 0 && count%2 > 0 {
		before := bytes.LastIndexByte(p.text[:end-1], '\n') + 1
		count -= bytes.Count(p.text[before:end], quote)
		end = before
	}
	return end
}

// textLines reads the lines of a text.
type textLines struct {
	*cutter        // nil for those of one part
	part    Part   // the one cut off last
	rest    []byte // of a part
	quoted  bool   // the part may have quotes
	line    int    // number of the line read last, or of that which cannot be read
}

// partSize is how many bytes of a text are read at a time by one goroutine.
const partSize = 64 << 10

// set makes it read a part.
func (l *textLines) set(p *Part) { l.rest, l.line, l.quoted = p.text, p.before, p.quotes }

// next reads a line with its end, which only the last one may lack. It is valid until the next call.
func (l *textLines) next() ([]byte, error) {
	if len(l.rest) == 0 {
		if l.cutter == nil {
			return nil, io.EOF
		}
		if err := l.cut(&l.part, partSize); err != nil {
			return nil, err
		}
		l.set(&l.part)
	}
	l.line++
	end := bytes.IndexByte(l.rest, '\n') + 1
	if end == 0 {
		end = len(l.rest)
	}
	line := l.rest[:end:end]
	l.rest = l.rest[end:]
	return line, nil
}

// cut cuts the next part off what has not been read.
func (l *textLines) cut(p *Part, size int) error {
	if len(l.rest) == 0 {
		err := l.cutter.cut(p, size)
		if err != nil {
			l.line = l.cutter.lines + 1
		}
		return err
	}
	p.text, p.before, p.quotes = append(p.text[:0], l.rest...), l.line, l.quoted
	l.rest = nil
	return nil
}

var quote, comma, lineEnd = []byte{'"'}, []byte{','}, []byte{'\n'}
