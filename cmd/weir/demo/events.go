package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/generate"
)

// eventsOf returns events of the topics that the definitions read.
func (o *demoOptions) eventsOf(r *features.Registry) (generate.Options, error) {
	options := generate.Demo()
	options.Users = demoUsers
	options.Clock = time.Now
	if !o.exit {
		options.Poison = demoPoison
	}
	transactions, logins := slices.Contains(r.Topics(), generate.Transactions), slices.Contains(r.Topics(), generate.Logins)
	switch {
	case !transactions && !logins:
		return options, fmt.Errorf("the definitions read the topics %s; the demo makes events of %s and %s only: name one of them, or use weir run",
			strings.Join(r.Topics(), ", "), generate.Transactions, generate.Logins)
	case !logins:
		options.Logins = 0
	case !transactions:
		options.Logins = 1
	}
	return options, nil
}

// past are the events that a demo begins with.
type past struct {
	events []generate.Event // not yet written
	count  int64            // of all
	frauds []generate.Story // that features of the definitions show
}

// newPast makes the events of the days before a moment, including the frauds that services of the
// definitions show.
func (o *demoOptions) newPast(r *features.Registry, made generate.Options, now time.Time) past {
	if o.days == 0 {
		return past{}
	}
	var p past
	for _, f := range generate.Stories(now) {
		if keys := keysOf(r, f.Service); keys != nil && !slices.ContainsFunc(keys, func(key string) bool { return f.Entity[key] == "" }) {
			maps.DeleteFunc(f.Entity, func(key, _ string) bool { return !slices.Contains(keys, key) }) // weir query refuses others
			p.frauds = append(p.frauds, f)
		}
	}
	made.Poison = 0
	topics := r.Topics()
	p.events = generate.Past(o.seed, made, now, time.Duration(o.days)*24*time.Hour, o.days*pastEvents, p.frauds)
	p.events = slices.DeleteFunc(p.events, func(e generate.Event) bool { return !slices.Contains(topics, e.Topic) })
	p.count = int64(len(p.events))
	return p
}

// keysOf returns the keys that the features of a service need; nil if there is no such service.
func keysOf(r *features.Registry, service string) (keys []string) {
	if s, ok := r.Service(service); ok {
		for _, f := range s.Features {
			keys = append(keys, f.By...)
		}
	}
	return keys
}

// publish writes the rows of tables, then the events of the past, then those of now.
func (d *running) publish(ctx context.Context) error {
	topics := features.TableTopics(d.node.Registry().Tables)
	rows := slices.DeleteFunc(generate.Rows(time.Now()), func(e generate.Event) bool { return !slices.Contains(topics, e.Topic) })
	if err := generate.ToKafka(d.writer)(ctx, rows); err != nil && ctx.Err() == nil {
		return err
	}
	for batch := range slices.Chunk(d.past.events, demoAhead/10) {
		if err := d.write(ctx, batch); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	d.past.events = nil
	d.made.Before = d.days * pastEvents
	return generate.Publish(ctx, generate.New(d.seed+1, d.made), d.events, d.rate, d.write)
}

// write writes events, never too far ahead of the processor.
func (d *running) write(ctx context.Context, events []generate.Event) error {
	for d.behind() > demoAhead && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
	if err := generate.ToKafka(d.writer)(ctx, events); err != nil {
		return err
	}
	d.sent.Add(int64(len(events)))
	d.sample.keep(events)
	return nil
}

// handled returns the number of events that the processor has finished.
func (d *running) handled() int64 {
	s := d.node.Stats()
	return s.Applied + s.Dead + s.Unmatched
}

// behind returns the number of events written and not yet handled.
func (d *running) behind() int64 { return d.sent.Load() - d.handled() }
