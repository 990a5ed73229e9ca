// Package cost computes what definitions cost: what an event writes, what a question reads, how
// many bytes an entity takes in the store, and what a workload needs.
package cost

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
)

// Explanation is the cost of definitions: what every event writes, what every question reads, and
// what every entity takes in Redis.
type Explanation struct {
	Streams  []Stream  `json:"streams"`
	Entities []Entity  `json:"entities"`
	Series   []Series  `json:"series"`
	Features []Feature `json:"features"`
}

// Stream is the cost of one event of a stream.
type Stream struct {
	Name   string   `json:"name"`
	Topics []string `json:"topics"`
	// Entities is the number of entities that an event changes, Filters the number of filters and
	// conditions evaluated, and Mutations the number of mutations, if the event has all fields and
	// passes all filters.
	Entities  int `json:"entities"`
	Filters   int `json:"filters"`
	Mutations int `json:"mutations"`
	// RememberIDs is how long entities remember the ids of its events; empty if they do not.
	RememberIDs string      `json:"remember_ids,omitempty"`
	Dedup       *Dedup      `json:"dedup,omitempty"`  // nil if each of its records counts, whatever its ID
	Enrich      *Enrichment `json:"enrich,omitempty"` // nil if its events are not enriched
}

// Dedup is what it takes that a record does not count if an earlier one of its partition has its ID.
type Dedup struct {
	Within string `json:"within"` // how much older than the record the earlier one may be
	// EventBytes is what a processor has in memory of each event within that time at most, and PartitionBytes of all
	// events of a partition.
	EventBytes     int64 `json:"event_bytes"`
	PartitionBytes int64 `json:"partition_bytes"`
}

// Enrichment states the topic, the format and the service with which the events of a stream are enriched.
type Enrichment struct {
	Service string `json:"service"`
	Topic   string `json:"topic"`
	Format  string `json:"format"` // json or avro
}

// Entity is the cost of one entity in Redis: of all series over the same fields.
type Entity struct {
	By     []string `json:"by"`
	Series []string `json:"series"`
	// BytesOnce is the estimate for an entity with one event, BytesFull for one with events in
	// every tile that is kept, with one value for each tile where values are kept (or as many as
	// the series' max).
	//
	//	bytes = 150 for each key, 16 for an entity of several values while it is embedded
	//	      + 8 for each series
	//	      + 5 for each tile, 18 where it holds moments, 14 where it holds a value
	//	      + 14 for each member, 16 for each value last seen
	//	      + 14 for each value or category by which a series is kept apart
	//	      + 25 for each event of a log, 10 for each id, up to the series' max
	//	      + 12288 for each full HyperLogLog, 6 for one of a single value
	//	      + 12 for a filter of a single value; for a full one, of max values in
	//	        each tile, those of a Bloom filter
	//
	// as measured on Redis 7.0 with keys of some 25 characters, members and
	// numbers of some 7.
	BytesOnce int64 `json:"bytes_once"`
	BytesFull int64 `json:"bytes_full"`
}

// Series is one series of state.
type Series struct {
	ID      string   `json:"id"`
	Group   string   `json:"group"` // its series share one key for each entity
	Stream  string   `json:"stream"`
	By      []string `json:"by"`
	Measure string   `json:"measure"`
	Field   string   `json:"field,omitempty"`
	Per     string   `json:"per,omitempty"` // the field by whose values it is split
	Where   string   `json:"where,omitempty"`
	// Condition is required in addition to Where.
	Condition string `json:"condition,omitempty"`
	State     string `json:"state"`
	Tile      string `json:"tile"` // "exact" for none, "lifetime" for one tile forever
	Keep      string `json:"keep"`
	Max       int    `json:"max,omitempty"`
	// Columns are what the records of a log hold of each event: fields, which take 3 bytes and the value, and filters and
	// conditions, which take 3 bytes if they are true.
	Columns  []string `json:"columns,omitempty"`
	Limit    string   `json:"-"`                   // Max, in words
	Values   int      `json:"values,omitempty"`    // that are kept of a tile of a set
	MaxBytes int      `json:"max_bytes,omitempty"` // that the state of an entity may take
	Features []string `json:"features"`            // that share it; none of ids
}

