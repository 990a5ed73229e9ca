package generate

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// Story is a fraud among the events, and the features that reveal it.
type Story struct {
	Name    string
	Tells   string            // what happened, in a sentence
	Service string            // of the shipped definitions; its features reveal the fraud
	Entity  map[string]string // the entity to ask about
	Events  []Event
}

// Stories returns frauds that happened just before a moment. Their users, devices and cards occur
// nowhere else.
func Stories(now time.Time) []Story {
	return []Story{deviceFarm(now), cardTesting(now), impossibleJourney(now), accountTakeover(now), mule(now), bustOut(now)}
}

// tale builds the events of a story.
type tale struct {
	letter byte // prefix of its IDs
	events []Event
}

func (t *tale) add(topic string, at time.Time, user string, fields ...member) {
	kind := "transaction"
	if topic == Logins {
		kind = "login"
	}
	ms := at.UnixMilli()
	o := append(object{
		{"event_id", quoted(numbered(t.letter, 9, len(t.events)+1))}, {"timestamp", strconv.FormatInt(ms, 10)},
		{"type", quoted([]byte(kind))}, {"user_id", quoted([]byte(user))},
	}, fields...)
	t.events = append(t.events, Event{Topic: topic, Key: []byte(user), Value: o.json(), Timestamp: ms})
}

func (t *tale) login(at time.Time, user, device, place string, success bool) {
	t.add(Logins, at, user, member{"device_id", quoted([]byte(device))}, member{"ip", `"10.200.7.` + strconv.Itoa(1+len(t.events)%200) + `"`},
		member{"place", place}, member{"success", strconv.FormatBool(success)})
}

func (t *tale) payment(at time.Time, user, device, card, merchant, amount, status string) {
	t.pay(at, user, device, card, member{"merchant_id", quoted([]byte(merchant))}, amount, status)
}

func (t *tale) transfer(at time.Time, user, device, card, payee, amount string) {
	t.pay(at, user, device, card, member{"payee_id", quoted([]byte(payee))}, amount, "approved")
}

func (t *tale) pay(at time.Time, user, device, card string, to member, amount, status string) {
	t.add(Transactions, at, user, member{"device_id", quoted([]byte(device))}, member{"ip", `"10.200.7.9"`}, member{"card_id", quoted([]byte(card))},
		to, member{"amount", amount}, member{"status", quoted([]byte(status))})
}

// deviceFarm returns a device on which many accounts are kept active.
func deviceFarm(now time.Time) Story {
	const device, accounts, days = "d900001", 40, 20
	t := &tale{letter: 'f'}
	for day := days; day > 0; day-- {
		for account := range accounts {
			if (account+day)%4 == 0 {
				at := now.Add(-time.Duration(day)*24*time.Hour + time.Duration(account)*7*time.Minute)
				t.login(at, string(numbered('u', 6, 900101+account)), device, berlin, true)
			}
		}
	}
	return Story{
		Name: "device farm", Tells: "40 accounts log in on one device, each every few days",
		Service: "login_risk", Entity: map[string]string{"device_id": device, "user_id": "u900101", "ip_c": "10.200.7.0/24"}, Events: t.events,
	}
}

// cardTesting returns a stolen card that is tested with small amounts at one merchant after another.
func cardTesting(now time.Time) Story {
	const user, device, card, tries = "u900002", "d900002", "c900002", 30
	t := &tale{letter: 'k'}
	for i := range tries {
		status := "declined"
		if i%6 == 5 {
			status = "approved"
		}
		at := now.Add(-time.Duration(tries-i) * 20 * time.Second)
		t.payment(at, user, device, card, string(numbered('m', 5, 501+i)), "1."+string(numbered(0, 2, i)), status)
	}
	return Story{
		Name: "card testing", Tells: "a stolen card is tried at 30 merchants within 10 minutes, mostly declined",
		Service: "payment_risk", Entity: map[string]string{"user_id": user, "device_id": device, "card_id": card}, Events: t.events,
	}
}

