package serve

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/serve/catalogue"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/value"
)

// index is a registry prepared for questions.
type index struct {
	registry  *features.Registry
	version   string // of its plan
	features  map[string]*preparedFeature
	services  map[string][]*preparedFeature
	described catalogue.Catalogue
	mappers   sync.Pool
}

// preparedFeature is a feature prepared for questions.
type preparedFeature struct {
	*features.Feature
	keys       *keySet
	membership aggregate.Membership
	// member describes the members, if the feature may be asked about some.
	member key
	label  []byte // the name as a key of a JSON object, with its colon
	asked  prometheus.Counter
	// services are the names of the services with the feature.
	services []string
	// fanOut is how many further entities an answer may read.
	fanOut int

	complete atomic.Pointer[completeness]
}

// keySet is the keys of an entity's text, sorted by name. Features with the same keys share one.
type keySet struct{ keys []key }

type key struct {
	name  string
	typ   value.Type
	scale uint8 // of a decimal
}

func newIndex(r *features.Registry, asked *prometheus.CounterVec) *index {
	x := &index{
		registry:  r,
		features:  make(map[string]*preparedFeature, len(r.Features)),
		services:  make(map[string][]*preparedFeature, len(r.Services)),
		described: catalogue.New(r),
		mappers:   sync.Pool{New: func() any { return r.NewJSONMapper() }},
	}
	if p := r.Plan(); p != nil {
		x.version = p.Version
	}
	var sets []*keySet
	for _, f := range r.Features {
		set := &keySet{keysOf(f)}
		if i := slices.IndexFunc(sets, func(s *keySet) bool { return slices.Equal(s.keys, set.keys) }); i >= 0 {
			set = sets[i]
		} else {
			sets = append(sets, set)
		}
		label := append(query.AppendString(nil, f.Name), ':')
		x.features[f.Name] = &preparedFeature{
			Feature: f, keys: set, membership: f.Membership(), member: key{name: f.Field, typ: f.Call.Type, scale: f.Call.Scale},
			label: label, asked: asked.WithLabelValues(f.Name), fanOut: f.FanOut(),
		}
	}
	for _, s := range r.Services {
		for _, f := range s.Features {
			p := x.features[f.Name]
			p.services = append(p.services, s.Name)
			x.services[s.Name] = append(x.services[s.Name], p)
		}
	}
	return x
}

// keysOf lists the keys of a feature in the order of an entity's values.
func keysOf(f *features.Feature) []key {
	keys := make([]key, len(f.By))
	for i, name := range f.By {
		keys[i] = key{name: name, typ: f.ByTypes[i], scale: f.Key(name).Scale}
	}
	return keys
}

// unknownFeature refuses a name that no feature has. It names only what the client may ask for; nil may ask for
// everything.
func (x *index) unknownFeature(name string, to *credentials.Client) error {
	var names []string
	for _, f := range x.registry.Features {
		if to == nil || to.Scopes.Feature(x.features[f.Name].services) {
			names = append(names, f.Name)
		}
	}
	e := reply.Unknown(reply.UnknownFeature, "feature", name, names)
	if _, ok := x.services[name]; ok && (to == nil || to.Scopes.Service(name)) {
		e = reply.Errorf(reply.UnknownFeature, "there is no feature %s, but there is a service of that name: ask for it by service, not by features", reply.Quote(name))
	}
	e.Feature = name
	return e
}

// mayName reports whether an error may show a client a stream, its topic, its match and its fields: those of the features
// that the client may ask for.
func (x *index) mayName(s *record.Stream, to *credentials.Client) bool {
	return to == nil || to.Scopes.Everything() || slices.ContainsFunc(x.registry.Features, func(f *features.Feature) bool {
		return to.Scopes.Feature(x.features[f.Name].services) && readsStream(f, s)
	})
}

func readsStream(f *features.Feature, s *record.Stream) bool {
	return f.Stream == s || slices.ContainsFunc(f.Parts(), func(part *features.Feature) bool { return readsStream(part, s) })
}

// unknownStream refuses a name that no stream has, like unknownFeature.
func (x *index) unknownStream(name string, to *credentials.Client) *reply.Error {
	var names []string
	for _, s := range x.registry.Streams {
		if x.mayName(s, to) {
			names = append(names, s.Name)
		}
	}
	return reply.Unknown(reply.UnknownStream, "stream", name, names)
}

// unknownTopic refuses a topic that no stream reads, like unknownFeature.
func (x *index) unknownTopic(name string, to *credentials.Client) *reply.Error {
	var names []string
	for _, s := range x.registry.Streams {
		if x.mayName(s, to) && !slices.Contains(names, s.Topic) {
			names = append(names, s.Topic)
		}
	}
	slices.Sort(names)
	return reply.Unknown(reply.UnknownTopic, "stream that reads the topic", name, names)
}

// unknownService refuses a name that no service has, like unknownFeature.
func (x *index) unknownService(name string, to *credentials.Client) error {
	var names []string
	for _, s := range x.registry.Services {
		if to == nil || to.Scopes.Service(s.Name) {
			names = append(names, s.Name)
		}
	}
	return reply.Unknown(reply.UnknownService, "service", name, names)
}
