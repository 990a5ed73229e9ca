package serve

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
)

// wait is an event that a question waits for: a record that a producer has written and that the answer must include.
type wait struct {
	partition state.Partition
	offset    int64
	version   string // of the plan that processors should apply to it
	timeout   time.Duration
}

const (
	// defaultWait is how long a question waits by default.
	defaultWait = 100 * time.Millisecond
	// firstPoll and longestPoll bound the time between two reads of the progress.
	firstPoll, longestPoll = time.Millisecond, 16 * time.Millisecond
)

var waitKeys = []string{"topic", "partition", "offset", "timeout_ms"}

// readWaitFor reads the key wait_for.
func (q *asked) readWaitFor(v *fastjson.Value) error {
	const whole = "a whole number from 0 on"
	object, err := v.Object()
	if err != nil {
		return reply.Wrong("wait_for", "an object with topic, partition and offset", v)
	}
	var parts [4]*fastjson.Value
	if e := reply.Fields(object, "wait_for", waitKeys, parts[:]); e != nil {
		return e
	}
	for i, key := range waitKeys[:3] {
		if parts[i] == nil {
			return reply.Errorf(reply.MissingKey, `wait_for has no %s; write it like {"topic": "transactions", "partition": 3, "offset": 1234}`, key).At(key)
		}
	}
	topic, err := parts[0].StringBytes()
	if err != nil {
		return reply.Wrong("wait_for.topic", "a name", parts[0])
	}
	if !slices.Contains(q.view.registry.Topics(), string(topic)) {
		return q.view.unknownTopic(string(topic)).At("topic")
	}
	number := func(i int, most int64) (n int64) {
		if v := parts[i]; v != nil && err == nil {
			var ok bool
			if n, ok = parseDecimal(v.MarshalTo(nil), 0); !ok || n < 0 || n > most {
				err = reply.Wrong("wait_for."+waitKeys[i], whole, v)
			}
		}
		return n
	}
	q.wait = &wait{timeout: defaultWait, version: q.view.version}
	q.wait.partition = state.Partition{Topic: string(topic), ID: int32(number(1, math.MaxInt32))}
	q.wait.offset = number(2, math.MaxInt64)
	if parts[3] != nil {
		q.wait.timeout = time.Duration(number(3, math.MaxInt32)) * time.Millisecond
	}
	return err
}

// waitForEvent waits until the event of the question, if any, is applied to all state that the question reads, within
// its time. It precedes all other reads, because the event may be the first one, which sets the namespace's clock. The
// error is the store's.
func (h *handler) waitForEvent(ctx context.Context, q *asked, f *found) error {
	if q.wait == nil {
		return nil
	}
	f.addReads(q)
	ctx, span := h.tracing.wait(ctx)
	applied, looks, err := h.pollApplied(ctx, q, f.reading.Reads())
	waited(span, applied, looks, err)
	if err != nil {
		return &storeError{err}
	}
	f.applied, f.appliedAt = applied, h.Now()
	f.waited = strconv.AppendBool(append(f.waited, `,"waited":{"applied":`...), applied)
	if !applied && h.untouched(ctx, q.wait.partition) {
		f.waited = append(f.waited, `,"nothing_applied":true`...)
	}
	f.waited = append(f.waited, '}')
	return nil
}

// untouched reports whether no record of a partition was ever applied in any shard; false if that is unknown. An API does
// not ask Kafka which partitions there are.
func (h *handler) untouched(ctx context.Context, p state.Partition) bool {
	positions, err := h.Reader.Progress(ctx, []state.Partition{p})
	return err == nil && !slices.ContainsFunc(positions[0], state.Position.Exists)
}

// pollApplied waits until the event is applied, or the time to wait is over.
func (h *handler) pollApplied(ctx context.Context, q *asked, reads []state.Read) (applied bool, looks int, err error) {
	if slices.ContainsFunc(q.features, func(p *preparedFeature) bool { return p.fanOut > 0 }) {
		reads = nil // the reads of the second round trip are not known yet
	}
	// The rest of the time is for the answer.
	waiting, cancel := context.WithTimeout(ctx, min(q.wait.timeout, h.Limits.Timeout/2))
	defer cancel()
	for pause := firstPoll; ; pause = min(2*pause, longestPoll) {
		looks++
		// This has the whole question's time, so that it looks once even without waiting.
		applied, err = h.Reader.Applied(ctx, q.wait.partition.WithPlan(q.wait.version), q.wait.offset, reads)
		if err != nil || applied || !sleep(waiting, pause) {
			return applied, looks, err
		}
	}
}

// sleep waits, and returns false if the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
