package packed

import (
	"cmp"
	"slices"
)

// byTile is content of some type by rising tile.
type byTile[T any] struct{ cells []cell[T] }

type cell[T any] struct {
	tile    int64
	content T
}

func (b *byTile[T]) find(tile int64) (int, bool) {
	return slices.BinarySearchFunc(b.cells, tile, func(c cell[T], tile int64) int { return cmp.Compare(c.tile, tile) })
}

// at is the content of a tile, and whether it has been there.
func (b *byTile[T]) at(tile int64) (content *T, held bool) {
	i, held := b.find(tile)
	if !held {
		b.cells = slices.Insert(b.cells, i, cell[T]{tile: tile})
	}
	return &b.cells[i].content, held
}

// within are the cells from one tile to another, both included.
func (b *byTile[T]) within(first, last int64) []cell[T] {
	from, _ := b.find(first)
	to, ok := b.find(last)
	if ok {
		to++
	}
	return b.cells[from:max(from, to)]
}

func (b *byTile[T]) Prune(first int64) (empty bool) {
	i, _ := b.find(first)
	b.cells = b.cells[i:]
	return len(b.cells) == 0
}

func (b *byTile[T]) held() []int64 {
	tiles := make([]int64, len(b.cells))
	for i, c := range b.cells {
		tiles[i] = c.tile
	}
	return tiles
}

func (b *byTile[T]) drop(tile int64) {
	if i, ok := b.find(tile); ok {
		b.cells = slices.Delete(b.cells, i, i+1)
	}
}
