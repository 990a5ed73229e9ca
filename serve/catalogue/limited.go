package catalogue

import "slices"

// Of returns the part of the catalogue for some services: these, their features, and the streams of these features; and all lists.
func (c Catalogue) Of(service func(name string) bool) Catalogue {
	of := Catalogue{Features: []Feature{}, Services: []Service{}, Streams: []Stream{}, Lists: c.Lists}
	known, streams := map[string]bool{}, map[string]bool{}
	for _, s := range c.Services {
		if service(s.Name) {
			of.Services = append(of.Services, s)
			for _, name := range s.Features {
				known[name] = true
			}
		}
	}
	for _, f := range c.Features {
		if known[f.Name] {
			of.Features = append(of.Features, f.among(known))
			for _, s := range f.Series { // a feature made of others has no stream of its own
				streams[s.Stream] = true
			}
		}
	}
	for _, s := range c.Streams {
		if streams[s.Name] {
			of.Streams = append(of.Streams, s)
		}
	}
	return of
}

// among removes references to features that are not known.
func (d Feature) among(known map[string]bool) Feature {
	others := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !known[name] })
	}
	d.Parts, d.Series = others(d.Parts), slices.Clone(d.Series)
	for i := range d.Series {
		d.Series[i].SharedWith = others(d.Series[i].SharedWith)
	}
	return d
}
