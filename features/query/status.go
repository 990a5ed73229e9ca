package query

// Status says what a value rests on.
type Status string

// The statuses of an answer.
const (
	Present   Status = "PRESENT"    // computed from events in the window
	NullValue Status = "NULL_VALUE" // events in the window, but no value
	NotFound  Status = "NOT_FOUND"  // no event in the window: the neutral value
	// Incomplete says that the state does not hold all events of the window yet,
	// because the feature is younger than that: the value is of those it holds. It
	// stands in the place of the three above; see Answer.CompleteSince.
	Incomplete Status = "INCOMPLETE"
	// OutsideMaxAge says that the moment lies further back than what is kept, or
	// that an enriched event came later than that: there is no value.
	OutsideMaxAge Status = "OUTSIDE_MAX_AGE"
	// Damaged says that the store holds something of the entity that is no state,
	// or of one that the feature rests on: there is no value.
	Damaged Status = "DAMAGED"
	// Unavailable says that the part of the store that holds the entity, or one that
	// the feature rests on, cannot be reached now: there is no value.
	Unavailable Status = "UNAVAILABLE"
)

// Unread says whether the status is that state could not be read: Answer.Err is why.
func (s Status) Unread() bool { return s == Damaged || s == Unavailable }

// Statuses are all that an answer may have. serve/openapi.yaml, the client and
// Feast's form of an answer know each of them.
var Statuses = []Status{Present, NullValue, NotFound, Incomplete, OutsideMaxAge, Damaged, Unavailable}
