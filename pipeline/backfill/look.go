package backfill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// restFor is how long a partition that cannot be filled now is left alone.
const restFor = 5 * time.Second

// look finds what is left of the partitions, and starts jobs for those without one. It reports whether enough is done.
func (r *runner) look(ctx context.Context) (enough bool) {
	if !r.awaitBatch() {
		return false
	}
	partitions := ofTopics(r.fill, r.work.Partitions())
	present := map[state.Partition]bool{}
	for _, p := range partitions {
		present[p] = true
	}
	for p, j := range r.jobs {
		if !present[p] {
			r.end(j)
		}
	}
	seal, err := r.cfg.Store.Seal(ctx)
	if err != nil {
		r.report.trouble(err)
		return false
	}
	r.seal, r.mapper.Seal = seal, seal
	fillings, err := r.fillings(ctx, partitions)
	var files Files
	if err == nil {
		files, err = r.files(ctx)
	}
	if err != nil {
		if !r.done { // else nothing waits for it
			r.report.trouble(err)
		}
		return false
	}
	progress := r.sum(partitions, fillings, files)
	r.done = progress.Done && len(partitions) > 0 && files.Applied == files.Rows
	if r.work.Until != nil && r.work.Until(r.fill, progress) {
		return true
	}
	var unbegun, idle []int
	for i, p := range partitions {
		switch {
		case r.jobs[p] != nil || time.Now().Before(r.rest[p]):
		case isUnbegun(fillings[i]):
			unbegun = append(unbegun, i)
		case len(stepsOf(fillings[i])) > 0:
			idle = append(idle, i)
		}
	}
	if len(unbegun) > 0 {
		if err := r.begin(ctx, pick(partitions, unbegun)); err != nil {
			r.report.trouble(err)
		}
		return false
	}
	if len(idle) > 0 {
		if err := r.resume(ctx, pick(partitions, idle), pick(fillings, idle)); err != nil {
			r.report.trouble(err)
		}
	}
	return false
}

// fillings reads the progress of the fill by partition and shard. If a fill with all of its columns has a partition,
// nothing is left for this one. If a partition does not know the fill, it may be that no plan with it has taken the partition
// yet, or that the fill is given up.
func (r *runner) fillings(ctx context.Context, partitions []state.Partition) ([][]state.Filling, error) {
	fillings, err := r.cfg.Store.Fillings(ctx, r.fill, partitions)
	if err != nil {
		return nil, err
	}
	for _, f := range r.before {
		others, err := r.cfg.Store.Fillings(ctx, f, partitions)
		if err != nil {
			return nil, err
		}
		for i := range others {
			for shard, other := range others[i] {
				if is := &fillings[i][shard]; !is.Known && other.Known && !other.Broken {
					*is = state.Filling{Known: true, Begun: true, At: state.NoPosition, Since: state.MinTime}
				}
			}
		}
	}
	unknown := func(of []state.Filling) bool {
		return slices.ContainsFunc(of, func(f state.Filling) bool { return !f.Known })
	}
	if !slices.ContainsFunc(fillings, unknown) {
		return fillings, nil
	}
	history, err := r.cfg.Store.History(ctx)
	if err != nil {
		return nil, err
	}
	givenUp := history.GivenUp(r.fill)
	for i := range fillings {
		if givenUp && unknown(fillings[i]) {
			for shard := range fillings[i] {
				fillings[i][shard] = state.Filling{Known: true, Broken: true, At: state.NoPosition, Since: state.MinTime}
			}
		}
	}
	return fillings, nil
}

func pick[T any](list []T, some []int) (picked []T) {
	for _, i := range some {
		picked = append(picked, list[i])
	}
	return picked
}

// isUnbegun reports whether some shard does not yet have the start of the filling.
func isUnbegun(fillings []state.Filling) bool {
	for i := range fillings {
		if f := &fillings[i]; f.Known && !f.Broken && !f.Begun {
			return true
		}
	}
	return false
}