// Feature is the cost of one question for a feature.
type Feature struct {
	Name          string   `json:"name"`
	Description   string   `json:"description,omitempty"`
	Owner         string   `json:"owner,omitempty"`
	Definition    string   `json:"definition"`
	Meaning       string   `json:"meaning,omitempty"` // see features.Feature.Meaning
	Parts         []string `json:"parts,omitempty"`   // of a derived feature
	Event         string   `json:"event,omitempty"`   // the stream whose event in hand it reads, which costs nothing in the store
	State         []string `json:"state"`
	Series        []string `json:"series"`
	Keys          int      `json:"keys"`              // that a question reads at most, over all entities
	FanOut        int      `json:"fan_out,omitempty"` // how many further entities it may read
	RoundTrips    int      `json:"round_trips"`
	Exact         bool     `json:"exact"`
	StandardError float64  `json:"standard_error,omitempty"`
	RelativeError float64  `json:"relative_error,omitempty"`
	// FalsePositiveRate is the rate that fp allows; for a feature with parts, the greatest of
	// theirs.
	FalsePositiveRate float64 `json:"false_positive_rate,omitempty"`
}

// Estimates of Redis memory in bytes, in addition to what the layouts take (state.Series.Cost); see
// Entity.
const (
	bytesKey    = 150
	bytesChild  = 16 // an entity that is embedded in the key of its parent
	bytesSeries = 8
)

// Explain computes the cost of definitions.
func Explain(r *features.Registry) *Explanation {
	p := &Explanation{}
	for _, s := range r.Streams {
		p.Streams = append(p.Streams, explainStream(r, s))
	}
	users := map[*state.Series][]string{}
	for _, f := range r.Features {
		p.Features = append(p.Features, explainFeature(f))
		for _, s := range f.Series {
			if !slices.Contains(users[s], f.Name) {
				users[s] = append(users[s], f.Name)
			}
		}
	}
	entities := map[string][]*state.Series{}
	for _, s := range r.Series {
		entities[strings.Join(s.By, "|")] = append(entities[strings.Join(s.By, "|")], s)
	}
	for _, key := range slices.Sorted(maps.Keys(entities)) {
		e := explainEntity(entities[key])
		p.Entities = append(p.Entities, e)
		for _, s := range entities[key] {
			one := explainSeries(s, users[s])
			for _, c := range r.LogColumns(s) {
				one.Columns = append(one.Columns, c.Name)
			}
			p.Series = append(p.Series, one)
		}
	}
	return p
}

func explainStream(r *features.Registry, s *record.Stream) Stream {
	w := r.Work(s)
	p := Stream{Name: s.Name, Topics: s.Topics(), Entities: w.Entities, Filters: w.Filters, Mutations: w.Mutations, Enrich: EnrichmentOf(r, s)}
	if s.RememberIDs > 0 {
		p.RememberIDs = window.FormatDuration(s.RememberIDs)
	}
	if s.Dedup > 0 {
		p.Dedup = &Dedup{Within: window.FormatDuration(s.Dedup), EventBytes: 2 * record.EarlierBytes, PartitionBytes: record.EarlierBytes * record.MaxEarlier}
	}
	return p
}

// EnrichmentOf returns how the events of a stream are enriched, nil if they are not.
func EnrichmentOf(r *features.Registry, s *record.Stream) *Enrichment {
	e := r.Enrichment(s)
	if e == nil {
		return nil
	}
	return &Enrichment{Service: e.Service.Name, Topic: e.Topic, Format: e.Format()}
}

