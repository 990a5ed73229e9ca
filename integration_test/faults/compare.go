package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/integration_test/faults/servers"
	"github.com/weir-stream/weir/integration_test/faults/workload"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/state"
)

// compare compares every feature of every entity, at several moments, with a plain loop over the
// log, and the dead letters with the poison in the log.
func (r *round) compare() {
	registry := r.registry(r.version)
	for _, p := range r.all() {
		p.AwaitVersion(registry.Version())
	}
	r.awaitTables()
	r.ledger.take()
	loop, clock, poison := r.ledger.loop(registry)
	url := r.api.URL()
	reloaded := len(r.scenario.Versions) > 1
	differences := servers.NewKit("comparison", r.failure)
	interlude := r.scenario.Interlude
	expired := interlude == setClock // what has expired is filled again, from a log that still has all of it
	if expired {
		interlude = nil
	}
	forgotten := interlude != nil && interlude.forgets
	c := blackbox.Comparison{T: differences, URL: url, Model: loop, Partly: reloaded || expired || forgotten, Gaps: interlude != nil && !forgotten, Members: workload.Members}
	// What only lost plans kept is filled anew, from a log that still has all of it. Plans that processors apply are
	// registered again.
	if reloaded || expired || (r.had(loseOwnKeys) || r.had(plansBack)) && interlude == nil {
		r.awaitComplete(&c, registry, clock)
	}
	c.All(registry, clock, r.moments(clock)...)
	for name, n := range c.Incomplete {
		if !forgotten && (strings.HasPrefix(name, "always_") || interlude == nil) && n > 0 {
			c.Wrong++
			differences.Errorf("%d answers of %s, which was always kept or is backfilled, say that they are complete only since %d", n, name, c.Since[name])
		}
	}
	if r.scenario.Interlude == nil { // else the log has other records than those that were applied
		c.Trained(registry, r.ledger.latest+1, r.train)
		if r.scenario.enriches() {
			r.compareEnriched(&c, registry)
		}
	}
	missing := r.missingLetters(poison)
	if missing > 0 {
		differences.Errorf("%d of %d poison records have no dead letter", missing, len(poison))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.res.Records = len(r.ledger.records)
	r.res.Features, r.res.Compared = len(registry.Features), c.Compared+len(poison)
	r.res.Differences += c.Wrong + missing
	for _, n := range c.Incomplete {
		r.res.Incomplete += n
	}
}

// compareEnriched compares the enriched logins. They are of one partition, so it is determined what was known at each.
func (r *round) compareEnriched(c *blackbox.Comparison, registry *features.Registry) {
	stream, _ := registry.Stream("login")
	c.Model, c.Partly = model.New(registry), r.had(loseOwnKeys) || r.had(plansBack)
	c.MayLack = func(f *features.Feature) bool { return f.Forgets() && f.Keep == workload.KeptBriefly }
	nowhere := func(*features.Feature) bool { return false }
	c.Enriched(registry, stream, r.read(workload.Logins+r.suffix), r.read(workload.Enriched+r.suffix), nowhere)
}

// train makes a training set, as a question would have been answered, from the topics.
func (r *round) train(names []string, spine []byte) ([]byte, error) {
	command := exec.Command(r.trials.binary, slices.Concat([]string{
		"materialize", "--features", r.api.File, "--from-topics", "--as", "served", "--spine", "-", "--input-format", "csv", "--columns", strings.Join(names, ","), "--quality", "--output", "-",
	}, r.kafka.Settings())...)
	var said bytes.Buffer
	command.Stdin, command.Stderr = bytes.NewReader(spine), &said
	set, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, said.Bytes())
	}
	return set, nil
}

// missingLetters counts the poison records without a dead letter.
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

// moments returns the current moment and several past ones, at and around tile edges.
func (r *round) moments(clock int64) []int64 {
	random := r.random("moments")
	edge := state.FloorDiv(clock-random.Int64N(3*day), hour) * hour
	return []int64{clock, edge, edge - 1, clock - random.Int64N(2*day), clock - random.Int64N(10*day)}
}

// awaitComplete waits until new features, and those whose plans were lost, are backfilled as far back as answers are compared; a
// backfill does not read records that no window needs. It asks about each entity, because windows of last events reach back from
// each entity's own.
func (r *round) awaitComplete(c *blackbox.Comparison, registry *features.Registry, clock int64) {
	testkit.Eventually(r.kit, 2*time.Minute, "features are complete", func() (bool, string) {
		incomplete, err := c.FirstIncomplete(registry, clock, r.moments(clock)...)
		if err != nil {
			return false, err.Error()
		}
		return incomplete == "", incomplete
	})
}