// files reads how far the files of a fill over a cut are applied.
func (r *runner) files(ctx context.Context) (files Files, err error) {
	cut := r.fill.Cut
	if cut == nil {
		return files, nil
	}
	known, err := r.cfg.Store.Archives(ctx)
	if err != nil {
		return files, err
	}
	archives := state.ArchivesOf(*cut, known)
	for _, a := range archives {
		files.Count, files.Rows = files.Count+len(a.Files), files.Rows+a.Rows()
	}
	history, err := r.cfg.Store.History(ctx)
	if err != nil {
		return files, err
	}
	for i := range history.Fills {
		if e := &history.Fills[i]; e.Fill.ID == r.fill.ID && e.AllRows > 0 {
			files.Applied = share(e.FilledRows, e.AllRows, files.Rows)
		}
	}
	return files, nil
}

// share returns filled of all, as a part of rows. The rows of all shards times those of the files can have more than 64 bits.
func share(filled, all, rows int64) int64 {
	high, low := bits.Mul64(uint64(min(filled, all)), uint64(rows))
	part, _ := bits.Div64(high, low, uint64(all))
	return int64(part)
}

// sum adds up the progress of partitions, and reports it with that of files.
func (r *runner) sum(partitions []state.Partition, fillings [][]state.Filling, files Files) (p Progress) {
	left, broken, topics := map[string]int64{}, map[string]int{}, map[string]Progress{}
	p.Done = true
	for i, id := range partitions {
		var isBroken, isOpen bool
		var most int64 // the most of any shard, since shards are filled together
		var filled, all int64
		for shard := range fillings[i] {
			f := &fillings[i][shard]
			isBroken = isBroken || f.Broken
			isOpen = isOpen || !f.Done()
			done, of := f.Share()
			filled, all, most = filled+done, all+of, max(most, of-done)
		}
		filled, all = filled/int64(len(fillings[i])), all/int64(len(fillings[i]))
		p.Filled, p.All, p.Done = p.Filled+filled, p.All+all, p.Done && !isOpen
		if isBroken {
			broken[id.Topic]++
			p.Broken = append(p.Broken, id)
			r.reportBroken(id)
			continue
		}
		left[id.Topic] += most
		t, others := topics[id.Topic]
		topics[id.Topic] = Progress{Filled: t.Filled + filled, All: t.All + all, Done: !isOpen && (t.Done || !others)}
	}
	r.metrics.set(r.fill, left, broken)
	r.running.set(r.fill, r.features, topics, files, time.Now())
	r.report.progress(p)
	return p
}

// reportBroken logs once that a partition can never be complete.
func (r *runner) reportBroken(p state.Partition) {
	if !r.logged[p] {
		r.logged[p] = true
		r.log.Warn("the backfill of a partition is given up: other definitions fed some of its features meanwhile, or the log was truncated or is another; "+
			"what is still needed of it is filled again", "partition", p.String(), "features", r.report.features)
	}
}

// begin sets where the filling of partitions starts.
func (r *runner) begin(ctx context.Context, partitions []state.Partition) error {
	newest, err := newestRecord(ctx, r.cfg.Store)
	if err != nil {
		return err
	}
	logs, err := r.poller.Logs(ctx, partitions)
	if err != nil {
		return err
	}
	if err := r.trust(ctx, partitions, logs); err != nil {
		return err
	}
	var ends state.Ends
	if r.fill.Cut != nil {
		if ends, err = state.ParseEnds(r.fill.Cut.Ends); err != nil {
			return err
		}
	}
	var starts []state.FillStart
	for topic, reach := range r.reaches() {
		moment := matters(reach, newest)
		if len(ends) > 0 {
			moment = 0 // each record after the cut is needed
		}
		dated := r.poller.Since(ctx, partitions, logs, moment)
		before, since := len(starts), int64(state.MinTime)
		for i, p := range partitions {
			if p.Topic != topic {
				continue
			}
			if logs[i].Err != nil {
				r.leave(p, logs[i].Err)
				continue
			}
			s := state.FillStart{Fill: r.fill, Partition: p, Log: logs[i].ID.Tag()}
			s.From, s.Since = start(&logs[i], dated[i], moment, time.Now().UnixMilli())
			if end := ends[p.ID]; len(ends) > 0 && logs[i].Start <= end && !r.fill.Cut.OfOtherLog(s.Log) {
				s.From, s.Since = end, state.MinTime
			}
			starts = append(starts, s)
			since = max(since, s.Since)
			r.log.Debug("backfilling a partition", "partition", p.String(), "from", s.From, "complete_since", logged(s.Since))
		}
		if n := len(starts) - before; n > 0 {
			r.log.Info("backfilling", "features", r.report.features, "topic", topic, "partitions", n, "complete_since", logged(since))
		}
	}
	if len(starts) == 0 {
		return nil
	}
	return r.cfg.Store.StartFill(ctx, starts...)
}

