package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/integration_test/faults/workload"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
)

// watch asks for counts all the time while definitions are reloaded, until the returned function is called. A count over a
// window that versions of the definitions make longer and shorter is never less than the one of the shortest window, which all
// versions have: that of a day. Both are read at the same moment, so this also holds while state goes back in time.
func (r *round) watch() (stop func()) {
	if len(r.scenario.Versions) == 1 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		random := r.random("watch")
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.look(fmt.Sprint("u", random.IntN(r.scenario.Options.Users())))
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// look compares the counts of a user. A question that fails is of no concern here: servers are killed.
func (r *round) look(user string) {
	at := r.writer.newest.Load()
	q := blackbox.Question{At: at, Entities: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"user":%q}`, user))}}
	for _, pair := range workload.Lengthened {
		q.Features = append(q.Features, pair.Always, pair.Changing)
	}
	results, err := blackbox.Ask(r.api.URL(), q)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.res.Watched++
	r.mu.Unlock()
	for _, pair := range workload.Lengthened {
		always, changing := results[0][pair.Always], results[0][pair.Changing]
		if saysNothing(always) || saysNothing(changing) || r.had(plansBack) && isUnknown(&changing, at) {
			continue
		}
		least, errLeast := strconv.ParseInt(string(always.Value), 10, 64)
		has, errHas := strconv.ParseInt(string(changing.Value), 10, 64)
		if errLeast != nil || errHas != nil || has < least {
			r.failure(fmt.Sprintf("%s of %s at %d is %s, and %s is only %s", pair.Always, user, at, watched(&always), pair.Changing, watched(&changing)))
			r.mu.Lock()
			r.res.Differences++
			r.mu.Unlock()
		}
	}
}

// isUnknown reports whether an answer says that it knows nothing of the state: the plan that keeps it was lost before
// the API had read it, and is registered again within ten seconds.
func isUnknown(a *blackbox.Answer, at int64) bool {
	return a.CompleteSince != nil && *a.CompleteSince > at
}

// watched describes an answer.
func watched(a *blackbox.Answer) string {
	text := fmt.Sprintf("%s, %s", a.Value, a.Status)
	if a.CompleteSince != nil {
		text += fmt.Sprint(" since ", *a.CompleteSince)
	}
	return text
}

// saysNothing reports whether an answer says nothing of the state: it cannot be read, or no record is applied yet and the moment
// is long past by the clock.
func saysNothing(a blackbox.Answer) bool { return a.Status.Unread() || a.Status == query.OutsideMaxAge }
