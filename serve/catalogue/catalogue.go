// Package catalogue describes the features, services and streams of a registry to clients.
package catalogue

import (
	"cmp"
	"math"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
)

// Catalogue is the answer of GET /v1/features.
type Catalogue struct {
	Features []Feature `json:"features"`
	Services []Service `json:"services"`
	Streams  []Stream  `json:"streams"`
	Lists    []List    `json:"lists"`
}

// Feature describes one feature.
type Feature struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Owner       string   `json:"owner,omitempty"`
	Definition  string   `json:"definition"`        // in the one-line form
	Meaning     string   `json:"meaning,omitempty"` // see features.Feature.Meaning
	Stream      string   `json:"stream,omitempty"`
	Where       string   `json:"where,omitempty"`
	Per         string   `json:"per,omitempty"`   // the field by whose values the answer is split
	Function    string   `json:"function"`        // a function's name, or expr of a derived feature
	Parts       []string `json:"parts,omitempty"` // that a derived feature is computed from
	// Event is the stream whose event in hand the feature, or a part of it, reads: without it there is no value.
	Event string `json:"event,omitempty"`
	// Through is the first hop of a multi-hop feature.
	Through *Through `json:"through,omitempty"`
	Method  string   `json:"method,omitempty"` // of count_distinct
	Shape   string   `json:"shape,omitempty"`  // list, counts, bins or categories; absent: a scalar
	Keys    []Key    `json:"keys"`             // in the order of the definition
	// Members is the type of the members that a question may name; absent if it may not.
	Members       string `json:"members,omitempty"`
	MembersNeeded bool   `json:"members_needed,omitempty"`
	Window        string `json:"window,omitempty"` // as in a definition of one line: 7d, session 30m, lifetime
	Tile          string `json:"tile,omitempty"`
	Keep          string `json:"keep,omitempty"` // how far back can be asked for; absent: forever
	// Timeline is true if GET /v1/timeline/{name} supports the feature.
	Timeline bool `json:"timeline,omitempty"`
	// CompleteSince is the event time, in ms, since which the state holds all events that the feature
	// needs; nil if it lacks none.
	CompleteSince *int64 `json:"complete_since,omitempty"`
	// Filled is the share of what is missing that a backfill has applied; nil if none is under way.
	Filled *float64 `json:"filled,omitempty"`
	// Series are the series that answer the feature.
	Series []Series `json:"series"`
}

// Key is one key that an entity must have.
type Key struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Through is the first hop of a multi-hop feature.
type Through struct {
	Set string `json:"set"` // its values are the entities of the second hop: a feature's name, or its definition
	Key string `json:"key"` // of the second hop, which holds the values
	Max int    `json:"max"` // how many values are used
}

// Series is one series of a feature.
type Series struct {
	ID         string   `json:"id"`
	Stream     string   `json:"stream"` // whose events it keeps
	State      string   `json:"state"`
	Measure    string   `json:"measure"`
	SharedWith []string `json:"shared_with,omitempty"` // other features answered from it
	// BytesOnce and BytesFull are the approximate bytes that it takes of an entity, with one event and when full,
	// beside the entity's key; see cost.Entity.
	BytesOnce int64 `json:"bytes_once"`
	BytesFull int64 `json:"bytes_full"`
}

// Service is a named list of features.
type Service struct {
	Name     string   `json:"name"`
	Features []string `json:"features"`
}

// List is a list whose entries operators write.
type List struct {
	Name string `json:"name"`
	Type string `json:"type"` // of its values: string, int, network …
}

// Stream is a stream of events that features count.
type Stream struct {
	Name   string   `json:"name"`
	Topics []string `json:"topics"`
	// Entities is how many entities an event changes, and Mutations how many changes it makes to
	// them, if it has all fields and passes all filters.
	Entities  int `json:"entities"`
	Mutations int `json:"mutations"`
	// RememberIDs is how long entities remember the ids of its events; absent if they do not.
	RememberIDs string           `json:"remember_ids,omitempty"`
	Enrich      *cost.Enrichment `json:"enrich,omitempty"` // absent: its events are not enriched
}

