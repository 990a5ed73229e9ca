package extsort

import (
	"encoding/binary"
	"io"
	"slices"
)

// appendHead appends what comes before an item's data, in memory and on disk: its key, and the length of the data.
func appendHead(dst []byte, key Key, size int) []byte {
	dst = append(binary.AppendVarint(dst, key.Time), key.Order)
	return binary.AppendUvarint(dst, uint64(size))
}

// cutItem cuts the first item off a block.
func cutItem(block []byte) (key Key, data, rest []byte) {
	var n int
	key.Time, n = binary.Varint(block)
	key.Order, block = block[n], block[n+1:]
	size, n := binary.Uvarint(block)
	end := n + int(size)
	return key, block[n:end:end], block[end:]
}

// inMemory reads the items held in memory in order. Items that came in order are read as they are, and the memory of
// a block is let go once it is read.
func (s *Sorter) inMemory() func(*head) error {
	blocks := slices.Clone(s.blocks)
	if s.unordered {
		return sorted(blocks, s.items)
	}
	return func(h *head) error {
		for len(blocks) > 0 && len(blocks[0]) == 0 {
			blocks[0] = nil
			blocks = blocks[1:]
		}
		if len(blocks) == 0 {
			return io.EOF
		}
		h.key, h.data, blocks[0] = cutItem(blocks[0])
		return nil
	}
}

// item is where the data of a key are in the blocks. It has no pointer, so the garbage collector does
// not look at the items, since there may be millions.
type item struct {
	Key
	block, from, size uint32
}

// sorted reads the n items of blocks in the order of their keys.
func sorted(blocks [][]byte, n int) func(*head) error {
	items := make([]item, 0, n)
	for i, block := range blocks {
		for rest := block; len(rest) > 0; {
			var key Key
			var data []byte
			key, data, rest = cutItem(rest)
			items = append(items, item{key, uint32(i), uint32(len(block) - len(rest) - len(data)), uint32(len(data))})
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.Compare(b.Key) })
	return func(h *head) error {
		if len(items) == 0 {
			return io.EOF
		}
		i := &items[0]
		items = items[1:]
		h.key, h.data = i.Key, blocks[i.block][i.from:i.from+i.size:i.from+i.size]
		return nil
	}
}
