package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/state"
)

// compare compares every feature of every entity, at some moments, with what a plain loop over
// the log gives; and the dead letters with what in the log is poison.
func (r *round) compare() {
	_, registry := r.definitions(r.version)
	for _, p := range r.all() {
		p.awaitVersion(registry.Version())
	}
	r.ledger.take()
	loop, clock, poison := r.ledger.loop(registry)
	url := r.api.url()
	reloaded := len(r.plan.Versions) > 1
	if reloaded {
		r.awaitComplete(url, registry)
	}
	differences := newKit("comparison", r.failure)
	c := blackbox.Comparison{T: differences, URL: url, Model: loop, Partly: reloaded, Gaps: r.plan.Interlude != nil, Members: members}
	c.All(registry, clock, r.moments(clock)...)
	for name, n := range c.Incomplete {
		if (strings.HasPrefix(name, "always_") || r.plan.Interlude == nil) && n > 0 {
			c.Wrong++
			differences.Errorf("%d answers of %s, which was always kept or is backfilled, say that they are complete since %d only", n, name, c.Since[name])
		}
	}
	missing := r.missingLetters(poison)
	if missing > 0 {
		differences.Errorf("%d of %d records that are poison have no dead letter", missing, len(poison))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.res.Records = len(r.ledger.records)
	r.res.Features, r.res.Compared, r.res.Differences = len(registry.Features), c.Compared+len(poison), c.Wrong+missing
	for _, n := range c.Incomplete {
		r.res.Incomplete += n
	}
}

// missingLetters counts the places without a dead letter.
func (r *round) missingLetters(poison map[string]bool) (missing int) {
	found := map[string]bool{}
	for _, records := range r.read(deadLetters + r.suffix) {
		for _, letter := range records {
			headers := map[string]string{}
			for _, h := range letter.Headers {
				headers[h.Key] = string(h.Value)
			}
			found[headers["weir-topic"]+"/"+headers["weir-partition"]+"/"+headers["weir-offset"]] = true
		}
	}
	for place := range poison {
		if !found[place] {
			missing++
		}
	}
	return missing
}

const (
	hour = int64(time.Hour / time.Millisecond)
	day  = 24 * hour
)

// moments are the present one, and some that have passed, at and around edges of tiles.
func (r *round) moments(clock int64) []int64 {
	random := r.random("moments")
	edge := state.FloorDiv(clock-random.Int64N(3*day), hour) * hour
	return []int64{clock, edge, edge - 1, clock - random.Int64N(2*day), clock - random.Int64N(10*day)}
}

// entities are some whose features a round waits for, by their keys.
var entities = map[string]string{
	"user": `{"user":"u0"}`, "card": `{"card":"c0"}`, "net": `{"net":"10.0.0.0/24"}`, "shop user": `{"shop":"s0","user":"u0"}`,
}

// awaitComplete waits until all processors have taken the definitions, and what is new in them
// is backfilled. Where a log has lost records, only what was always kept is sure to be complete.
func (r *round) awaitComplete(url string, registry *features.Registry) {
	names := map[string][]string{}
	for _, f := range registry.Features {
		if f.Membership() != aggregate.MembersNeeded && (r.plan.Interlude == nil || strings.HasPrefix(f.Name, "always_")) {
			keys := strings.Join(slices.Sorted(slices.Values(f.By)), " ")
			names[keys] = append(names[keys], f.Name)
		}
	}
	wait(r.kit, 2*time.Minute, "features are complete", func() (bool, string) {
		for keys, names := range names {
			q := blackbox.Question{Features: names, Entities: []json.RawMessage{json.RawMessage(entities[keys])}, At: time.Now().UnixMilli()}
			answers, err := blackbox.Ask(url, q)
			if err != nil {
				return false, err.Error()
			}
			for name, a := range answers[0] {
				if a.CompleteSince != nil {
					return false, fmt.Sprintf("%s is complete since %d", name, *a.CompleteSince)
				}
			}
		}
		return true, ""
	})
}