// New describes a registry.
func New(r *features.Registry) Catalogue {
	users := map[string][]string{} // users of each series
	for _, f := range r.Features {
		for _, s := range f.Series {
			if !slices.Contains(users[s.ID], f.Name) {
				users[s.ID] = append(users[s.ID], f.Name)
			}
		}
	}
	c := Catalogue{Features: []Feature{}, Services: []Service{}, Streams: []Stream{}, Lists: []List{}}
	for _, f := range r.Features {
		c.Features = append(c.Features, describe(f, users))
	}
	for _, s := range r.Services {
		service := Service{Name: s.Name}
		for _, f := range s.Features {
			service.Features = append(service.Features, f.Name)
		}
		c.Services = append(c.Services, service)
	}
	for _, s := range r.Streams {
		c.Streams = append(c.Streams, describeStream(s, r.Work(s), cost.EnrichmentOf(r, s)))
	}
	for _, t := range r.Tables {
		if t.List {
			c.Lists = append(c.Lists, List{t.Name, t.KeyType()})
		}
	}
	return c
}

// Completed returns the catalogue with the completeness of each feature: since when it is complete, in ms of event
// time, and the filled share. state.MinTime means that a feature lacks nothing, and a share of 1 that it is not being
// filled.
func (c Catalogue) Completed(of func(feature string) (since int64, filled float64)) Catalogue {
	c.Features = slices.Clone(c.Features)
	for i := range c.Features {
		f := &c.Features[i]
		since, filled := of(f.Name)
		if since != state.MinTime {
			f.CompleteSince = &since
		}
		if filled < 1 {
			filled = math.Round(filled*1000) / 1000 // as answers do
			f.Filled = &filled
		}
	}
	return c
}

func describeStream(s *record.Stream, w features.Work, enrich *cost.Enrichment) Stream {
	d := Stream{Name: s.Name, Topics: s.Topics(), Entities: w.Entities, Mutations: w.Mutations, Enrich: enrich}
	if s.RememberIDs > 0 {
		d.RememberIDs = window.FormatDuration(s.RememberIDs)
	}
	return d
}

func describe(f *features.Feature, users map[string][]string) Feature {
	d := Feature{
		Name: f.Name, Description: f.Description, Owner: f.Owner, Definition: f.Definition, Meaning: f.Meaning(), Where: f.Where, Per: f.Per,
		Timeline: query.HasTimeline(f),
	}
	switch basis := f.Basis.(type) {
	case *features.Derived:
		d.Function = "expr"
		for _, part := range basis.Of {
			d.Parts = append(d.Parts, part.Name)
		}
	case *features.MultiHop:
		d.describeWindow(f)
		d.Through = &Through{Set: cmp.Or(basis.Name, basis.Set.Definition), Key: basis.Each.By[0], Max: basis.Max}
	default:
		d.describeWindow(f)
	}
	if f.InHand != nil {
		d.Event = f.InHand.Name
	}
	if f.Forgets() {
		d.Keep = window.FormatDuration(f.Keep)
	}
	for i, name := range f.By {
		d.Keys = append(d.Keys, Key{Name: name, Type: f.ByTypes[i].String()})
	}
	for i, s := range f.Series {
		if slices.Index(f.Series, s) < i {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(users[s.ID]), func(name string) bool { return name == f.Name })
		once, full := cost.OfSeries(s)
		d.Series = append(d.Series, Series{
			BytesOnce: once, BytesFull: full, ID: s.ID, Stream: s.Stream, State: s.Layout().Name(), Measure: s.Measure.String(), SharedWith: others,
		})
	}
	return d
}

// describeWindow describes the window of a feature over a stream.
func (d *Feature) describeWindow(f *features.Feature) {
	spec := f.Spec
	d.Stream, d.Function, d.Method, d.Shape, d.Window = f.Stream.Name, spec.Name, spec.Method, f.Shape().String(), f.Window.String()
	if membership := f.Membership(); membership != aggregate.NoMembers {
		d.Members, d.MembersNeeded = f.Call.Type.String(), membership == aggregate.MembersRequired
	}
	if f.Window.Forgets() || f.Window.Last > 0 {
		d.Tile = "exact"
		if f.Window.Tiled() {
			d.Tile = window.FormatDuration(f.Window.Tile)
		}
	}
}
