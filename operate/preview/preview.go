// Package preview shows what definitions answer on the records of the last minutes. It writes nothing.
package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

// Config configures a preview. All fields are required, except that features that look up no rows need no tables.
type Config struct {
	Registry *features.Registry
	Features []*features.Feature
	Logs     []Log        // the partitions of all Topics
	Tables   query.Tables // of which features look up rows
	// Since is the moment from which the logs are read, and Now the moment of the questions, in ms.
	Since, Now int64
	// MaxRecords bounds the number of records read: the newest ones, but at least one of each log. Their events are
	// held in memory.
	MaxRecords int64
	// MaxBytes bounds the keys and values of the records together; 0 is no bound. Run returns
	// ErrTooLarge beyond it.
	MaxBytes int
	// MaxRecordBytes is the size of a record's value above which it is poison, as for live events.
	MaxRecordBytes int
	Examples       int // entities that are shown for each feature
}

// Log is a partition of a topic.
type Log interface {
	Name() string
	Topic() string
	// Progress returns the number of offsets read, and of all offsets to read.
	Progress() (read, all int64)
	// Newest limits the log to its newest offsets.
	Newest(offsets int64)
	// Since returns the timestamp, in ms, since which Read has handed over all records that were ever written;
	// state.MaxTime if Newest left none.
	Since() int64
	// Read passes the records to take. If take returns a *record.MissingSchema, the schema is supplied and the record
	// is passed again; other errors end the reading.
	Read(ctx context.Context, take func(*record.Record) error) error
}

// maxAsked bounds how many entities are asked about each feature.
const maxAsked = 10_000

// preview is one run.
type preview struct {
	Config
	report      Report
	taken       []taken
	earlier     *record.Earlier // of the log that is read
	newest      int64           // the greatest timestamp of that log so far, in ms
	mapper      *features.Mapper
	secret      state.Secret
	state       *memory.Store
	populations []*population
	uses        []*use // of each feature; nil for one with parts
	bytes       int    // of the records read
	text        []byte
}

// taken is a record that was read, as the streams see it.
type taken struct {
	log       int
	events    []record.Event
	offset    int64
	timestamp int64 // ms
	newest    int64 // the greatest timestamp of the log up to this record, which keeps the order of the log
}

// population holds the entities of the same keys in events of the same streams.
type population struct {
	by      []string
	streams map[*record.Stream]bool
	seen    map[string]sightings // by entity
}

// sightings are the records in which an entity was seen. Each counts once, however many streams, and events of it, have the entity.
type sightings struct{ records, last int }

// ErrTooLarge is returned if the records together exceed MaxBytes.
var ErrTooLarge = errors.New("the records are larger together than a preview may read")

// Run reads the logs and asks the features about the entities of their events. The error is that of
// a log or of the context, or ErrTooLarge.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	secret := state.NewSecret()
	p := &preview{Config: cfg, mapper: cfg.Registry.NewMapper(), secret: secret, state: memory.NewKeyed(secret)}
	p.mapper.MaxRecordBytes = cfg.MaxRecordBytes
	p.report.Since, p.report.At = cfg.Since, cfg.Now
	for _, f := range cfg.Features {
		p.populationOf(f)
		p.uses = append(p.uses, newUse(f))
	}
	if err := p.read(ctx); err != nil {
		return nil, err
	}
	if err := p.apply(ctx); err != nil {
		return nil, err
	}
	return &p.report, p.ask(ctx)
}

