package materialize

import (
	"io"
	"slices"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/materialize/extsort"
	"github.com/weir-stream/weir/value"
)

// block is a part of the timeline that is replayed together: the state of an entity is then loaded into the CPU's
// caches once for all its events, and entities are spread over the cores.
type block struct {
	keys []extsort.Key
	text []byte // of all moments
	ends []int  // in text

	rows  []int32     // the moments that are rows, in order
	types []cellType  // of the cells of a row
	cells []cell      // of the rows, one row after another
	long  []longCells // by worker
}

// blocksAhead is how many blocks there are: one is made while another is written.
const blocksAhead = 2

func (t *timeline) newBlocks() (blocks []*block) {
	for range blocksAhead {
		blocks = append(blocks, &block{types: t.workers[0].answers.types, long: make([]longCells, len(t.workers))})
	}
	return blocks
}

// The bounds of rows and events of a block.
const (
	// minBlock is the number of moments of a block while there are few entities.
	minBlock = 1 << 15
	// maxBlock and blockCells bound a block because of the memory for its changes and its answers.
	maxBlock   = 1 << 19
	blockCells = 1 << 23
	// longBlock is the greatest number of moments of a block whose answers may be long, such as texts and lists.
	longBlock = 1 << 9
	// leastText is how many bytes the events and rows of a block may take, however little memory there is.
	leastText = 1 << 20
)

// maxMoments returns how many moments a block may have.
func maxMoments(columns []Column) int {
	for i := range columns {
		c := &columns[i]
		if typ, _, shape := c.typed(); c.of == answered && (shape != aggregate.Scalar || typ == value.String) {
			return longBlock
		}
	}
	return min(maxBlock, max(longBlock, blockCells/max(1, len(columns))))
}

// moments returns how many moments the next block has: twice as many as there are entities, within bounds, so that most
// entities have several events in it, and its memory is bounded by their number.
func (r *Replay) moments() int {
	entities := 0
	for _, part := range r.parts {
		entities += part.Len()
	}
	return min(max(minBlock, 2*entities), maxMoments(r.Columns))
}

// textBytes returns how many bytes the moments of a block may take: those of all blocks as many as are held while they
// are sorted, which they are no longer.
func (r *Replay) textBytes() int { return int(max(leastText, r.memory()/blocksAhead)) }

// read reads the next moments, of some bytes on average, and of so many that only the last one is beyond a limit; io.EOF if there are
// none left.
func (b *block) read(sorted *extsort.Iterator, most, average, limit int) error {
	b.keys, b.ends = slices.Grow(b.keys[:0], most), slices.Grow(b.ends[:0], most)
	b.text = slices.Grow(b.text[:0], min(most*average, limit))
	for i := range b.long {
		clear(b.long[i])
		b.long[i] = b.long[i][:0]
	}
	for len(b.keys) < most && len(b.text) < limit {
		key, item, err := sorted.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		b.keys, b.text = append(b.keys, key), append(b.text, item...)
		b.ends = append(b.ends, len(b.text))
	}
	if len(b.keys) == 0 {
		return io.EOF
	}
	return nil
}

// moment reads a moment.
func (b *block) moment(r *reader, n int) (moment, error) {
	from := 0
	if n > 0 {
		from = b.ends[n-1]
	}
	return r.read(b.keys[n], b.text[from:b.ends[n]])
}

// row returns the cells of a row.
func (b *block) row(n int32) []cell { return b.cells[int(n)*len(b.types) : int(n+1)*len(b.types)] }
