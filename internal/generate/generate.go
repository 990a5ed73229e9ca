// Package generate makes the transactions and logins of a fictitious shop, for
// the demo and for tests. The same seed and options make the same events.
package generate

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// The topics of the events.
const (
	Transactions = "transactions"
	Logins       = "logins"
)

// Start is when the events begin, unless Options say otherwise.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Options describe the events. Shares are from 0 to 1.
type Options struct {
	Users   int           // number of users; 1,000 if 0
	Start   time.Time     // time of the first event; Start if zero
	Spacing time.Duration // from one event to the next, on average; 50ms if 0
	// Clock, if not nil, returns the events' times instead of Start and Spacing; nothing else
	// changes.
	Clock func() time.Time

	Logins float64 // share of logins; the others are transactions
	Nulls  float64 // share of events that lack a device, an IP or a status

	// OutOfOrder is the share of events that arrive up to OutOfOrderBy (a minute if 0) after their
	// time, and Late the share that arrive up to LateBy (40 days if 0) after it.
	OutOfOrder   float64
	OutOfOrderBy time.Duration
	Late         float64
	LateBy       time.Duration
	Duplicates   float64 // share of events sent twice
	Poison       float64 // share of poison events

	// Before is the number of events made earlier: IDs continue after theirs.
	Before int
}

// Demo returns the options of the demo: a realistic stream, some of it out of order, too late for
// short windows or repeated, and none of it poison.
func Demo() Options {
	return Options{
		Logins: 0.3, Nulls: 0.02, OutOfOrder: 0.05, Late: 0.001, LateBy: 24 * time.Hour, Duplicates: 0.002,
	}
}

// Event is one record to send.
type Event struct {
	Topic      string
	Key, Value []byte
	Timestamp  int64 // of the record, in milliseconds since 1970
	// Poison means that the value is unusable: it is not valid JSON, lacks an amount, has a field of a wrong type or no
	// valid timestamp.
	Poison bool
}

// Generator makes events. It is not safe for concurrent use.
type Generator struct {
	options   Options
	random    *rand.Rand
	users     *rand.Zipf
	merchants *rand.Zipf
	now       time.Duration // since the start
	count     int
	again     []Event // to be sent again
}

// New makes a generator.
func New(seed uint64, o Options) *Generator {
	if o.Users == 0 {
		o.Users = 1000
	}
	if o.Start.IsZero() {
		o.Start = Start
	}
	for value, otherwise := range map[*time.Duration]time.Duration{
		&o.Spacing: 50 * time.Millisecond, &o.OutOfOrderBy: time.Minute, &o.LateBy: 40 * 24 * time.Hour,
	} {
		if *value == 0 {
			*value = otherwise
		}
	}
	random := rand.New(rand.NewPCG(seed, 0x77656972))
	return &Generator{
		options: o, random: random, count: o.Before,
		users:     rand.NewZipf(random, 1.2, 20, uint64(o.Users-1)),
		merchants: rand.NewZipf(random, 1.3, 5, 499),
	}
}

// Next returns the next event. It shares no memory with the generator.
func (g *Generator) Next() Event {
	now := g.tick().UnixMilli()
	if len(g.again) > 0 && g.random.IntN(10) == 0 {
		e := g.again[0]
		g.again = g.again[1:]
		e.Timestamp = now
		return e
	}
	e := g.event(now)
	if !e.Poison && g.chance(g.options.Duplicates) {
		again := e
		again.Key, again.Value = slices.Clone(e.Key), slices.Clone(e.Value)
		g.again = append(g.again, again)
	}
	return e
}

func (g *Generator) tick() time.Time {
	g.now += time.Duration(g.random.Int64N(2*int64(g.options.Spacing) + 1))
	if g.options.Clock != nil {
		return g.options.Clock()
	}
	return g.options.Start.Add(g.now)
}

func (g *Generator) chance(share float64) bool { return g.random.Float64() < share }

