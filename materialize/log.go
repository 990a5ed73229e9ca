package materialize

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
)

// Log is a partition of a topic.
type Log interface {
	// Read passes all its records to take, in order and in the format of the topic. A record is valid until take
	// returns. If take returns a *record.MissingSchema, the schema is supplied and the record is passed again; other
	// errors end the reading.
	Read(ctx context.Context, take func(*record.Record) error) error
	Topic() string
	// From returns the first offset that counts. Records before it are only to be remembered, see record.Earlier.
	From() int64
	// Since returns the timestamp, in ms, since which Read has handed over all records that were ever written;
	// state.MinTime if it has handed over all.
	Since() int64
}

// readLog reads the events of a log. It skips records that would be set aside in production, and copies of others that
// were replayed.
func (t *timeline) readLog(ctx context.Context, input int) error {
	r, n := &reading{timeline: t, input: input, decoder: source.Decoder{Decoder: t.Registry.NewDecoder()}}, 0
	r.decoder.MaxRecordBytes = t.MaxRecordBytes
	log := t.Inputs[input].Log
	r.earlier = record.NewEarlier(t.Registry.Streams, log.Topic(), state.NewSecret())
	once := record.NewOnce(log.From(), t.Seal)
	err := log.Read(ctx, func(rec *record.Record) error {
		if n++; n%lookEvery == 0 {
			if err := t.take(ctx, r); err != nil {
				return err
			}
		}
		return r.record(rec, log.From(), once)
	})
	if err != nil {
		return err
	}
	return t.take(ctx, r)
}

// record reads the event of a log's record.
func (r *reading) record(rec *record.Record, from int64, once *record.Once) error {
	r.earlier.Pass(rec.Offset, rec.Timestamp)
	if rec.Offset < from || r.Until != 0 && rec.Timestamp >= r.Until {
		return r.remember(rec)
	}
	var events []record.Event
	repeats, err := once.Use(rec, func() (err error) {
		events, err = r.decoder.Decode(rec)
		return err
	})
	switch _, lacks := errors.AsType[*record.MissingSchema](err); {
	case lacks || repeats:
		return err
	case err != nil:
		return r.bad(&r.summary, &r.Inputs[r.input], int(rec.Offset), err)
	default:
		return r.addFirst(&source.Event{Line: int(rec.Offset), RecordTime: rec.Timestamp}, events)
	}
}

// remember remembers the events of a record of a log that does not count.
func (r *reading) remember(rec *record.Record) error {
	if r.earlier == nil {
		return nil
	}
	if c, _ := record.CopyOf(rec, r.Seal); c != nil {
		return nil
	}
	events, err := r.decoder.Decode(rec)
	if _, lacks := errors.AsType[*record.MissingSchema](err); lacks {
		return err
	}
	if err == nil {
		r.first(events)
	}
	return nil
}

// addFirst adds an event, as each stream reads it that did not have it in an earlier record.
func (r *reading) addFirst(e *source.Event, events []record.Event) error {
	if n := len(events); n > 0 {
		if events = r.first(events); len(events) == 0 {
			r.summary.Repeated++
			return nil
		}
	}
	return r.addEvent(e, events)
}

// first leaves out the events that repeat earlier ones. A record that cannot be used has none, and is found out later.
func (r *reading) first(events []record.Event) []record.Event {
	if r.earlier == nil || r.check(events) != nil {
		return events
	}
	return slices.DeleteFunc(events, func(e record.Event) bool { return r.earlier.Repeats(&e, false) })
}

// history returns which events the logs are known to lack; nil without a log.
func (r *Replay) history() *state.History {
	since := map[string]int64{}
	for i := range r.Inputs {
		log := r.Inputs[i].Log
		if log == nil {
			continue
		}
		from, known := since[log.Topic()]
		if !known {
			from = state.MinTime
		}
		since[log.Topic()] = max(from, log.Since())
	}
	if len(since) == 0 {
		return nil
	}
	const version = "replayed"
	h := &state.History{Plans: map[string]*state.Plan{version: r.Registry.Plan()}}
	for topic, from := range since {
		if from > state.MinTime {
			h.PlanEpochs = append(h.PlanEpochs, state.PlanEpoch{Topic: topic, Version: state.Gap, Last: from - 1})
		}
		h.PlanEpochs = append(h.PlanEpochs, state.PlanEpoch{Topic: topic, Version: version, Last: state.MaxTime})
	}
	return h
}
