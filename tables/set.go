package tables

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state"
)

// Set holds the tables of the definitions in use. It is a query.Tables, safe for concurrent use. Its zero value has none.
type Set struct {
	mu     sync.RWMutex
	tables map[*features.Table]*Held
	named  []*Held // those of the definitions in use
}

// Held is a table of a Set.
type Held struct {
	Table *features.Table

	mu       sync.RWMutex
	contents *Contents // nil until they are whole
	why      error     // why there are none, or not newer ones
	readAt   time.Time // when all rows were known that existed then; zero for never
}

// Fixed makes a set of contents that are whole and do not change.
func Fixed(all ...*Contents) *Set {
	s := &Set{tables: map[*features.Table]*Held{}}
	for _, c := range all {
		h := &Held{Table: c.table, contents: c, readAt: time.Now()}
		s.tables[c.table], s.named = h, append(s.named, h)
	}
	return s
}

// Take replaces the tables by others, such as those of changed definitions, and keeps what is known of those that are
// the same. Those of the definitions before stay for questions that are being answered. It returns the tables to be
// read from now on.
func (s *Set) Take(all []*features.Table) []*Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := map[string]*Held{}
	next := map[*features.Table]*Held{}
	for _, h := range s.named {
		before[h.Table.Identity()] = h
	}
	for t, h := range s.tables {
		if slices.Contains(s.named, h) {
			next[t] = h
		}
	}
	s.named = nil
	for _, t := range all {
		h := before[t.Identity()]
		if h == nil {
			h = &Held{Table: t, why: errors.New("it is not read yet")}
		}
		next[t], s.named = h, append(s.named, h)
	}
	s.tables = next
	return slices.Clone(s.named)
}

// For returns the contents, as they become, for other definitions' tables. Those that differ from all that the
// definitions in use have cannot answer, because of why.
func (s *Set) For(others []*features.Table, why error) *Set {
	held := s.All()
	of := &Set{tables: map[*features.Table]*Held{}}
	for _, t := range others {
		same := slices.IndexFunc(held, func(h *Held) bool { return h.Table.Identity() == t.Identity() })
		if of.tables[t] = (&Held{Table: t, why: why}); same >= 0 {
			of.tables[t] = held[same]
		}
		of.named = append(of.named, of.tables[t])
	}
	return of
}

// All returns the tables of the definitions in use, by name.
func (s *Set) All() []*Held {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.named)
}

// held returns what is held of a table; nil if it is not one of the definitions in use. These may have been loaded again, with the
// same meaning: then it is the same as one that was taken.
func (s *Set) held(t *features.Table) *Held {
	s.mu.RLock()
	h := s.tables[t]
	s.mu.RUnlock()
	if h != nil {
		return h
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	same := slices.IndexFunc(s.named, func(h *Held) bool { return h.Table.Identity() == t.Identity() })
	if same < 0 {
		return nil
	}
	s.tables[t] = s.named[same]
	return s.named[same]
}

// Find returns the row of a key, see Contents.Find. It fails, with an error that wraps state.ErrUnavailable, while not all
// rows of the table are known, and if it is too large.
func (s *Set) Find(t *features.Table, key string, at int64) (*features.Row, error) {
	c, err := s.Contents(t)
	if err != nil {
		return nil, err
	}
	return c.Find(key, at), nil
}

// Contents returns what the table has now. It fails like Find.
func (s *Set) Contents(t *features.Table) (*Contents, error) {
	h := s.held(t)
	if h == nil {
		return nil, unavailable(t, errors.New("it is not read here"))
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.contents == nil {
		return nil, unavailable(t, h.why)
	}
	return h.contents, nil
}

// unavailableError is the error of a table that cannot answer now.
type unavailableError struct {
	message string
	why     error
}

func (e *unavailableError) Error() string      { return e.message }
func (e *unavailableError) Unwrap() error      { return e.why }
func (*unavailableError) Is(target error) bool { return target == state.ErrUnavailable }

func unavailable(t *features.Table, why error) error {
	return &unavailableError{"table " + t.Name + " cannot answer: " + why.Error(), why}
}

// Awaited returns an error that names those of the tables that are not whole yet, with the reason; nil if there are none. A
// table that is too large is not awaited: it is known to have no answers.
func (s *Set) Awaited(of []*features.Table) error {
	why := map[string]string{}
	for _, t := range of {
		h := s.held(t)
		if h == nil {
			continue
		}
		h.mu.RLock()
		if h.contents == nil && !errors.Is(h.why, ErrTooLarge) {
			why[t.Name] = h.why.Error()
		}
		h.mu.RUnlock()
	}
	if len(why) == 0 {
		return nil
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(why)) {
		list = append(list, fmt.Sprintf("table %s: %s", name, why[name]))
	}
	return &unavailableError{message: "waiting for " + strings.Join(list, "; ")}
}

// Age returns how long ago all rows of a table were known that existed then; negative if they never were.
func (s *Set) Age(t *features.Table, now time.Time) time.Duration {
	h := s.held(t)
	if h == nil {
		return -1
	}
	return h.age(now)
}

func (h *Held) age(now time.Time) time.Duration {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.readAt.IsZero() {
		return -1
	}
	return max(0, now.Sub(h.readAt))
}

// State returns the rows that the table has, about how many bytes they take, how old they are, negative if they were never
// whole, and what keeps them from being whole or up to date; nil for nothing.
func (h *Held) State(now time.Time) (rows int, bytes int64, age time.Duration, why error) {
	age = h.age(now)
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.contents != nil {
		rows, bytes = h.contents.Rows()
	}
	return rows, bytes, age, h.why
}

// Whole says that the contents have all rows that existed at a time. They may get more rows later.
func (h *Held) Whole(c *Contents, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.contents, h.readAt, h.why = c, at, nil
}

// Fail says why the table cannot be read now. What it had stays, and gets older, unless it is too large.
func (h *Held) Fail(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.why = why; errors.Is(why, ErrTooLarge) {
		h.contents, h.readAt = nil, time.Time{}
	}
}
