// Package workload draws the feature definitions and the events of fault trials.
package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// The topics of the events, of a table's rows and of the entries of lists, without the round's suffix.
const (
	Payments  = "payments"
	Logins    = "logins"
	Merchants = "merchants"
	Lists     = "lists"
	Enriched  = "enriched" // logins with the features of a service
)

const hour = int64(time.Hour / time.Millisecond)

// Options describe the events of a round. They are comparable. Shares are from 0 to 1.
type Options struct {
	users      int
	networks   int
	hot        float64 // share of the events of one user
	spacing    time.Duration
	logins     float64
	nulls      float64
	edges      float64 // share of values that are empty, zero or extreme
	outOfOrder float64
	late       float64 // share of events up to lateBy after their time
	lateBy     time.Duration
	duplicates float64
	poison     float64
}

// DrawOptions draws options.
func DrawOptions(r *rand.Rand) Options {
	return Options{
		users: 5 + r.IntN(60), networks: 5, hot: []float64{0, 0.1, 0.6}[r.IntN(3)],
		spacing: []time.Duration{time.Second, 30 * time.Second, 5 * time.Minute}[r.IntN(3)],
		logins:  r.Float64() / 2, nulls: r.Float64() / 10, edges: r.Float64() / 20, outOfOrder: r.Float64() / 4, late: r.Float64() / 20,
		lateBy: time.Duration(1+r.IntN(20)) * 24 * time.Hour, duplicates: r.Float64() / 10, poison: r.Float64() / 100,
	}
}

// Users returns the number of users; their names are u0, u1 and so on.
func (o Options) Users() int { return o.users }

// Spread returns the options with events spread over at least a number of users, none of whom has most of them, and half
// as many networks.
func (o Options) Spread(users int) Options {
	o.users, o.networks, o.hot = max(o.users, users), max(o.networks, users/2), min(o.hot, 0.1)
	return o
}

// Dense returns the options with at most ten seconds between events. Of enriched ones that are further apart, partitions
// that catch up apply few at a time, which lasts too long where a transaction of the store does.
func (o Options) Dense() Options {
	o.spacing = min(o.spacing, 10*time.Second)
	return o
}

// Message is one record to write.
type Message struct {
	Topic      string
	Key, Value []byte
	Timestamp  int64 // in ms since 1970
}

// Generator makes a round's events. Each has a millisecond of its own, except repeated ones: events
// of the same millisecond in different partitions have no order.
type Generator struct {
	Options
	random *rand.Rand
	now    int64 // in ms
	taken  map[int64]bool
	count  int
	again  []Message
}

// NewGenerator makes a generator of events.
func NewGenerator(r *rand.Rand, o Options) *Generator {
	// The events span some weeks around the change of clocks in Europe.
	start := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(int64(20 * 24 * time.Hour)))).UnixMilli()
	return &Generator{Options: o, random: r, now: start, taken: map[int64]bool{}}
}

func (g *Generator) chance(share float64) bool { return g.random.Float64() < share }

// Next returns the next event to write, of which at most one in a hundred is poison, or a row of a table or an entry of a list.
func (g *Generator) Next() Message {
	g.now += g.random.Int64N(2*g.spacing.Milliseconds() + 1)
	if g.chance(rows) {
		return g.row()
	}
	if len(g.again) > 0 && g.chance(0.05) {
		e := g.again[0]
		g.again = g.again[1:]
		e.Timestamp = g.now
		return e
	}
	g.count++
	e := Message{Topic: Payments, Timestamp: g.now}
	user := g.random.IntN(g.users)
	if g.chance(g.hot) {
		user = 0
	}
	e.Key = fmt.Appendf(nil, "u%d", user)
	if g.chance(g.logins) {
		e.Topic = Logins
	}
	e.Value = g.value(e.Topic, user)
	if g.chance(g.duplicates) {
		g.again = append(g.again, e)
	}
	return e
}

// at draws the time of an event that is sent now.
func (g *Generator) at() int64 {
	at := g.now
	switch {
	case g.chance(g.outOfOrder):
		at -= g.random.Int64N(20*g.spacing.Milliseconds() + 1)
	case g.chance(g.late):
		at -= g.random.Int64N(g.lateBy.Milliseconds() + 1)
	}
	for g.taken[at] {
		at--
	}
	g.taken[at] = true
	return at
}

func (g *Generator) value(topic string, user int) []byte {
	amount := fmt.Sprintf("%d.%02d", g.random.IntN(2000), g.random.IntN(100))
	kind := "payment"
	if topic == Logins {
		kind = "login"
	}
	at := g.at()
	fields := []string{
		fmt.Sprintf(`"id":"e%d"`, g.count), fmt.Sprintf(`"at":%d`, at), fmt.Sprintf(`"hour":%d`, at-at%hour), fmt.Sprintf(`"kind":%q`, kind),
		fmt.Sprintf(`"user":"u%d"`, user),
	}
	edge := func(ordinary string, edges ...string) string {
		if g.chance(g.edges) {
			return edges[g.random.IntN(len(edges))]
		}
		return ordinary
	}
	optional := []string{
		`"card":` + edge(fmt.Sprintf(`"c%d"`, user*2+g.random.IntN(2)), `""`, `"|"`), `"shop":` + edge(fmt.Sprintf(`"s%d"`, g.random.IntN(12)), `""`, `"\u0000"`),
		fmt.Sprintf(`"ip":"10.0.%d.%d"`, user%g.networks, g.random.IntN(8)), `"amount":` + edge(amount, "0", "-0.01", "92233720368547758.07"),
		`"units":` + edge(strconv.Itoa(g.random.IntN(9)-3), "0", "9223372036854775807", "-9223372036854775808"),
		`"score":` + edge(fmt.Sprint(float64(g.random.IntN(64))/8), "0", "5e-324", "1e9"),
		fmt.Sprintf(`"ok":%t`, g.chance(0.7)), fmt.Sprintf(`"place":{"lat":%d,"lon":%d}`, g.random.IntN(9)*10-40, g.random.IntN(9)*30-120),
	}
	for _, field := range optional {
		if !g.chance(g.nulls) {
			fields = append(fields, field)
		}
	}
	value := []byte("{" + strings.Join(fields, ",") + "}")
	if g.chance(g.poison) {
		return value[:1+g.random.IntN(len(value)-1)]
	}
	return value
}
