package packed

import (
	"cmp"
	"slices"
)

// byTile is content by ascending tile.
type byTile[T any] struct{ buckets []bucket[T] }

type bucket[T any] struct {
	tile    int64
	content T
}

func (b *byTile[T]) find(tile int64) (int, bool) {
	return slices.BinarySearchFunc(b.buckets, tile, func(c bucket[T], tile int64) int { return cmp.Compare(c.tile, tile) })
}

// at returns the content of a tile, and whether the tile existed before.
func (b *byTile[T]) at(tile int64) (content *T, held bool) {
	i, held := b.find(tile)
	if !held {
		b.buckets = slices.Insert(b.buckets, i, bucket[T]{tile: tile})
	}
	return &b.buckets[i].content, held
}

// within returns the buckets from one tile to another, inclusive.
func (b *byTile[T]) within(first, last int64) []bucket[T] {
	from, _ := b.find(first)
	to, ok := b.find(last)
	if ok {
		to++
	}
	return b.buckets[from:max(from, to)]
}

func (b *byTile[T]) Prune(first int64) (empty bool) {
	i, _ := b.find(first)
	b.buckets = b.buckets[i:]
	return len(b.buckets) == 0
}

func (b *byTile[T]) held() []int64 {
	tiles := make([]int64, len(b.buckets))
	for i, c := range b.buckets {
		tiles[i] = c.tile
	}
	return tiles
}

func (b *byTile[T]) drop(tile int64) {
	if i, ok := b.find(tile); ok {
		b.buckets = slices.Delete(b.buckets, i, i+1)
	}
}
