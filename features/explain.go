package features

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features/kinds"
)

// Plan says what definitions cost: what every event writes, what every
// question reads and what every entity takes in Redis.
type Plan struct {
	Streams  []StreamPlan  `json:"streams"`
	Entities []EntityPlan  `json:"entities"`
	Series   []SeriesPlan  `json:"series"`
	Features []FeaturePlan `json:"features"`
}

// StreamPlan is what one event of a stream does.
type StreamPlan struct {
	Name  string `json:"name"`
	Topic string `json:"topic"`
	// Entities is the number of entities that an event touches, Filters the
	// number of filters and conditions evaluated and Operations that of operations on state,
	// if the event has all fields and passes all filters.
	Entities   int `json:"entities"`
	Filters    int `json:"filters"`
	Operations int `json:"operations"`
}

// EntityPlan is what Redis holds of one entity: all series over the same
// fields.
type EntityPlan struct {
	By     []string `json:"by"`
	Series []string `json:"series"`
	// BytesOnce is the estimate for an entity of which there is one event,
	// BytesFull that for one met in every tile that is kept, with one value for
	// each tile where values are kept (or as many as the series' max).
	//
	//	bytes = 165 for each key
	//	      + 16 for each tile or member of a hash up to 512 of them, 64 in greater ones
	//	      + 20 for each member of a sorted set up to 128 of them, 113 in greater ones
	//	      + 25 for each event of a log, up to the series' max
	//	      + 14336 for each full HyperLogLog, 30 for one of a single value
	//
	// as measured on Redis 7.0 with keys of some 25 characters, members and
	// numbers of some 7.
	BytesOnce int64 `json:"bytes_once"`
	BytesFull int64 `json:"bytes_full"`
}

// SeriesPlan is one state series.
type SeriesPlan struct {
	ID       string   `json:"id"`
	Group    string   `json:"group,omitempty"` // of tiles: the hash that they share
	Stream   string   `json:"stream"`
	By       []string `json:"by"`
	Measure  string   `json:"measure"`
	Field    string   `json:"field,omitempty"`
	Where    string   `json:"where,omitempty"`
	State    string   `json:"state"`
	Tile     string   `json:"tile"` // "exact" for none, "lifetime" for one tile for ever
	Keep     string   `json:"keep"`
	Max      int      `json:"max,omitempty"`
	Features []string `json:"features"` // that share it
}

// FeaturePlan is what one question for a feature costs.
type FeaturePlan struct {
	Name          string   `json:"name"`
	Description   string   `json:"description,omitempty"`
	Owner         string   `json:"owner,omitempty"`
	Definition    string   `json:"definition"`
	Parts         []string `json:"parts,omitempty"` // of a derived feature
	State         []string `json:"state"`
	Series        []string `json:"series"`
	Keys          int64    `json:"keys"` // that a question reads
	RoundTrips    int      `json:"round_trips"`
	Exact         bool     `json:"exact"`
	StandardError float64  `json:"standard_error,omitempty"`
}

// Estimates of Redis memory in bytes; see EntityPlan.
const (
	bytesKey        = 165
	bytesField      = 16
	bytesFieldWide  = 64
	bytesScore      = 20
	bytesScoreWide  = 113
	bytesRecord     = 25
	bytesSketchOne  = 30
	bytesSketchFull = 14336

	// Up to as many entries Redis keeps the compact form, by default.
	compactHash      = 512
	compactSortedSet = 128
)

var stateNames = [...]string{
	kinds.Tiles: "tiles", kinds.Members: "members", kinds.Sketches: "sketches", kinds.LastSeen: "last seen",
	kinds.Logs: "log",
}

// Explain works out the plan.
func (r *Registry) Explain() *Plan {
	p := &Plan{}
	for _, s := range r.Streams {
		p.Streams = append(p.Streams, s.explain())
	}
	users := map[*kinds.Series][]string{}
	for _, f := range r.Features {
		p.Features = append(p.Features, f.explain())
		for _, s := range f.Series {
			if !slices.Contains(users[s], f.Name) {
				users[s] = append(users[s], f.Name)
			}
		}
	}
	entities := map[string][]*kinds.Series{}
	for _, s := range r.Series {
		entities[strings.Join(s.By, "|")] = append(entities[strings.Join(s.By, "|")], s)
	}
	for _, key := range slices.Sorted(maps.Keys(entities)) {
		e := r.explainEntity(entities[key])
		p.Entities = append(p.Entities, e)
		for _, s := range entities[key] {
			p.Series = append(p.Series, explainSeries(s, users[s]))
		}
	}
	return p
}

