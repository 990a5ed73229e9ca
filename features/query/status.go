package query

// Status says what a value is based on.
type Status string

// The statuses of an answer.
const (
	Present   Status = "PRESENT"    // computed from events in the window
	NullValue Status = "NULL_VALUE" // events in the window, but no value
	NotFound  Status = "NOT_FOUND"  // no event in the window: the neutral value
	// Incomplete says that the state does not hold all events of the window yet, because the
	// feature is younger than that: the value is that of the events it holds. It replaces the three
	// above; see Answer.CompleteSince.
	Incomplete Status = "INCOMPLETE"
	// OutsideMaxAge says that the moment lies further back than what is kept, or that an enriched
	// event was later than that: there is no value.
	OutsideMaxAge Status = "OUTSIDE_MAX_AGE"
	// Damaged says that the store holds something of the entity, or of another that the feature
	// depends on, that is not a state: there is no value.
	Damaged Status = "DAMAGED"
	// Unavailable says that the part of the store with the entity, or with another that the feature
	// depends on, cannot be reached now: there is no value.
	Unavailable Status = "UNAVAILABLE"
)

// Unread says whether state could not be read; Answer.Err says why.
func (s Status) Unread() bool { return s == Damaged || s == Unavailable }

// Statuses are all statuses of an answer. serve/openapi.yaml, the client and Feast's format of
// answers know each of them.
var Statuses = []Status{Present, NullValue, NotFound, Incomplete, OutsideMaxAge, Damaged, Unavailable}