func explainSeries(s *state.Series, users []string) Series {
	p := Series{
		ID: s.ID, Group: s.Group, Stream: s.Stream, By: s.By, Measure: s.Measure.String(), Field: s.Field, Where: s.Where,
		Per: s.Per, Condition: s.Condition, State: s.Layout().String(), Tile: window.FormatMilliseconds(s.Tile),
		Keep: window.FormatMilliseconds(s.Keep), Max: s.Max, Limit: s.Limit(), Values: s.Values, MaxBytes: s.Bytes, Features: append([]string{}, users...),
	}
	if s.Layout().Exact() {
		p.Tile = "exact"
	}
	if s.Tile == 0 {
		p.Tile = "lifetime"
	}
	if s.Keep == 0 {
		p.Keep = "forever"
	}
	return p
}

func explainFeature(f *features.Feature) Feature {
	p := Feature{
		Name: f.Name, Description: f.Description, Owner: f.Owner, Definition: f.Definition, Meaning: f.Meaning(),
		FanOut:     f.FanOut(),
		RoundTrips: 1, // all keys in one pipeline
		Exact:      true,
	}
	if p.FanOut > 0 {
		p.RoundTrips = 2 // the sets first
	}
	for _, s := range f.Series {
		if !slices.Contains(p.Series, s.ID) {
			p.Series = append(p.Series, s.ID)
		}
		if state := s.Layout().String(); !slices.Contains(p.State, state) {
			p.State = append(p.State, state)
		}
	}
	keys := map[string]int{}
	explainReads(f, &p, keys, "", 1)
	for _, n := range keys {
		p.Keys += n
	}
	if of, ok := f.Basis.(*features.Derived); ok {
		for _, part := range of.Of {
			p.Parts = append(p.Parts, part.Name)
		}
	}
	if f.InHand != nil {
		p.Event = f.InHand.Name
	}
	return p
}

// explainReads adds the reads of the feature, its parts or its hops for a number of entities. keys counts Redis keys by
// their group and the entity's name.
func explainReads(f *features.Feature, p *Feature, keys map[string]int, of string, entities int) {
	switch basis := f.Basis.(type) {
	case *features.Derived:
		for _, part := range basis.Of {
			explainReads(part, p, keys, of, entities)
		}
		return
	case *features.MultiHop:
		explainReads(basis.Set, p, keys, of, entities)
		explainReads(basis.Each, p, keys, "through "+basis.Set.Definition+" ", basis.Max)
		return
	case *features.OfTable: // in the memory of the process
		return
	}
	spec := f.Spec
	p.StandardError = max(p.StandardError, spec.StandardError)
	if f.Call.Error > 0 && !f.Window.Exact {
		p.RelativeError = max(p.RelativeError, f.Call.Error)
	}
	if f.Series[0].Measure.Layout().Rated() {
		p.FalsePositiveRate = max(p.FalsePositiveRate, f.Call.P)
	}
	p.Exact = p.Exact && spec.Exact && p.RelativeError == 0 && p.FalsePositiveRate == 0
	for _, s := range f.Series {
		keys[of+s.Group] = max(keys[of+s.Group], entities)
	}
}

// bytesOf estimates the bytes that the group of a series takes of an entity beside its state, while the state is short.
func bytesOf(s *state.Series) int64 {
	if s.Parent != "" {
		return bytesChild
	}
	return bytesKey
}

// explainEntity estimates the memory of one entity's series.
func explainEntity(series []*state.Series) Entity {
	p := Entity{By: series[0].By}
	groups := map[string]bool{}
	for _, s := range series {
		p.Series = append(p.Series, s.ID)
		if !groups[s.Group] {
			groups[s.Group] = true
			p.BytesOnce += bytesOf(s)
			p.BytesFull += bytesKey
		}
		once, full := OfSeries(s)
		p.BytesOnce += once
		p.BytesFull += full
	}
	return p
}

// OfSeries estimates the bytes that a series takes of an entity, with one event and when full, besides
// the entity's key; see Entity.
func OfSeries(s *state.Series) (once, full int64) {
	once, full = s.Cost(int64(s.Tiles))
	if s.Bytes > 0 {
		full = min(full, int64(s.Bytes))
	}
	return bytesSeries + once, bytesSeries + full
}
