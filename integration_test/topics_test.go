package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// overTopics are definitions of a stream, given its topics, and of others.
const overTopics = `
streams:
  transaction:
    %s
    timestamp: at
    id: event_id
    fields: {user_id: string, merchant_id: string, amount: {type: decimal, scale: 2}}
%s
features:
  user_tx: COUNT(lifetime, transaction, user_id)
  user_tx_1h: COUNT(1h, transaction, user_id)
  user_amount_1d: SUM(1d, transaction, amount, user_id, where='amount > 3')
  user_merchants: COUNT_DISTINCT(lifetime, transaction, user_id, merchant_id)
  user_exact_1h: SUM(1h, transaction, amount, user_id, tile=exact, max=100000)
  merchant_users_1d: COUNT_DISTINCT(1d, transaction, merchant_id, user_id)
`

// A stream gets a second topic while its events flow and processors are killed, and loses it again. Its features have
// each event of its topics once, also those from before the change, which may be of a topic that another stream has
// read.
func TestStreamOfSeveralTopics(t *testing.T) {
	t.Parallel()
	const both = `topics:
      transactions:
      logins:
        match: kind == "transfer"
        timestamp: {path: head.time, unit: s}
        id: head.id
        fields: {user_id: from.user, amount: {path: cents, exponent: -2}}`
	const other = `  other:
    topic: logins
    timestamp: {path: head.time, unit: s}
    fields: {user_id: {type: string, path: from.user}}
`
	for name, others := range map[string]string{"a topic that is new": "", "a topic that another stream reads": other} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := fmt.Sprintf(overTopics, "topic: transactions", others), fmt.Sprintf(overTopics, both, others)
			if others != "" {
				one, two = one+"  user_others: COUNT(lifetime, other, user_id)\n", two+"  user_others: COUNT(lifetime, other, user_id)\n"
			}
			file := filepath.Join(t.TempDir(), "two.yaml")
			if err := os.WriteFile(file, []byte(two), 0o600); err != nil {
				t.Fatal(err)
			}
			server := redistest.New(t, redistest.Options{AOF: true})
			s := newSceneOf(t, server.Client(t), []string{file}, "--redis.addresses", server.Addr(), "--backfill.rate", "0.2")
			if err := os.WriteFile(file, []byte(one), 0o600); err != nil {
				t.Fatal(err)
			}
			single, err := definition.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			s.earlier = &earlier{single, model.New(single)}
			api, processor := s.startWith(nil, "api", one), s.startWith(nil, "processor", one)
			processor.awaitReady()

			written := 0
			flow := func(rounds int) {
				t.Helper()
				for range rounds {
					var events []generate.Event
					for range 50 {
						now := time.Now().UnixMilli()
						events = append(events, generate.Event{Topic: generate.Transactions, Key: fmt.Append(nil, written), Timestamp: now, Value: fmt.Appendf(nil,
							`{"event_id":"t%d","at":%d,"user_id":"u%d","merchant_id":"m%d","amount":%d.25}`, written, now, written%7, written%13, written%11)})
						kind := []string{"transfer", "fee"}[written%5/4]
						events = append(events, generate.Event{Topic: generate.Logins, Key: fmt.Append(nil, written), Timestamp: now, Value: fmt.Appendf(nil,
							`{"kind":%q,"head":{"time":%d,"id":"l%d"},"from":{"user":"u%d"},"merchant_id":"m%d","cents":%d}`, kind, now/1000, written, written%5, written%17, written%1100)})
						written++
					}
					if err := s.write(events, s.producer.write); err != nil {
						t.Fatal(err)
					}
				}
			}
			take := func(text string) {
				t.Helper()
				api.take(t, text)
				processor.take(t, text)
			}
			awaitEqual := func(what string, m *model.Model) {
				t.Helper()
				registry := s.registry
				if m == s.earlier.model {
					registry = single
				}
				testkit.Eventually(t, 3*time.Minute, what, func() (bool, string) {
					now := blackbox.Comparison{T: t, URL: api.url, Model: m, Partly: true}
					now.All(registry, s.clock, s.clock)
					return len(now.Incomplete) == 0, fmt.Sprint("incomplete ", now.Incomplete)
				})
				c := blackbox.Comparison{T: t, URL: api.url, Model: m, Partly: true}
				c.All(registry, s.clock, s.clock, s.clock+hour, s.clock-1)
				if len(c.Incomplete) > 0 {
					t.Errorf("%s: these answers are incomplete: %v", what, c.Incomplete)
				}
				t.Logf("%s: %d answers compared, of %d events", what, c.Compared, 2*written)
			}

			flow(20)
			s.kill(processor)
			processor = s.startWith(nil, "processor", one)
			flow(5)
			take(two)
			s.awaitFilling("it is known", func(*state.FillEpoch) bool { return true })
			flow(5)
			s.kill(processor)
			processor = s.startWith(nil, "processor", two)
			flow(10)
			s.awaitApplied()
			awaitEqual("the stream has both topics", s.model)

			take(one)
			flow(5)
			s.kill(processor)
			processor = s.startWith(nil, "processor", one)
			processor.awaitReady()
			testkit.Eventually(t, 2*time.Minute, "all of the remaining topic is applied", func() (bool, string) {
				ends, err := ends(s.kafka)
				if err != nil {
					return false, err.Error()
				}
				progress, err := s.store.Progress(ctx, partitions())
				if err != nil {
					return false, err.Error()
				}
				for i, p := range partitions() {
					if low := state.Lowest(progress[i]); p.Topic == generate.Transactions && low != ends[p] {
						return false, fmt.Sprintf("%v: %d of %d", p, low, ends[p])
					}
				}
				return true, ""
			})
			if others != "" {
				s.awaitApplied()
			}
			awaitEqual("the stream has one topic again", s.earlier.model)
		})
	}
}
