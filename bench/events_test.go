package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	transactions = "transactions"
	logins       = "logins"
	deadLetters  = "weir.dead-letters"
	partitions   = 4 // of each topic
)

// population is that of a month of fraud work: some thirty events a user.
func population(events int) int { return max(100, events/30) }

// event is one of three transactions to two logins. Few users are busy: a
// tenth of all events are of a hundredth of the users. Each has up to three
// devices, two cards and a network; one event in fifty is on a device that many
// share.
type event struct {
	login                                    bool
	user, device, card, merchant, segment, n int
	cents                                    int
	good                                     bool // approved, or a login that succeeded
}

func newEvent(r *rand.Rand, n, users int) event {
	u := r.Float64()
	user := int(u * u * float64(users))
	device := 3*user + min(r.IntN(6), 2)
	if r.IntN(50) == 0 {
		device = 3 * r.IntN(users/50)
	}
	m := r.Float64()
	return event{
		login: r.IntN(5) < 2, user: user, device: device, card: 2*user + r.IntN(5)/4,
		merchant: int(m * m * 3000), segment: user % (users / 3), n: n,
		cents: 100 + int(r.ExpFloat64()*5000), good: r.IntN(10) > 0,
	}
}

func (e *event) topic() string {
	if e.login {
		return logins
	}
	return transactions
}

func (e *event) appendJSON(dst []byte, at int64) []byte {
	ip := fmt.Sprintf("10.%d.%d.%d", e.segment>>8, e.segment&255, e.device%250+1)
	if e.login {
		return fmt.Appendf(dst, `{"type":"login","event_id":"l-%d","timestamp":%d,"user_id":"u%06d","device_id":"d%08x","ip":"%s","success":%t}`,
			e.n, at, e.user, e.device, ip, e.good)
	}
	status := "approved"
	if !e.good {
		status = "declined"
	}
	return fmt.Appendf(dst, `{"type":"transaction","event_id":"t-%d","timestamp":%d,"user_id":"u%06d","device_id":"d%08x","card_id":"c%07d","merchant_id":"m%04d","ip":"%s","amount":%d.%02d,"currency":"EUR","status":"%s"}`,
		e.n, at, e.user, e.device, e.card, e.merchant, ip, e.cents/100, e.cents%100, status)
}

// entities gathers what the shipped features keep state of.
type entities map[[2]int]struct{}

func (s entities) add(e *event) {
	const user, device, card, segment, pair = -1, -2, -3, -4, 1 << 32
	s[[2]int{user, e.user}], s[[2]int{device, e.device}] = struct{}{}, struct{}{}
	if e.login {
		s[[2]int{segment, e.segment}] = struct{}{}
	} else {
		s[[2]int{card, e.card}], s[[2]int{pair + e.user, e.device}] = struct{}{}, struct{}{}
	}
}

// feed produces events.
type feed struct {
	client   *kgo.Client
	random   *rand.Rand
	users    int
	produced int
	entities entities
}

func newFeed(b *testing.B, brokers []string, users int) *feed {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ProducerLinger(time.Millisecond),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	return &feed{users: users, client: client, random: rand.New(rand.NewPCG(1, 2)), entities: entities{}}
}

// produce sends one event that happens at a moment; sent gets the record.
func (f *feed) produce(ctx context.Context, at time.Time, sent func(*kgo.Record, error)) {
	e := newEvent(f.random, f.produced, f.users)
	f.produced++
	f.entities.add(&e)
	f.client.Produce(ctx, &kgo.Record{
		Topic: e.topic(), Key: fmt.Appendf(nil, "u%06d", e.user), Timestamp: at,
		Value: e.appendJSON(nil, at.UnixMilli()),
	}, sent)
}

// fill produces n events that happened over a time until now, evenly.
func (f *feed) fill(b *testing.B, n int, over time.Duration) {
	start := time.Now().Add(-over)
	var failed error
	for i := range n {
		f.produce(b.Context(), start.Add(over/time.Duration(n)*time.Duration(i)), func(_ *kgo.Record, err error) {
			if err != nil {
				failed = err
			}
		})
	}
	if err := f.client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	if failed != nil {
		b.Fatal(failed)
	}
}

// record is one that was produced: where it stands and when it was made.
type record struct {
	place
	at time.Time
}

// place is an offset of a partition.
type place struct {
	Topic     string
	Partition int32
	Offset    int64
}

// stream produces n events as they happen, evenly over a time, and returns
// where they stand.
func (f *feed) stream(b *testing.B, n int, over time.Duration) []record {
	done := make(chan record, n)
	failed := make(chan error, n)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	for i := 0; i < n; {
		now := <-tick.C
		for due := min(n, int(float64(n)*float64(now.Sub(start))/float64(over))); i < due; i++ {
			at := time.Now()
			f.produce(b.Context(), at, func(r *kgo.Record, err error) {
				if err != nil {
					failed <- err
				}
				done <- record{place{r.Topic, r.Partition, r.Offset}, at}
			})
		}
	}
	if err := f.client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	select {
	case err := <-failed:
		b.Fatal(err)
	default:
	}
	records := make([]record, n)
	for i := range records {
		records[i] = <-done
	}
	return records
}
