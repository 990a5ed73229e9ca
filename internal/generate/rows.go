package generate

import (
	"strconv"
	"time"
)

// The topics of the shipped tables.
const (
	Merchants = "merchants"
	Lists     = "weir.lists"
)

// numMerchants is how many merchants the events name, those of stories included.
const numMerchants = 530

// Rows returns the rows of the shipped tables as of a moment: the merchants, and the card of a story, which is blocked.
func Rows(at time.Time) []Event {
	const blocked = "c900002"
	rows := []Event{{Topic: Lists, Key: []byte("blocked_cards/" + blocked), Timestamp: at.UnixMilli(), Value: object{
		{"list", `"blocked_cards"`}, {"value", quoted([]byte(blocked))}, {"who", `"generate"`}, {"why", `"tried at 30 merchants"`},
	}.json()}}
	for n := 1; n <= numMerchants; n++ {
		risk, limit := "low", 1500
		switch n % 7 {
		case 2:
			risk, limit = "high", 250
		case 5:
			risk, limit = "medium", 750
		}
		id := numbered('m', 5, n)
		rows = append(rows, Event{Topic: Merchants, Key: id, Timestamp: at.UnixMilli(), Value: object{
			{"merchant_id", quoted(id)}, {"risk", quoted([]byte(risk))}, {"limit", strconv.Itoa(limit)},
		}.json()})
	}
	return rows
}
