// Package extsort sorts more items than fit into memory: it writes sorted runs to temporary
// files, and merges them. Items that come in order make one run.
package extsort

import (
	"bufio"
	"cmp"
	"encoding/binary"
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

	items  []item
	blocks [][]byte // memory of their data
	block  int      // that which is filled
	held   int64    // bytes of data
	total  int

	file    *os.File
	written int64
	runs    []run
	last    Key // of the last run
}

// item is where the data of a key are in the blocks. It has no pointer, so the garbage collector does
// not look at the items, since there may be millions.
type item struct {
	Key
	block, from, size uint32
}

func (s *Sorter) data(i *item) []byte {
	return s.blocks[i.block][i.from : i.from+i.size : i.from+i.size]
}

const (
	// itemSize is about how many bytes of memory an item takes in addition to its data.
	itemSize = 32
	// blockSize is how many bytes are allocated at once, unless an item needs more: a growing slice
	// would be copied repeatedly.
	blockSize = 1 << 20
)

// run is a part of the file in which items are sorted.
type run struct{ from, to int64 }

// New makes a sorter that holds about that many bytes of items in memory.
func New(memory int64) *Sorter { return &Sorter{memory: memory, fanIn: fanIn} }

// Add adds an item; its data is copied. It fails if the temporary file cannot be written.
func (s *Sorter) Add(key Key, data []byte) error {
	s.items = append(s.items, s.hold(key, data))
	s.held += int64(len(data))
	s.total++
	if s.held+int64(itemSize*len(s.items)) < s.memory {
		return nil
	}
	return s.spill()
}

// hold copies the data of an item into the blocks.
func (s *Sorter) hold(key Key, data []byte) item {
	for s.block < len(s.blocks) && cap(s.blocks[s.block])-len(s.blocks[s.block]) < len(data) {
		s.block++
	}
	if s.block == len(s.blocks) {
		s.blocks = append(s.blocks, make([]byte, 0, max(blockSize, len(data))))
	}
	b := &s.blocks[s.block]
	i := item{key, uint32(s.block), uint32(len(*b)), uint32(len(data))}
	*b = append(*b, data...)
	return i
}

// Len returns the number of items added.
func (s *Sorter) Len() int { return s.total }

// Spilled returns the number of bytes written to the temporary file.
func (s *Sorter) Spilled() int64 { return s.written }

// sort sorts the items in memory.
func (s *Sorter) sort() {
	byKey := func(a, b item) int { return a.Compare(b.Key) }
	if !slices.IsSortedFunc(s.items, byKey) {
		slices.SortStableFunc(s.items, byKey)
	}
}

// spill writes the items in memory as a run, or appends them to the last run if they continue it.
func (s *Sorter) spill() error {
	s.sort()
	next := func() (Key, []byte, error) {
		if len(s.items) == 0 {
			return Key{}, nil, io.EOF
		}
		i := &s.items[0]
		s.items = s.items[1:]
		return i.Key, s.data(i), nil
	}
	all, goesOn := s.items, len(s.runs) > 0 && s.items[0].Compare(s.last) >= 0
	s.last = s.items[len(s.items)-1].Key
	r, err := s.write(next)
	if err != nil {
		return err
	}
	if goesOn {
		s.runs[len(s.runs)-1].to = r.to
	} else {
		s.runs = append(s.runs, r)
	}
	s.items, s.held, s.block = all[:0], 0, 0
	for i := range s.blocks {
		s.blocks[i] = s.blocks[i][:0]
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
		head = append(binary.AppendVarint(head[:0], key.Time), key.Order)
		head = binary.AppendUvarint(head, uint64(len(data)))
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
	s.sort()
	if s.file == nil {
		return &Iterator{heads: []head{s.inMemory()}}, nil
	}
	if len(s.items) > 0 {
		if err := s.spill(); err != nil {
			return nil, err
		}
	}
	s.items, s.blocks = nil, nil
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
