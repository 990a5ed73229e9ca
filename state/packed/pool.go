package packed

import "github.com/weir-stream/weir/state"

// pool reuses states that are no longer needed, which saves allocations. It is not safe for concurrent use. Its zero
// value is empty.
type pool struct {
	secret state.Secret // values are hashed with it
	spares map[*state.Series]*spare
}

// spare is the unused state of one series.
type spare struct{ free State } // nil for none

// emptied is a state that can be reused, because its answers do not alias it.
type emptied interface{ empty() }

// emptyState empties a state for reuse, and reports whether it could; otherwise the state cannot be reused.
func emptyState(used State) bool {
	e, ok := used.(emptied)
	if ok {
		e.empty()
	}
	return ok
}

// keyed empties the pool if its states hash values with another secret.
func (s *pool) keyed(secret state.Secret) {
	if s.secret != secret {
		*s = pool{secret: secret}
	}
}

// take returns an empty state of a series.
func (s *pool) take(series *state.Series) State {
	if p := s.spares[series]; p != nil && p.free != nil {
		free := p.free
		p.free = nil
		return free
	}
	return NewKeyed(series, s.secret)
}

// put returns a state of a series to the pool. It must not be used any more.
func (s *pool) put(series *state.Series, used State) {
	if !emptyState(used) {
		return
	}
	p := s.spares[series]
	if p == nil {
		if s.spares == nil {
			s.spares = map[*state.Series]*spare{}
		}
		p = &spare{}
		s.spares[series] = p
	}
	p.free = used
}
