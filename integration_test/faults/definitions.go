package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/value"
)

// feature is one definition in the one-line form.
type feature struct{ name, text string }

// streams are those of all rounds; SUFFIX is that of the round's topics, LATE what becomes of
// late logins.
const streams = `streams:
  payment:
    topic: paymentsSUFFIX
    match: kind == "payment"
    timestamp: {path: at, unit: ms}
    id: id
    fields: &fields
      user: string
      card: string
      shop: string
      ip: string
      net: {type: string, expr: 'cidr(ip, 24)'}
      amount: {type: decimal, scale: 2}
      units: int
      score: float
      ok: bool
      moment: {type: timestamp, path: at, unit: ms}
      place: location
  login:
    topic: loginsSUFFIX
    match: kind == "login"
    timestamp: {path: at, unit: ms}
    late: LATE
    fields: *fields
features:
`

// windows are forms of windows; %s is what else the feature says. In those of the log all
// events of an entity find a place.
var windows = []string{
	"(1h, %s, keep=10d)",
	"(1d, %s, keep=2d)",
	"(7d, %s, keep=5d)",
	"(12h, %s, keep=0s)",
	"(lifetime, %s)",
	"(calendar day tz Europe/Berlin, %s, keep=5d)",
	"(calendar week tz Asia/Kolkata starts sunday, %s, keep=2d)",
	"(tumbling 6h, %s, keep=5d)",
	"(1d, %s, keep=2d, where='units > 0')",
	"(2d, %s, keep=2d, delay=1d)",
	"(lifetime, %s, tile=exact, max=100000, where='ok')",
	"(2h, %s, keep=5d, tile=exact, max=100000, bounds='[]')",
	"(7d, %s, keep=2d, tile=exact, max=100000, exclude=current_time)",
	"(session 3h max_length 2d, %s, tile=exact, max=100000, keep=2d)",
	"(fixed 8h max_length 2d, %s, tile=exact, max=100000, keep=2d)",
	"(last 4, %s, tile=exact, exclude=current)",
	"(rolling 1d last 3, %s, tile=exact, max=100000, keep=2d)",
}

// fieldOf are the fields of the streams by their type.
var fieldOf = map[value.Type][]string{
	value.String: {"shop", "ip"}, value.Int: {"units"}, value.Float: {"score"}, value.Decimal: {"amount"},
	value.Bool: {"ok"}, value.Timestamp: {"moment"}, value.Location: {"place"},
}

// members are those that questions name, by the field: some that are met often, and one never.
var members = map[string][]value.Value{
	"shop":  {text("s0"), text("s5"), text("s11"), text("s12")},
	"ip":    {text("10.0.0.0"), text("10.0.1.3"), text("10.0.4.7"), text("10.0.9.9")},
	"units": {{Type: value.Int, Num: -3}, {Type: value.Int, Num: 5}, {Type: value.Int, Num: 77}},
}

func text(s string) value.Value { return value.Value{Type: value.String, Str: []byte(s)} }

// parameters are what parameters of kinds are given.
var parameters = map[string]string{
	"k": "3", "n": "2", "p": "0.3", "half_life": "1d", "unit": "1h", "bins": "[1, 3, 6]", "condition": "'units > 1'",
	"error": "0.05", "fp": "0.01",
}

// secondDegree are features that rest on others of the same text.
var secondDegree = []string{
	"SUM(1d, payment, amount, SET(7d, payment, card, shop), max=12)",
	"COUNT(1h, payment, SET(1d, payment, net, user, tile=exact, max=100000), keep=2d)",
	"SET(7d, login, SET(1d, login, net, user), ip, max=30)",
}

// drawVersions draws versions of the definitions: a first one, and each of the others with
// some features gone and some new. The features named always_… are in all of them.
func drawVersions(r *rand.Rand, n int) [][]feature {
	var always []feature
	for i, f := range drawFeatures(r, 1) {
		if i%2 == 0 {
			always = append(always, feature{"always_" + f.name, f.text})
		}
	}
	always = append(always, feature{"always_seen_by_user", "COUNT(lifetime, payment, user)"},
		feature{"always_ratio", "{expr: always_seen_by_user / always_twice, default: 0}"}, feature{"always_twice", "COUNT(7d, payment, user)"})
	pool := drawFeatures(r, 1)
	var versions [][]feature
	for range n {
		version := slices.Clone(always)
		for _, f := range pool {
			if r.IntN(2) == 0 {
				version = append(version, f)
			}
		}
		versions = append(versions, version)
	}
	return versions
}

// drawFeatures draws for each kind there is so many features, of random windows and entities.
func drawFeatures(r *rand.Rand, each int) (all []feature) {
	for i, kind := range aggregate.All {
		spec := kind.Spec()
		if spec.Members == aggregate.MembersNeeded {
			spec.Types = []value.Type{value.String, value.Int} // those of members
		}
		for j := range each {
			f := feature{fmt.Sprintf("f%d_%d", i, j), drawFeature(r, spec)}
			for tries := 0; !f.compiles(); tries++ { // not every kind has every window
				if tries == 1000 {
					panic("no window fits " + spec.Name + ": " + f.text)
				}
				f.text = drawFeature(r, spec)
			}
			all = append(all, f)
		}
	}
	return append(all, feature{"second", secondDegree[r.IntN(len(secondDegree))]})
}

func drawFeature(r *rand.Rand, spec aggregate.Spec) string {
	window := windows[r.IntN(len(windows))]
	options := ""
	if spec.Method != "" {
		options = ", method=" + spec.Method
	}
	for _, p := range spec.Parameters {
		options += ", " + p.Name + "=" + parameters[p.Name]
	}
	stream := []string{"payment", "payment", "login"}[r.IntN(3)]
	by := []string{"user", "user", "card", "net", "user, shop"}[r.IntN(5)]
	arguments := stream + ", " + by
	if spec.Types != nil {
		names := fieldOf[spec.Types[r.IntN(len(spec.Types))]]
		field := names[r.IntN(len(names))]
		if by == "user, shop" && field == "shop" {
			field = "ip"
			if !slices.Contains(spec.Types, value.String) {
				field = "units"
			}
		}
		if spec.FieldLast {
			arguments = stream + ", " + by + ", " + field
		} else {
			arguments = stream + ", " + field + ", " + by
		}
	}
	text := strings.ToUpper(spec.Name) + fmt.Sprintf(window, arguments+options)
	if spec.Shape == aggregate.Scalar && r.IntN(6) == 0 {
		text = strings.TrimSuffix(text, ")") + ", per=shop)"
	}
	return text
}

func (f feature) compiles() bool {
	_, err := definition.Parse("drawn.yaml", []byte(definitionsText([]feature{f}, "", "count")))
	return err == nil
}

// definitionsText is a version of the definitions as a file.
func definitionsText(version []feature, suffix, late string) string {
	b := strings.Builder{}
	b.WriteString(strings.NewReplacer("SUFFIX", suffix, "LATE", late).Replace(streams))
	for _, f := range version {
		fmt.Fprintf(&b, "  %s: %s\n", f.name, f.text)
	}
	return b.String()
}