func (g *Generator) event(now int64) Event {
	g.count++
	at := now
	switch {
	case g.chance(g.options.OutOfOrder):
		at -= g.random.Int64N(g.options.OutOfOrderBy.Milliseconds() + 1)
	case g.chance(g.options.Late):
		at -= g.random.Int64N(g.options.LateBy.Milliseconds() + 1)
	}
	user := int(g.users.Uint64())
	fields := g.login
	e := Event{Topic: Logins, Key: numbered('u', 6, user+1), Timestamp: now}
	if !g.chance(g.options.Logins) {
		e.Topic, fields = Transactions, g.transaction
	}
	o := fields(user, strconv.FormatInt(at, 10))
	if g.chance(g.options.Nulls) {
		o.set([]string{"device_id", "ip", "status"}[g.random.IntN(3)], "null")
	}
	if g.chance(g.options.Poison) {
		e.Poison = true
		e.Value = g.spoil(o, now)
		return e
	}
	e.Value = o.json()
	return e
}

func (g *Generator) transaction(user int, at string) object {
	status := "approved"
	if g.chance(0.08) {
		status = "declined"
	}
	o := g.common('t', "transaction", user, at)
	cents := 50 + g.random.IntN(5000)*g.random.IntN(40)
	card := member{"card_id", quoted(numbered('c', 6, user*3+g.oneOfThree(user)+1))}
	to := member{"merchant_id", quoted(numbered('m', 5, int(g.merchants.Uint64())+1))}
	if g.count%10 == 0 { // a transfer
		to = member{"payee_id", quoted(numbered('u', 6, (user+g.count)%g.options.Users+1))}
	}
	return append(o, card, to,
		member{"amount", strconv.Itoa(cents/100) + "." + string(numbered(0, 2, cents%100))},
		member{"status", quoted([]byte(status))},
	)
}

func (g *Generator) login(user int, at string) object {
	return append(g.common('l', "login", user, at),
		member{"place", homes[user%len(homes)]}, member{"success", strconv.FormatBool(!g.chance(0.1))})
}

// homes are where users log in, each in one of them.
var homes = []string{berlin, `{"lat":48.14,"lon":11.58}`, `{"lat":53.55,"lon":9.99}`, `{"lat":47.38,"lon":8.54}`, `{"lat":48.21,"lon":16.37}`}

const berlin, singapore = `{"lat":52.52,"lon":13.4}`, `{"lat":1.35,"lon":103.82}`

// common returns the fields of both kinds of event. A user has one to three devices, some shared with another user, and
// a home network; one event in a hundred comes from one of a few devices that all users share.
func (g *Generator) common(id byte, kind string, user int, at string) object {
	device, network := user*2+g.oneOfThree(user), user/8
	if g.chance(0.01) {
		device, network = g.random.IntN(3), g.random.IntN(3)
	}
	ip := "10." + strconv.Itoa(network/256%256) + "." + strconv.Itoa(network%256) + "." + strconv.Itoa(1+g.random.IntN(254))
	return object{
		{"event_id", quoted(numbered(id, 9, g.count))},
		{"timestamp", at},
		{"type", quoted([]byte(kind))},
		{"user_id", quoted(numbered('u', 6, user+1))},
		{"device_id", quoted(numbered('d', 6, device+1))},
		{"ip", quoted([]byte(ip))},
	}
}

// oneOfThree picks one of the one to three things of a kind that a user has, mostly the first.
func (g *Generator) oneOfThree(user int) int {
	return min(g.random.IntN(1+user%3), g.random.IntN(3))
}

// spoil returns the value of a poison event.
func (g *Generator) spoil(o object, now int64) []byte {
	switch g.random.IntN(6) {
	case 0:
		value := o.json()
		return value[:1+g.random.IntN(len(value)-1)]
	case 1:
		if !o.set("amount", "null") {
			o.set("success", "1")
		}
	case 2:
		o.set("user_id", "42")
	case 3:
		o.set("timestamp", `"yesterday"`)
	case 4:
		o.set("timestamp", "null")
	case 5:
		o.set("timestamp", strconv.FormatInt(now+time.Hour.Milliseconds()+g.random.Int64N(1e9), 10))
	}
	return o.json()
}
