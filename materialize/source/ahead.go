package source

import (
	"io"
	"sync"
)

const (
	aheadBlocks = 3
	aheadBlock  = 128 << 10 // bytes
)

// ahead reads ahead in its own goroutine, so that a file is decompressed while its events are decoded.
type ahead struct {
	from        io.Reader
	full, empty chan []byte // together they have room for all blocks
	block, rest []byte      // the block being read, and the rest of it
	err         error       // after the last block
	stop        chan struct{}
	ended       sync.WaitGroup
}

func newAhead(from io.Reader) *ahead {
	a := &ahead{from: from, full: make(chan []byte, aheadBlocks), empty: make(chan []byte, aheadBlocks), stop: make(chan struct{})}
	for range aheadBlocks {
		a.empty <- make([]byte, aheadBlock)
	}
	a.ended.Go(func() {
		a.err = a.run()
		close(a.full)
	})
	return a
}

// run fills blocks until an error, which may be io.EOF.
func (a *ahead) run() error {
	for {
		var block []byte
		select {
		case block = <-a.empty:
		case <-a.stop:
			return io.ErrClosedPipe
		}
		var n int
		var err error
		for n < aheadBlock && err == nil {
			var more int
			more, err = a.from.Read(block[n:aheadBlock])
			n += more
		}
		a.full <- block[:n]
		if err != nil {
			return err
		}
	}
}

func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.block != nil {
			a.empty <- a.block
		}
		var more bool
		if a.block, more = <-a.full; !more {
			return 0, a.err
		}
		a.rest = a.block
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// close ends the goroutine. Nothing may be read afterwards.
func (a *ahead) close() {
	close(a.stop)
	a.ended.Wait()
}
