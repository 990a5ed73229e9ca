package source

import (
	"bufio"
	"io"
	"sync"
)

// aheadBlock is how many bytes are decompressed while as many are decoded.
const aheadBlock = 128 << 10

// ahead reads ahead in its own goroutine, so that a file is decompressed while its events are decoded.
type ahead struct {
	io.Reader
	pipe  *io.PipeReader
	ended sync.WaitGroup
}

func newAhead(from io.Reader) *ahead {
	pipe, in := io.Pipe()
	a := &ahead{Reader: bufio.NewReaderSize(pipe, aheadBlock), pipe: pipe}
	a.ended.Go(func() {
		out := bufio.NewWriterSize(in, aheadBlock)
		_, err := out.ReadFrom(from)
		_ = out.Flush() // it fails only if nothing is read any more
		_ = in.CloseWithError(err)
	})
	return a
}

// close ends the goroutine. Nothing may be read afterwards.
func (a *ahead) close() {
	_ = a.pipe.Close()
	a.ended.Wait()
}
