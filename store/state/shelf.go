package state

import "github.com/weir-stream/weir/features/kinds"

// Shelf gives out empty states, and takes back those that are no longer used, so
// that not each is made anew. It serves one goroutine. Its zero value is empty.
type Shelf struct{ free map[*kinds.Series]State }

// emptied are states that can be used once more: what they have answered does
// not hang on them.
type emptied interface{ empty() }

// Take is an empty state of a series.
func (s *Shelf) Take(series *kinds.Series) State {
	if free := s.free[series]; free != nil {
		s.free[series] = nil
		return free
	}
	return New(series)
}

// Put takes back a state of a series. It must not be used any more.
func (s *Shelf) Put(series *kinds.Series, used State) {
	e, ok := used.(emptied)
	if !ok {
		return
	}
	e.empty()
	if s.free == nil {
		s.free = make(map[*kinds.Series]State)
	}
	s.free[series] = used
}
