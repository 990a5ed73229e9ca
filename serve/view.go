package serve

import (
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/serve/access"
	"github.com/weir-stream/weir/serve/reply"
)

// view is an index as a client may see it: what it may ask for, and what errors may tell it.
type view struct {
	*index                     // nil until first used
	client *credentials.Client // who asks; nil if no credentials are required: it may ask for everything
}

// askable returns a feature, if the client may ask for it.
func (v view) askable(name []byte) (*preparedFeature, error) {
	p, ok := v.features[string(name)] // without a copy, as it is only looked up
	if !ok {
		return nil, v.unknownFeature(string(name))
	}
	if v.mayAsk(p.Feature) {
		return p, nil
	}
	wants := "query"
	for _, service := range p.services {
		wants += " or service:" + service
	}
	return nil, access.Forbidden("asking for the feature "+p.Name, wants, v.client).About(p.Name)
}

// askableService returns the features of a service, if the client may ask for it.
func (v view) askableService(name string) ([]*preparedFeature, error) {
	inService, ok := v.services[name]
	if !ok {
		return nil, v.unknownService(name)
	}
	if !v.mayAskService(name) {
		return nil, access.Forbidden("asking for the service "+name, "query or service:"+name, v.client)
	}
	return inService, nil
}

// unknownFeature refuses a name that no feature has. It names only what the client may ask for.
func (v view) unknownFeature(name string) error {
	e := reply.Unknown(reply.UnknownFeature, "feature", name, namesOf(v.registry.Features, v.mayAsk, func(f *features.Feature) string { return f.Name }))
	if _, ok := v.services[name]; ok && v.mayAskService(name) {
		e = reply.Errorf(reply.UnknownFeature, "there is no feature %s, but there is a service of that name: ask for it by service, not by features", reply.Quote(name))
	}
	return e.About(name)
}

// namesOf returns the names of those that a client may see.
func namesOf[T any](all []T, may func(T) bool, name func(T) string) (names []string) {
	for _, one := range all {
		if may(one) {
			names = append(names, name(one))
		}
	}
	return names
}

func (v view) mayAsk(f *features.Feature) bool {
	return v.client == nil || v.client.Scopes.Feature(v.features[f.Name].services)
}

func (v view) mayAskService(name string) bool {
	return v.client == nil || v.client.Scopes.Service(name)
}

// mayName reports whether an error may show the client a stream, its topic, its match and its fields: those of the features
// that the client may ask for.
func (v view) mayName(s *record.Stream) bool {
	return v.client == nil || v.client.Scopes.Everything() ||
		slices.ContainsFunc(v.registry.Features, func(f *features.Feature) bool { return v.mayAsk(f) && readsStream(f, s) })
}

func readsStream(f *features.Feature, s *record.Stream) bool {
	return f.Stream == s || f.InHand == s || slices.ContainsFunc(f.Parts(), func(part *features.Feature) bool { return readsStream(part, s) })
}

// unknownStream refuses a name that no stream has, like unknownFeature.
func (v view) unknownStream(name string) *reply.Error {
	return reply.Unknown(reply.UnknownStream, "stream", name, namesOf(v.registry.Streams, v.mayName, func(s *record.Stream) string { return s.Name }))
}

// unknownTopic refuses a topic that no stream reads, like unknownFeature.
func (v view) unknownTopic(name string) *reply.Error {
	var names []string
	for _, s := range v.registry.Streams {
		if v.mayName(s) {
			names = append(names, s.Topics()...)
		}
	}
	slices.Sort(names)
	return reply.Unknown(reply.UnknownTopic, "stream that reads the topic", name, slices.Compact(names))
}

// unknownService refuses a name that no service has, like unknownFeature.
func (v view) unknownService(name string) error {
	may := func(s *features.Service) bool { return v.mayAskService(s.Name) }
	return reply.Unknown(reply.UnknownService, "service", name, namesOf(v.registry.Services, may, func(s *features.Service) string { return s.Name }))
}
