// Package extsort sorts more items than fit into memory: it writes sorted runs to temporary
// files, and merges them. Items that come in order make one run.
package extsort

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Key orders items: by time, then by order. Items with equal keys keep the order in which they were
// added.
type Key struct {
	Time  int64
	Order uint8
}

// Compare orders keys.
func (k Key) Compare(l Key) int {
	return cmp.Or(cmp.Compare(k.Time, l.Time), cmp.Compare(k.Order, l.Order))
}

const (
	// mergeBuffer is how many bytes of a run are read at a time.
	mergeBuffer = 256 << 10
	// fanIn is how many runs are merged at once.
	fanIn = 128
)

// Sorter sorts items. It serves one goroutine.
type Sorter struct {
	memory int64
	fanIn  int

	blocks    [][]byte // the items held in memory, each after its head
	block     int      // that which is filled
	items     int      // held
	held      int64    // their bytes
	latest    Key      // of the item added last
	unordered bool     // some item held comes before one added earlier
	total     int
	bytes     int64 // of all items

	file    *os.File
	written int64
	runs    []run
}

const (
	// itemSize is about how many bytes of memory an item takes in addition to its data, while it is sorted.
	itemSize = 32
	// blockSize is how many bytes are allocated at once, unless a batch needs more: a growing slice
	// would be copied repeatedly.
	blockSize = 1 << 20
)

// run is a part of the file in which items are sorted.
type run struct {
	from, to    int64
	first, last Key
}

// New makes a sorter that holds about that many bytes of items in memory.
func New(memory int64) *Sorter { return &Sorter{memory: memory, fanIn: fanIn} }

// Add adds the items of a batch, which are copied. It fails if the temporary file cannot be written.
func (s *Sorter) Add(b *Batch) error {
	if b.items == 0 {
		return nil
	}
	s.hold(b.data)
	s.unordered = s.unordered || b.unordered || s.items > 0 && b.first.Compare(s.latest) < 0
	s.latest = b.latest
	s.items += b.items
	s.total += b.items
	s.bytes += int64(len(b.data))
	if s.held+int64(itemSize*s.items) < s.memory {
		return nil
	}
	return s.spill()
}

// hold copies items into the blocks.
func (s *Sorter) hold(items []byte) {
	for s.block < len(s.blocks) && cap(s.blocks[s.block])-len(s.blocks[s.block]) < len(items) {
		s.block++
	}
	if s.block == len(s.blocks) {
		s.blocks = append(s.blocks, make([]byte, 0, max(blockSize, len(items))))
	}
	s.blocks[s.block] = append(s.blocks[s.block], items...)
	s.held += int64(len(items))
}

// Len returns the number of items added.
func (s *Sorter) Len() int { return s.total }

// Bytes returns the number of bytes of all items, with their keys.
func (s *Sorter) Bytes() int64 { return s.bytes }

// Spilled returns the number of bytes written to the temporary file.
func (s *Sorter) Spilled() int64 { return s.written }

// spill writes the items in memory as a run, or appends them to the last run if they continue it.
func (s *Sorter) spill() error {
	next := s.inMemory()
	for i := range s.blocks {
		s.blocks[i] = s.blocks[i][:0]
	}
	s.items, s.held, s.block, s.unordered = 0, 0, 0, false
	var h head
	r, err := s.write(func() (Key, []byte, error) {
		err := next(&h)
		return h.key, h.data, err
	})
	if err != nil {
		return err
	}
	if n := len(s.runs); n > 0 && r.first.Compare(s.runs[n-1].last) >= 0 {
		s.runs[n-1].to, s.runs[n-1].last = r.to, r.last
	} else {
		s.runs = append(s.runs, r)
	}
	return nil
}

// write appends sorted items to the file.
func (s *Sorter) write(next func() (Key, []byte, error)) (run, error) {
	if s.file == nil {
		file, err := os.CreateTemp("", "weir-sort-*")
		if err != nil {
			return run{}, fmt.Errorf("sort on disk (TMPDIR says where): %w", err)
		}
		s.file = file
	}
	out, r := bufio.NewWriterSize(io.NewOffsetWriter(s.file, s.written), mergeBuffer), run{from: s.written}
	var head []byte
	for {
		key, data, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return run{}, err
		}
		if r.from == s.written {
			r.first = key
		}
		r.last = key
		head = appendHead(head[:0], key, len(data))
		s.written += int64(len(head) + len(data))
		_, _ = out.Write(head)
		if _, err := out.Write(data); err != nil {
			return run{}, fmt.Errorf("sort on disk (TMPDIR says where): %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return run{}, fmt.Errorf("sort on disk (TMPDIR says where): %w", err)
	}
	r.to = s.written
	return r, nil
}

// Sorted returns the items in order. No more can be added. It fails if the temporary file cannot be
// written.
func (s *Sorter) Sorted() (*Iterator, error) {
	if s.file == nil {
		next := s.inMemory()
		s.blocks = nil
		return &Iterator{heads: []head{{next: next}}}, nil
	}
	if s.items > 0 {
		if err := s.spill(); err != nil {
			return nil, err
		}
	}
	s.blocks = nil
	for len(s.runs) > s.fanIn {
		if err := s.mergeRuns(); err != nil {
			return nil, err
		}
	}
	return s.merge(s.runs)
}

// mergeRuns merges each fanIn consecutive runs into one.
func (s *Sorter) mergeRuns() error {
	var merged []run
	for some := range slices.Chunk(s.runs, s.fanIn) {
		it, err := s.merge(some)
		if err != nil {
			return err
		}
		r, err := s.write(it.Next)
		if err != nil {
			return err
		}
		merged = append(merged, r)
	}
	s.runs = merged
	return nil
}

// Close removes the temporary file.
func (s *Sorter) Close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