// logged formats a moment for the log.
func logged(ms int64) slog.Value {
	if ms == state.MinTime {
		return slog.StringValue("ever")
	}
	return slog.TimeValue(time.UnixMilli(ms).UTC())
}

// reaches returns, by topic, how far back records are needed.
func (r *runner) reaches() map[string]features.FillReach {
	all := map[string]features.FillReach{}
	for topic := range r.fill.Columns {
		all[topic] = r.work.Registry.FillReach(r.fill, topic)
	}
	return all
}

// resume starts jobs for what is left of partitions.
func (r *runner) resume(ctx context.Context, partitions []state.Partition, fillings [][]state.Filling) error {
	logs, err := r.poller.Logs(ctx, partitions)
	if err != nil {
		return err
	}
	if err := r.trust(ctx, partitions, logs); err != nil {
		return err
	}
	streams, asked := r.work.Registry.Streams, make([]fetch.Before, len(partitions))
	for i, p := range partitions {
		asked[i] = fetch.Before{Offset: stepsOf(fillings[i])[0].from, Reach: record.Reach(streams, p.Topic), Most: record.MaxEarlier}
	}
	from := r.poller.Earlier(ctx, partitions, logs, asked)
	for i, p := range partitions {
		j := &job{
			Partition: p, steps: stepsOf(fillings[i]), log: logs[i].ID, tag: logs[i].ID.Tag(),
			earlier: record.NewEarlier(streams, p.Topic, r.seal.Secret()),
		}
		for shard := range fillings[i] {
			j.progress = append(j.progress, fillings[i][shard].At)
		}
		if err := logs[i].Err; err != nil {
			r.leave(p, err)
			continue
		}
		if err := r.sameLog(ctx, j); err != nil {
			r.leave(p, err)
			continue
		}
		j.next = j.steps[0].from
		r.jobs[p] = j
		r.poller.Resume(p.Topic, p.ID, fetch.Known{Offset: from[i], Epoch: -1, LeaderEpoch: logs[i].LeaderEpoch, Log: j.log})
	}
	return nil
}

// trust gives logs an error that are not those which live records are applied from, or of which brokers name an older
// leader than that was: live records stop or wait then, too, see package recovery. What such a leader has may have been
// replaced, and it may lack records.
func (r *runner) trust(ctx context.Context, partitions []state.Partition, logs []fetch.Log) error {
	applied, err := r.cfg.Store.Progress(ctx, partitions)
	if err != nil {
		return err
	}
	for i, p := range partitions {
		l := &logs[i]
		for _, at := range applied[i] {
			switch {
			case l.Err != nil || !at.Exists():
			case l.LeaderEpoch >= 0 && at.Epoch > l.LeaderEpoch:
				l.Err = fmt.Errorf("%v: the brokers name a leader of epoch %d, and it was applied under epoch %d", p, l.LeaderEpoch, at.Epoch)
			default:
				l.Err = r.contradicts(ctx, p, at, l.ID)
			}
		}
	}
	return nil
}

// sameLog returns an error if the topic is no longer the log that is being read.
func (r *runner) sameLog(ctx context.Context, j *job) error {
	for _, at := range j.progress {
		if err := r.contradicts(ctx, j.Partition, at, j.log); err != nil {
			return err
		}
	}
	return nil
}

