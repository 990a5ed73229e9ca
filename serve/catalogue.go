package serve

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/kinds"
)

// Catalogue is the answer of GET /v1/features.
type Catalogue struct {
	Features []CatalogueFeature `json:"features"`
	Services []CatalogueService `json:"services"`
}

// CatalogueFeature describes one feature.
type CatalogueFeature struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Owner       string         `json:"owner,omitempty"`
	Definition  string         `json:"definition"` // in the one-line form
	Stream      string         `json:"stream,omitempty"`
	Where       string         `json:"where,omitempty"`
	Kind        string         `json:"kind"`             // a function's name, or expr of a derived feature
	Parts       []string       `json:"parts,omitempty"`  // that a derived feature is computed from
	Method      string         `json:"method,omitempty"` // of count_distinct
	Shape       string         `json:"shape,omitempty"`  // list, counts or bins; absent: a scalar
	Keys        []CatalogueKey `json:"keys"`             // in the order of the definition
	Window      string         `json:"window,omitempty"` // a duration, or lifetime
	Tile        string         `json:"tile,omitempty"`
	Keep        string         `json:"keep,omitempty"` // how far back can be asked for; absent: for ever
	// Series are the state series that the feature is answered from.
	Series []CatalogueSeries `json:"series"`
}

// CatalogueKey is one key that an entity must have.
type CatalogueKey struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// CatalogueSeries is one state series of a feature.
type CatalogueSeries struct {
	ID         string   `json:"id"`
	State      string   `json:"state"`
	Measure    string   `json:"measure"`
	SharedWith []string `json:"shared_with,omitempty"` // other features answered from it
}

// CatalogueService is a named list of features.
type CatalogueService struct {
	Name     string   `json:"name"`
	Features []string `json:"features"`
}

func newCatalogue(r *features.Registry) Catalogue {
	users := map[string][]string{} // of a series, by name
	for _, f := range r.Features {
		for _, s := range f.Series {
			if !slices.Contains(users[s.ID], f.Name) {
				users[s.ID] = append(users[s.ID], f.Name)
			}
		}
	}
	c := Catalogue{Features: []CatalogueFeature{}, Services: []CatalogueService{}}
	for _, f := range r.Features {
		c.Features = append(c.Features, describe(f, users))
	}
	for _, s := range r.Services {
		service := CatalogueService{Name: s.Name}
		for _, f := range s.Features {
			service.Features = append(service.Features, f.Name)
		}
		c.Services = append(c.Services, service)
	}
	return c
}

func describe(f *features.Feature, users map[string][]string) CatalogueFeature {
	d := CatalogueFeature{Name: f.Name, Description: f.Description, Owner: f.Owner, Definition: f.Definition, Where: f.Where}
	if f.Parts == nil {
		d.describeWindow(f)
	} else {
		d.Kind = "expr"
	}
	for _, part := range f.Parts {
		d.Parts = append(d.Parts, part.Name)
	}
	if f.Forgets() {
		d.Keep = duration(f.Keep)
	}
	for i, name := range f.By {
		d.Keys = append(d.Keys, CatalogueKey{Name: name, Type: f.ByTypes[i].String()})
	}
	for i, s := range f.Series {
		if slices.Index(f.Series, s) < i {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(users[s.ID]), func(name string) bool { return name == f.Name })
		d.Series = append(d.Series, CatalogueSeries{
			ID: s.ID, State: stateNames[s.Measure.State()], Measure: s.Measure.String(), SharedWith: others,
		})
	}
	return d
}

// describeWindow says what a feature over a stream looks at.
func (d *CatalogueFeature) describeWindow(f *features.Feature) {
	spec := f.Kind.Spec()
	d.Stream, d.Kind, d.Method, d.Shape, d.Window = f.Stream.Name, spec.Name, spec.Method, spec.Shape.String(), "lifetime"
	if f.Window.Size > 0 {
		d.Window, d.Tile = duration(f.Window.Size), "exact"
		if f.Window.Tiled() {
			d.Tile = duration(f.Window.Tile)
		}
	}
}

var stateNames = map[kinds.State]string{
	kinds.Tiles: "tiles", kinds.Members: "members", kinds.Sketches: "sketches", kinds.LastSeen: "last_seen",
	kinds.Logs: "log",
}

// duration writes a duration as definitions do: 7d, 90m.
func duration(d time.Duration) string {
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}} {
		if d >= unit.size && d%unit.size == 0 {
			return fmt.Sprintf("%d%s", d/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}
