package packed

import "github.com/weir-stream/weir/state"

// Pool gives out empty states, and takes back those that are no longer used, so
// that not each is made anew. It serves one goroutine. Its zero value is empty.
type Pool struct{ places map[*state.Series]*place }

// place is that of one series.
type place struct{ free State } // nil for none

// emptied are states that can be used once more: what they have answered does
// not hang on them.
type emptied interface{ empty() }

// Emptied empties a state for another use, and says whether it could: a state that cannot
// be emptied is of no further use.
func Emptied(used State) bool {
	e, ok := used.(emptied)
	if ok {
		e.empty()
	}
	return ok
}

// Take is an empty state of a series, with a secret. Those that hash with it are not
// used once more, so what lies in the pool has none.
func (s *Pool) Take(series *state.Series, secret Secret) State {
	if p := s.places[series]; p != nil && p.free != nil {
		free := p.free
		p.free = nil
		return free
	}
	return NewKeyed(series, secret)
}

// Put takes back a state of a series. It must not be used any more.
func (s *Pool) Put(series *state.Series, used State) {
	if !Emptied(used) {
		return
	}
	p := s.places[series]
	if p == nil {
		if s.places == nil {
			s.places = map[*state.Series]*place{}
		}
		p = &place{}
		s.places[series] = p
	}
	p.free = used
}
