package serve

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/serve/catalogue"
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
	tables   []*features.Table // that it looks up
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
			label: label, asked: asked.WithLabelValues(f.Name), fanOut: f.FanOut(), tables: f.Tables(),
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
