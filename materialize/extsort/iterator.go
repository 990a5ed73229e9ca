package extsort

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// Iterator returns items in order.
type Iterator struct {
	// heads are a heap ordered by the keys of their items, then by their runs.
	heads   []head
	started bool
}

// head is the next item of a run.
type head struct {
	key  Key
	data []byte
	run  int // of the run among the others
	next func(*head) error
}

func (h *head) before(o *head) bool {
	c := h.key.Compare(o.key)
	return c < 0 || c == 0 && h.run < o.run
}

// merge merges runs.
func (s *Sorter) merge(runs []run) (*Iterator, error) {
	it := &Iterator{}
	for i, r := range runs {
		in := bufio.NewReaderSize(io.NewSectionReader(s.file, r.from, r.to-r.from), mergeBuffer)
		it.heads = append(it.heads, head{run: i, next: func(h *head) error { return h.read(in) }})
	}
	return it, nil
}

// read reads the next item; io.EOF comes after the last.
func (h *head) read(in *bufio.Reader) (err error) {
	if h.key.Time, err = binary.ReadVarint(in); err != nil {
		if err == io.EOF {
			return err
		}
		return fmt.Errorf("sort on disk: %w", err)
	}
	h.key.Order, err = in.ReadByte()
	var size uint64
	if err == nil {
		size, err = binary.ReadUvarint(in)
	}
	if err == nil {
		if uint64(cap(h.data)) < size {
			h.data = make([]byte, size)
		}
		h.data = h.data[:size]
		_, err = io.ReadFull(in, h.data)
	}
	if err != nil {
		return fmt.Errorf("sort on disk: %w", err)
	}
	return nil
}

// Next returns the next item, whose data is valid until the next call; io.EOF comes after the last.
func (it *Iterator) Next() (Key, []byte, error) {
	if !it.started {
		it.started = true
		for i := len(it.heads) - 1; i >= 0; i-- {
			if err := it.advance(i); err != nil {
				return Key{}, nil, err
			}
		}
	} else if len(it.heads) > 0 {
		if err := it.advance(0); err != nil {
			return Key{}, nil, err
		}
	}
	if len(it.heads) == 0 {
		return Key{}, nil, io.EOF
	}
	return it.heads[0].key, it.heads[0].data, nil
}

// advance moves the run at an index of the heap to its next item, and restores the heap order. All
// later indexes must be in heap order.
func (it *Iterator) advance(i int) error {
	err := it.heads[i].next(&it.heads[i])
	if err != nil && err != io.EOF {
		return err
	}
	if err == io.EOF {
		last := len(it.heads) - 1
		it.heads[i] = it.heads[last]
		it.heads = it.heads[:last]
	}
	for n := len(it.heads); ; {
		least, left := i, 2*i+1
		for child := left; child <= left+1 && child < n; child++ {
			if it.heads[child].before(&it.heads[least]) {
				least = child
			}
		}
		if least == i {
			return nil
		}
		it.heads[i], it.heads[least] = it.heads[least], it.heads[i]
		i = least
	}
}
