package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// The topics of the events, but for the round's own suffix.
const (
	payments = "payments"
	logins   = "logins"
)

// eventOptions say what the events of a round are like. Shares are from 0 to 1.
type eventOptions struct {
	Users      int
	Hot        float64 // share of the events of one user
	Spacing    time.Duration
	Logins     float64
	Nulls      float64
	OutOfOrder float64
	Late       float64 // share of events up to LateBy after their time
	LateBy     time.Duration
	Duplicates float64
	Poison     float64
}

func drawOptions(r *rand.Rand) eventOptions {
	return eventOptions{
		Users: 5 + r.IntN(60), Hot: []float64{0, 0.1, 0.6}[r.IntN(3)],
		Spacing: []time.Duration{time.Second, 30 * time.Second, 5 * time.Minute}[r.IntN(3)],
		Logins:  r.Float64() / 2, Nulls: r.Float64() / 10, OutOfOrder: r.Float64() / 4, Late: r.Float64() / 20,
		LateBy: time.Duration(1+r.IntN(20)) * 24 * time.Hour, Duplicates: r.Float64() / 10, Poison: r.Float64() / 100,
	}
}

// message is one record to write.
type message struct {
	topic      string
	key, value []byte
	timestamp  int64 // in ms since 1970
}

// generator makes a round's events. Each has a millisecond of its own, but for those that are
// sent again: of events of one moment and several partitions there is no order.
type generator struct {
	eventOptions
	random *rand.Rand
	start  int64
	now    int64 // in ms
	taken  map[int64]bool
	count  int
	again  []message
}

func newGenerator(r *rand.Rand, o eventOptions) *generator {
	// Some weeks around the day on which clocks in Europe are changed.
	start := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(int64(20 * 24 * time.Hour)))).UnixMilli()
	return &generator{eventOptions: o, random: r, start: start, now: start, taken: map[int64]bool{}}
}

func (g *generator) chance(share float64) bool { return g.random.Float64() < share }

func (g *generator) next() message {
	g.now += g.random.Int64N(2*g.Spacing.Milliseconds() + 1)
	if len(g.again) > 0 && g.chance(0.05) {
		e := g.again[0]
		g.again = g.again[1:]
		e.timestamp = g.now
		return e
	}
	g.count++
	e := message{topic: payments, timestamp: g.now}
	user := g.random.IntN(g.Users)
	if g.chance(g.Hot) {
		user = 0
	}
	e.key = fmt.Appendf(nil, "u%d", user)
	if g.chance(g.Logins) {
		e.topic = logins
	}
	e.value = g.value(e.topic, user)
	if g.chance(g.Duplicates) {
		g.again = append(g.again, e)
	}
	return e
}

// at draws the time of an event that is sent now.
func (g *generator) at() int64 {
	at := g.now
	switch {
	case g.chance(g.OutOfOrder):
		at -= g.random.Int64N(20*g.Spacing.Milliseconds() + 1)
	case g.chance(g.Late):
		at -= g.random.Int64N(g.LateBy.Milliseconds() + 1)
	}
	for g.taken[at] {
		at--
	}
	g.taken[at] = true
	return at
}

func (g *generator) value(topic string, user int) []byte {
	amount := fmt.Sprintf("%d.%02d", g.random.IntN(2000), g.random.IntN(100))
	kind := "payment"
	if topic == logins {
		kind = "login"
	}
	fields := []string{
		fmt.Sprintf(`"id":"e%d"`, g.count), fmt.Sprintf(`"at":%d`, g.at()), fmt.Sprintf(`"kind":%q`, kind), fmt.Sprintf(`"user":"u%d"`, user),
	}
	optional := []string{
		fmt.Sprintf(`"card":"c%d"`, user*2+g.random.IntN(2)), fmt.Sprintf(`"shop":"s%d"`, g.random.IntN(12)),
		fmt.Sprintf(`"ip":"10.0.%d.%d"`, user%5, g.random.IntN(8)), fmt.Sprintf(`"amount":%s`, amount),
		fmt.Sprintf(`"units":%d`, g.random.IntN(9)-3), fmt.Sprintf(`"score":%g`, float64(g.random.IntN(64))/8),
		fmt.Sprintf(`"ok":%t`, g.chance(0.7)), fmt.Sprintf(`"place":{"lat":%d,"lon":%d}`, g.random.IntN(9)*10-40, g.random.IntN(9)*30-120),
	}
	for _, field := range optional {
		if !g.chance(g.Nulls) {
			fields = append(fields, field)
		}
	}
	value := []byte("{" + strings.Join(fields, ",") + "}")
	if g.chance(g.Poison) {
		return value[:1+g.random.IntN(len(value)-1)]
	}
	return value
}