// Topics returns the topics that a preview of features reads, sorted: those of the events that they need, and those of the events in
// which their entities are seen.
func Topics(r *features.Registry, list []*features.Feature) []string {
	topics := features.TopicsOf(list)
	for _, f := range list {
		for s := range seenIn(r, f) {
			topics = append(topics, s.Topics()...)
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// seenIn returns the streams in whose events the entities of a feature are seen: those whose events change its answers and, if none
// of these has all keys, as where one is the key of a table, all that have them.
func seenIn(r *features.Registry, f *features.Feature) map[*record.Stream]bool {
	streams := map[*record.Stream]bool{}
	feeding(f, streams)
	for s := range streams {
		if hasKeys(s, f) {
			return streams
		}
	}
	for _, s := range r.Streams {
		if hasKeys(s, f) {
			streams[s] = true
		}
	}
	return streams
}

// hasKeys reports whether events of a stream have all keys of a feature.
func hasKeys(s *record.Stream, f *features.Feature) bool {
	for i, key := range f.By {
		if at := s.FieldIndex(key); at < 0 || s.Fields[at].Type != f.ByTypes[i] {
			return false
		}
	}
	return true
}

func (p *preview) populationOf(f *features.Feature) *population {
	streams := seenIn(p.Registry, f)
	at := slices.IndexFunc(p.populations, func(pop *population) bool { return slices.Equal(pop.by, f.By) && maps.Equal(pop.streams, streams) })
	if at < 0 {
		at = len(p.populations)
		p.populations = append(p.populations, &population{by: f.By, streams: streams, seen: map[string]sightings{}})
	}
	return p.populations[at]
}

// feeding collects the streams whose events change a feature's answers about their entities.
func feeding(f *features.Feature, streams map[*record.Stream]bool) {
	switch basis := f.Basis.(type) {
	case *features.MultiHop:
		feeding(basis.Set, streams)
	case *features.Derived:
		for _, part := range basis.Of {
			feeding(part, streams)
		}
	case *features.OfTable:
	default:
		streams[f.Stream] = true
	}
}

// read reads the logs.
func (p *preview) read(ctx context.Context) error {
	var all int64
	for _, l := range p.Logs {
		_, n := l.Progress()
		all += n
	}
	p.report.Cut = all > p.MaxRecords
	for i, l := range p.Logs {
		_, n := l.Progress()
		if n == 0 {
			continue // the age of the records that retention may have removed is unknown
		}
		most := n
		if p.report.Cut {
			most = p.share(n, all)
		}
		if most < n {
			l.Newest(most)
		}
		p.earlier, p.newest = record.NewEarlier(p.Registry.Streams, l.Topic(), p.secret), state.MinTime
		if err := l.Read(ctx, func(r *record.Record) error { return p.take(i, r) }); err != nil {
			return err
		}
		since := min(l.Since(), p.Now)
		p.report.Since = max(p.report.Since, since)
		p.report.Gone = p.report.Gone || most == n && since > p.Since
	}
	return nil
}

// share returns how many of a log's offsets are read if all logs together have too many. Most of the allowed number is
// divided in proportion, so that all logs reach back about equally far. The rest is divided equally, so that a quiet
// topic is read beside a busy one.
func (p *preview) share(n, all int64) int64 {
	alike := p.MaxRecords / 10
	return min(n, max(1, alike/int64(len(p.Logs))+n*(p.MaxRecords-alike)/all))
}

// take takes a record of a log.
func (p *preview) take(log int, r *record.Record) error {
	p.earlier.Pass(r.Offset, r.Timestamp)
	p.newest = max(p.newest, r.Timestamp)
	events, err := p.mapper.Decode(r)
	if _, lacks := errors.AsType[*record.MissingSchema](err); lacks {
		return err
	}
	if p.bytes += len(r.Key) + len(r.Value); p.MaxBytes > 0 && p.bytes > p.MaxBytes {
		return ErrTooLarge
	}
	p.report.Records++
	switch {
	case err != nil:
		return p.setAside(log, r.Offset, err)
	case len(events) == 0:
		p.report.Unmatched++
	case p.repeats(&events):
		p.report.Repeated++
	default:
		t := taken{log: log, offset: r.Offset, timestamp: r.Timestamp, newest: p.newest}
		for i := range events {
			t.events = append(t.events, *events[i].Clone())
		}
		p.taken = append(p.taken, t)
	}
	return nil
}

// repeats leaves out the events that repeat those of earlier records, and reports whether none is left. A record that cannot
// be used has no events, and is found out later.
func (p *preview) repeats(events *[]record.Event) bool {
	if p.earlier == nil || p.mapper.Check(*events) != nil {
		return false
	}
	*events = slices.DeleteFunc(*events, func(e record.Event) bool { return p.earlier.Repeats(&e, false) })
	return len(*events) == 0
}

// maxLocated is how many locations are listed of the records set aside for one reason.
const maxLocated = 3

// setAside counts a record that cannot be used. It returns any other error.
func (p *preview) setAside(log int, offset int64, err error) error {
	poison, ok := errors.AsType[*record.Poison](err)
	if !ok {
		return err
	}
	at := slices.IndexFunc(p.report.SetAside, func(s SetAside) bool { return s.Reason == string(poison.Reason) })
	if at < 0 {
		at = len(p.report.SetAside)
		p.report.SetAside = append(p.report.SetAside, SetAside{Reason: string(poison.Reason)})
	}
	aside := &p.report.SetAside[at]
	if aside.Records++; aside.Records <= maxLocated {
		aside.First = append(aside.First, fmt.Sprintf("%s at offset %d: %v", p.Logs[log].Name(), offset, err))
	}
	return nil
}

// apply applies the records in the order of their times, those of a log in its order.
func (p *preview) apply(ctx context.Context) error {
	slices.SortStableFunc(p.taken, func(a, b taken) int { return cmp.Compare(a.newest, b.newest) })
	var batch state.Batch
	for i := range p.taken {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t := &p.taken[i]
		batch.Reset()
		outcome, err := p.mapper.MapEvents(t.events, int64(i), t.timestamp, 0, &batch)
		if err != nil {
			if err := p.setAside(t.log, t.offset, err); err != nil {
				return err
			}
			continue
		}
		p.report.Events++
		if outcome.Late {
			p.report.Late++
		}
		if err := p.state.Apply(ctx, &batch); err != nil {
			return err
		}
		p.note(t.events)
	}
	return nil
}

// note records the entities of the events of a record, and what the features leave out.
func (p *preview) note(events []record.Event) {
	for _, u := range p.uses {
		for i := range events {
			u.add(&events[i])
		}
	}
	for _, pop := range p.populations {
		for i := range events {
			e := &events[i]
			if !pop.streams[e.Stream] {
				continue
			}
			var ok bool
			if p.text, ok = e.Entity(p.text[:0], pop.by); !ok {
				continue
			}
			if s := pop.seen[string(p.text)]; s.last != p.report.Events {
				pop.seen[string(p.text)] = sightings{s.records + 1, p.report.Events}
			}
		}
	}
}

// ask asks all features.
func (p *preview) ask(ctx context.Context) error {
	var reading query.Reading
	reading.SetTables(p.Tables)
	costs := cost.Explain(p.Registry)
	topics := features.TopicsOf(p.Features)
	for _, s := range costs.Streams {
		if slices.ContainsFunc(s.Topics, func(topic string) bool { return slices.Contains(topics, topic) }) {
			p.report.Streams = append(p.report.Streams, s)
		}
	}
	for i, f := range p.Features {
		pop := p.populationOf(f)
		from, _ := query.Covers(f, p.Now, p.Now)
		shown := newFeature(costs, f, len(pop.seen), from, p.report.Since)
		if u := p.uses[i]; u != nil {
			shown.Used = &u.counts
		}
		if shown.Note = p.unasked(f, pop); shown.Note != "" {
			p.report.Features = append(p.report.Features, *shown)
			continue
		}
		asked := pop.sample(p.Examples, p.secret)
		for start := 0; start < len(asked); start += chunk {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			some := asked[start:min(start+chunk, len(asked))]
			reading.Reset(p.Now)
			for _, entity := range some {
				reading.Want(f, entity, p.Now)
			}
			if err := reading.Read(ctx, p.state); err != nil {
				return err
			}
			for i, entity := range some {
				var a query.Answer
				reading.Next(&a)
				shown.add(&a)
				if start+i < p.Examples {
					shown.Examples = append(shown.Examples, Example{Entity: state.NameEntity(f.By, entity, " "), Events: pop.seen[entity].records, Answer: a.AppendJSON(nil)})
				}
			}
		}
		shown.summarize()
		p.report.Features = append(p.report.Features, *shown)
	}
	return nil
}

// unasked says why a feature cannot be asked; empty if it can be.
func (p *preview) unasked(f *features.Feature, pop *population) string {
	if f.Membership() == aggregate.MembersRequired {
		return "it is asked about members: ask it of a server, or in a test"
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(pop.streams)), func(s *record.Stream) bool { return hasKeys(s, f) }) {
		return "no stream has a field for each of its keys, " + strings.Join(f.By, " and ") + ": ask it of a server, or in a test"
	}
	for _, t := range f.Tables() {
		if _, err := p.Tables.Find(t, "", p.Now); err != nil {
			return err.Error()
		}
	}
	return ""
}

// chunk is how many entities one reading asks about.
const chunk = 256

// sample returns the entities to ask about: first those with the most events, as many as there are examples, and then
// the others, in an order that only a secret decides.
func (pop *population) sample(examples int, secret state.Secret) []string {
	var all []string
	for entity := range pop.seen {
		all = append(all, entity)
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(pop.seen[b].records, pop.seen[a].records), cmp.Compare(a, b))
	})
	if len(all) <= maxAsked {
		return all
	}
	rest := all[min(examples, maxAsked):]
	slices.SortFunc(rest, func(a, b string) int {
		return cmp.Or(cmp.Compare(secret.HashString(a), secret.HashString(b)), cmp.Compare(a, b))
	})
	return all[:maxAsked]
}
