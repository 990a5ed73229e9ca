package query

// Status states how far a value can be relied on.
type Status string

// The statuses of an answer.
const (
	Present   Status = "PRESENT"    // computed from events in the window
	NullValue Status = "NULL_VALUE" // events in the window, but no value; or a cap has left none of them
	NotFound  Status = "NOT_FOUND"  // no event in the window: the neutral value
	// Incomplete means that the state lacks events of the window, for example because the feature is younger than the
	// window. The value counts the events that the state holds. It replaces the three above; see Answer.CompleteSince.
	Incomplete Status = "INCOMPLETE"
	// LaterEvents means that the moment lies in the past and the value may count events after it: the state keeps no
	// finer time than that of a tile, or of a lifetime. It replaces Present, NullValue and NotFound; see
	// Answer.LaterEvents.
	LaterEvents Status = "LATER_EVENTS"
	// NoEvent means that the feature reads the event being scored, and there is none: there is no value.
	NoEvent Status = "NO_EVENT"
	// OutsideMaxAge means that the moment lies further back than state is kept, or that an enriched event was that
	// late: there is no value.
	OutsideMaxAge Status = "OUTSIDE_MAX_AGE"
	// Damaged means that the state of the entity, or of another that the feature depends on, cannot be read because its
	// key is damaged: there is no value.
	Damaged Status = "DAMAGED"
	// Unavailable means that the part of the store with the entity, or with another that the feature depends on, cannot
	// be reached now, or that a table cannot answer: there is no value.
	Unavailable Status = "UNAVAILABLE"
)

// Unread reports whether state could not be read; Answer.Err says why.
func (s Status) Unread() bool { return s == Damaged || s == Unavailable }

// Statuses are all statuses of an answer. serve/openapi.yaml, the client and Feast's format of
// answers know each of them.
var Statuses = []Status{Present, NullValue, NotFound, Incomplete, LaterEvents, NoEvent, OutsideMaxAge, Damaged, Unavailable}