func (s *Stream) explain() StreamPlan {
	p := StreamPlan{Name: s.Name, Topic: s.Topic, Entities: len(s.writes)}
	filters := map[*Expr]bool{}
	for _, e := range s.writes {
		p.Operations += len(e.series)
		for _, w := range e.series {
			if w.where != nil {
				filters[w.where] = true
			}
		}
		if e.log == nil {
			continue
		}
		p.Operations++
		for _, c := range e.log.columns {
			if c.where != nil {
				filters[c.where] = true
			}
		}
	}
	p.Filters = len(filters)
	return p
}

func explainSeries(s *kinds.Series, users []string) SeriesPlan {
	p := SeriesPlan{
		ID: s.ID, Stream: s.Stream, By: s.By, Measure: s.Measure.String(), Field: s.Field, Where: s.Where,
		State: stateNames[s.Measure.State()], Tile: formatDuration(milliseconds(s.Tile)),
		Keep: formatDuration(milliseconds(s.Keep)), Max: s.Max, Features: users,
	}
	switch s.Measure.State() {
	case kinds.Tiles:
		p.Group = s.Group
	case kinds.LastSeen, kinds.Logs:
		p.Tile = "exact"
	}
	if s.Tile == 0 {
		p.Tile = "lifetime"
	}
	if s.Keep == 0 {
		p.Keep = "for ever"
	}
	return p
}

func (f *Feature) explain() FeaturePlan {
	p := FeaturePlan{
		Name: f.Name, Description: f.Description, Owner: f.Owner, Definition: f.Definition,
		RoundTrips: 1, // all keys in one pipeline
		Exact:      true,
	}
	for _, s := range f.Series {
		if !slices.Contains(p.Series, s.ID) {
			p.Series = append(p.Series, s.ID)
		}
		if state := stateNames[s.Measure.State()]; !slices.Contains(p.State, state) {
			p.State = append(p.State, state)
		}
	}
	keys := map[string]int64{}
	f.explainReads(&p, keys)
	for _, n := range keys {
		p.Keys += n
	}
	for _, part := range f.Parts {
		p.Parts = append(p.Parts, part.Name)
	}
	return p
}

// explainReads adds what the feature, or its parts, read: the number of Redis
// keys by what tells them apart.
func (f *Feature) explainReads(p *FeaturePlan, keys map[string]int64) {
	for _, part := range f.Parts {
		part.explainReads(p, keys)
	}
	if f.Parts != nil {
		return
	}
	spec := f.Kind.Spec()
	p.Exact = p.Exact && spec.Exact
	p.StandardError = max(p.StandardError, spec.StandardError)
	for _, s := range f.Series {
		n := int64(1)
		if s.Measure.State() == kinds.Sketches && f.Window.Size > 0 {
			n = int64(f.Window.Size / f.Window.Tile)
		}
		keys[keyOf(s)] = max(keys[keyOf(s)], n)
	}
}

// keyOf tells the Redis keys of an entity apart: the tiles of a group share
// one, all other series have their own.
func keyOf(s *kinds.Series) string {
	if s.Measure.State() == kinds.Tiles {
		return "group " + s.Group
	}
	return s.ID
}

// explainEntity estimates the memory of one entity's series.
func (r *Registry) explainEntity(series []*kinds.Series) EntityPlan {
	p := EntityPlan{By: series[0].By}
	keys := map[string]bool{}
	for _, s := range series {
		p.Series = append(p.Series, s.ID)
		stream, _ := r.Stream(s.Stream)
		tiles := int64(tilesKept(s, stream))
		if !keys[keyOf(s)] && s.Measure.State() != kinds.Sketches {
			keys[keyOf(s)] = true
			p.BytesOnce += bytesKey
			p.BytesFull += bytesKey
		}
		switch s.Measure.State() {
		case kinds.Tiles:
			p.BytesOnce += bytesField
			p.BytesFull += tiles * either[int64](s.GroupTiles <= compactHash, bytesField, bytesFieldWide)
		case kinds.Members:
			p.BytesOnce += bytesField
			p.BytesFull += tiles * either[int64](tiles <= compactHash, bytesField, bytesFieldWide)
		case kinds.LastSeen:
			p.BytesOnce += bytesScore
			p.BytesFull += int64(s.Max) * either[int64](s.Max <= compactSortedSet, bytesScore, bytesScoreWide)
		case kinds.Logs:
			p.BytesOnce += bytesRecord
			p.BytesFull += int64(s.Max) * bytesRecord
		case kinds.Sketches:
			p.BytesOnce += bytesKey + bytesSketchOne
			p.BytesFull += tiles * (bytesKey + bytesSketchFull)
		}
	}
	return p
}

func either[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