// impossibleJourney returns a user who logs in at home, and soon after on another continent.
func impossibleJourney(now time.Time) Story {
	const user, own, thief = "u900006", "d900006", "d900007"
	t := &tale{letter: 'j'}
	for day := 14; day > 0; day -= 2 {
		t.login(now.Add(-time.Duration(day)*24*time.Hour), user, own, berlin, true)
	}
	t.login(now.Add(-70*time.Minute), user, own, berlin, true)
	t.login(now.Add(-10*time.Minute), user, thief, singapore, true)
	return Story{
		Name: "impossible journey", Tells: "a user logs in in Berlin, and an hour later in Singapore, 9900 km away",
		Service: "login_risk", Entity: map[string]string{"device_id": thief, "user_id": user, "ip_c": "10.200.7.0/24"}, Events: t.events,
	}
}

// mule returns an account that collects what was stolen from many others, and passes it on.
func mule(now time.Time) Story {
	const account, payers = "u900008", 25
	t := &tale{letter: 'm'}
	last := ""
	for i := range payers {
		last = string(numbered('u', 6, 900301+i))
		t.transfer(now.Add(-time.Duration(payers-i)*40*time.Minute), last, string(numbered('d', 6, 900301+i)), string(numbered('c', 6, 900301+i)), account, "400.00")
	}
	t.transfer(now.Add(-5*time.Minute), account, "d900008", "c900008", "u900009", "9500.00")
	return Story{
		Name: "mule", Tells: "25 users, none of whom paid before, send one account 400 each within a day, and it passes 9500 on",
		Service: "transfer_risk", Entity: map[string]string{"payee_id": account, "user_id": last}, Events: t.events,
	}
}

// accountTakeover returns a login from a new device after failed password guesses, and then a payment far above the
// usual.
func accountTakeover(now time.Time) Story {
	const user, own, thief, card = "u900003", "d900003", "d900004", "c900003"
	t := &tale{letter: 'a'}
	for day := 28; day > 0; day -= 2 {
		at := now.Add(-time.Duration(day) * 24 * time.Hour)
		t.login(at, user, own, berlin, true)
		t.payment(at.Add(time.Minute), user, own, card, "m00001", strconv.Itoa(36+day%8)+".50", "approved")
	}
	for i := range 7 {
		t.login(now.Add(time.Duration(i-10)*time.Minute), user, thief, berlin, i == 6)
	}
	t.payment(now.Add(-2*time.Minute), user, thief, card, "m00499", "1890.00", "approved")
	return Story{
		Name: "account takeover", Tells: "after six wrong passwords a login from a new device, then a payment of 1890 where 40 was usual",
		Service: "payment_risk", Entity: map[string]string{"user_id": user, "device_id": thief, "card_id": card}, Events: t.events,
	}
}

// bustOut returns a new account that is used with care for weeks, and then to its limit.
func bustOut(now time.Time) Story {
	const user, device, card = "u900005", "d900005", "c900005"
	t := &tale{letter: 'b'}
	for day := 25; day > 1; day -= 6 {
		t.payment(now.Add(-time.Duration(day)*24*time.Hour), user, device, card, "m00002", "9.90", "approved")
	}
	for i := range 8 {
		t.payment(now.Add(time.Duration(i-9)*5*time.Minute), user, device, card, string(numbered('m', 5, 520+i)), strconv.Itoa(600+50*i)+".00", "approved")
	}
	return Story{
		Name: "bust-out", Tells: "a quiet account spends 6200 at eight merchants within 45 minutes",
		Service: "payment_risk", Entity: map[string]string{"user_id": user, "device_id": device, "card_id": card}, Events: t.events,
	}
}

// Past makes the given number of events in the span before a moment, with those of the stories
// among them, in the order of their records. Each event is as old as its record's timestamp.
func Past(seed uint64, o Options, until time.Time, span time.Duration, events int, stories []Story) []Event {
	o.Clock, o.Start, o.Spacing = nil, until.Add(-span), span/time.Duration(events)
	g := New(seed, o)
	var all []Event
	for range events {
		if e := g.Next(); e.Timestamp < until.UnixMilli() {
			all = append(all, e)
		}
	}
	for _, s := range stories {
		all = append(all, s.Events...)
	}
	slices.SortStableFunc(all, func(a, b Event) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	return all
}