// contradicts returns an error if a position of a partition is one of another log.
func (r *runner) contradicts(ctx context.Context, p state.Partition, at state.Position, is state.LogID) error {
	if at.Log == "" || at.Log == is.Tag() {
		return nil
	}
	was, err := r.cfg.Store.Log(ctx, at.Log)
	if err == nil && was.Contradicts(is) {
		err = &fetch.OtherLogError{Topic: p.Topic, Partition: p.ID, Was: was, Is: is}
	}
	return err
}

// leave leaves a partition alone for a while.
func (r *runner) leave(p state.Partition, err error) {
	r.rest[p] = time.Now().Add(restFor)
	r.report.trouble(err)
}

// reposition finds a new position for a partition after an error of the poller.
func (r *runner) reposition(ctx context.Context, err error) {
	position, is := errors.AsType[fetch.PositionError](err)
	if !is {
		r.report.trouble(err)
		retry.Wait(ctx, lookInterval)
		return
	}
	j := r.jobs[position.Of()]
	if j == nil {
		return
	}
	r.flush(ctx, true)
	if r.jobs[j.Partition] != j {
		return
	}
	out, isOut := errors.AsType[*fetch.OffsetOutOfRangeError](err)
	if !isOut || out.Offset >= out.LogStart {
		r.end(j)
		r.leave(j.Partition, err)
		return
	}
	if out.LogStart <= j.next { // what was removed was only to be remembered
		r.poller.Seek(j.Topic, j.ID, out.LogStart)
		return
	}
	// Retention was faster: the loss is recorded before the records are skipped.
	if err := r.raise(ctx, j, 0); err != nil {
		r.end(j)
		r.leave(j.Partition, err)
		return
	}
	r.log.Warn("records were removed from the log before they were backfilled", "partition", j.Partition.String(), "from", j.next, "to", out.LogStart-1)
	r.seek(ctx, j, out.LogStart)
}

// raise records that a partition is covered only since its first record and, if not 0, since after
// a record of a timestamp, in ms.
func (r *runner) raise(ctx context.Context, j *job, timestamp int64) error {
	if timestamp == 0 {
		logs, err := r.poller.Logs(ctx, []state.Partition{j.Partition})
		if err == nil {
			err = r.trust(ctx, []state.Partition{j.Partition}, logs)
		}
		if err == nil {
			err = logs[0].Err
		}
		if err != nil {
			return err
		}
		first := r.poller.Since(ctx, []state.Partition{j.Partition}, logs, 0)[0]
		if logs[0].Err != nil {
			return logs[0].Err
		}
		timestamp = first.Timestamp
		if first.Offset < 0 {
			timestamp = time.Now().UnixMilli()
		}
	}
	return r.cfg.Store.StartFill(ctx, state.FillStart{
		Fill: r.fill, Partition: j.Partition, From: j.next, Since: timestamp + 1, Log: j.tag,
	})
}

// seek continues at a later offset.
func (r *runner) seek(ctx context.Context, j *job, offset int64) {
	if r.reach(ctx, j, offset) {
		r.poller.Seek(j.Topic, j.ID, offset)
	}
}

// pass skips a batch that cannot be decoded, as live processing did.
func (r *runner) pass(ctx context.Context, j *job, e *fetch.CorruptError) {
	j.corrupt++
	switch {
	case e.FetchAgain(j.corrupt):
		r.poller.Seek(j.Topic, j.ID, e.Offset)
	case e.Offset < j.next: // it was only to be remembered
		to := j.next
		if e.EndOffset >= 0 {
			to = min(to, e.EndOffset)
		}
		r.poller.Seek(j.Topic, j.ID, to)
	case e.EndOffset < 0:
		r.end(j)
		r.leave(j.Partition, e)
	default:
		if err := r.raise(ctx, j, e.NewestIn(time.Now().UnixMilli())); err != nil {
			r.end(j)
			r.leave(j.Partition, err)
			return
		}
		r.log.Error("a batch cannot be decoded and is not backfilled", "partition", j.Partition.String(), "first", e.Offset, "end", e.EndOffset, "error", e.Reason)
		r.seek(ctx, j, e.EndOffset)
	}
}
