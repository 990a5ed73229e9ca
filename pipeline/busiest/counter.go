// Package busiest counts which entities the events of the last minutes have changed most, and publishes them in the
// store: analysts can begin without an ID, and operators see hot entities.
package busiest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-stream/weir/state"
)

const (
	// pane is the length of a stretch of time that is counted separately. The counts of the current and the previous
	// pane are published.
	pane = 2 * time.Minute
	// listed is how many entities of a key are published: more than are shown, so that sums over several processors
	// lack little.
	listed = 50
	// Every is how often to publish.
	Every = state.BusiestFor / 5
)

// Counter counts the events of one processor. It is safe for concurrent use.
type Counter struct {
	name string // of the processor
	now  func() time.Time

	mu    sync.Mutex
	began int64 // in ms
	pane  int64 // number of the current pane since 1970
	keys  []*counted
}

// counted holds the events of the entities of one key.
type counted struct {
	key             string
	present, before *sketch
}

// New makes an empty counter. now is time.Now, except in tests.
func New(now func() time.Time) *Counter {
	return &Counter{name: rand.Text(), now: now, began: now().UnixMilli(), pane: paneOf(now())}
}

func paneOf(t time.Time) int64 { return t.UnixMilli() / pane.Milliseconds() }

// Count counts the events of a batch that was applied, once for each entity of one field that they
// changed.
func (c *Counter) Count(b *state.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn()
	for i := range b.Updates {
		u := &b.Updates[i]
		if by := b.Mutations[u.From].Series.By; len(by) == 1 && !b.Ranges[u.Range].Behind {
			c.of(by[0]).present.add(u.Hash, u.Entity)
		}
	}
}

// of finds or makes the counts of a key.
func (c *Counter) of(key string) *counted {
	for _, k := range c.keys {
		if k.key == key {
			return k
		}
	}
	k := &counted{key: key, present: new(sketch), before: new(sketch)}
	c.keys = append(c.keys, k)
	return k
}

// turn begins a new pane when the current one has ended.
func (c *Counter) turn() {
	now := paneOf(c.now())
	passed := now - c.pane
	if passed <= 0 {
		return
	}
	c.pane = now
	if passed > 1 {
		c.keys = nil
	}
	for _, k := range c.keys {
		k.present, k.before = k.before, k.present
		k.present.forget()
	}
}

// Busiest returns the counts of the current and the previous pane.
func (c *Counter) Busiest() state.Busiest {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn()
	b := state.Busiest{Since: max(c.began, (c.pane-1)*pane.Milliseconds()), Keys: []state.BusiestKey{}}
	for _, k := range c.keys {
		if l := list(k.key, []*sketch{k.present, k.before}, listed); len(l.Entities) > 0 {
			b.Keys = append(b.Keys, l)
		}
	}
	return b
}

// Publisher stores the busiest entities of processors; see store.Store.
type Publisher interface {
	PublishBusiest(ctx context.Context, processor string, b state.Busiest) error
}

// Publish publishes the counts at each tick until the context ends. After a failure it tries again at the next tick.
// Other parts report that the store is unavailable.
func (c *Counter) Publish(ctx context.Context, ticks <-chan time.Time, to Publisher, log *slog.Logger) {
	for {
		select {
		case <-ticks:
		case <-ctx.Done():
			return
		}
		if err := to.PublishBusiest(ctx, c.name, c.Busiest()); err != nil {
			log.Debug("the busiest entities were not published", "error", err)
		}
	}
}
