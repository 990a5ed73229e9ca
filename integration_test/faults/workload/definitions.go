package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Feature is one definition in the one-line form.
type Feature struct{ Name, Text string }

// streams defines the streams of all rounds. SUFFIX stands for the suffix of the round's topics,
// LATE for how late logins are handled, DEDUP for the dedup of payments, ENRICH for what logins are enriched with.
const streams = `streams:
  payment:
    topic: paymentsSUFFIX
    match: kind == "payment"
    timestamp: {path: at, unit: ms}
    id: idDEDUP
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
      hour: {type: timestamp, unit: ms}
      place: location
  login:
    topic: loginsSUFFIX
    match: kind == "login"
    timestamp: {path: at, unit: ms}
    late: LATE
    fields: *fieldsENRICH
tables:
  merchant:
    topic: merchantsSUFFIX
    key: shop_id
    match: closed == nil
    fields: {risk: string, limit: {type: decimal, scale: 2}}
lists:
  blocked: {topic: listsSUFFIX}
  hidden: {topic: listsSUFFIX, type: network}
features:
`

// windows are window types; %s stands for the rest of the feature. Windows over a log are large
// enough for all events of an entity.
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

// fieldOf lists the fields of the streams by type. Times are of whole hours: were each another one, features that keep them all would
// reach the bound of an entity's bytes, and the model knows only that of their number.
var fieldOf = map[value.Type][]string{
	value.String: {"shop", "ip"}, value.Int: {"units"}, value.Float: {"score"}, value.Decimal: {"amount"},
	value.Bool: {"ok"}, value.Timestamp: {"hour"}, value.Location: {"place"},
}

// Members are the members that questions name, by field: some frequent ones, and one that never
// occurs.
var Members = map[string][]value.Value{
	"shop":  {text("s0"), text("s5"), text("s11"), text("s12")},
	"ip":    {text("10.0.0.0"), text("10.0.1.3"), text("10.0.4.7"), text("10.0.9.9")},
	"units": {{Type: value.Int, Num: -3}, {Type: value.Int, Num: 5}, {Type: value.Int, Num: 77}},
}

func text(s string) value.Value { return value.Value{Type: value.String, Str: []byte(s)} }

// parameters are the values of functions' parameters.
var parameters = map[string]string{
	"k": "3", "n": "2", "p": "0.3", "half_life": "1d", "unit": "1h", "bins": "[1, 3, 6]", "condition": "'units > 1'",
	"error": "0.05", "fp": "0.01", "current": "counted",
}

// multiHop are multi-hop features; each inner feature is part of the same text.
var multiHop = []string{
	"SUM(1d, payment, amount, SET(7d, payment, card, shop), max=12)",
	"COUNT(1h, payment, SET(1d, payment, net, user, tile=exact, max=100000), keep=2d)",
	"SET(7d, login, SET(1d, login, net, user), ip, max=30)",
}

// Lengthened are counts of the same events. The first of a pair is over a day in all versions of the definitions, and of tiles of
// its own because of its filter, which all events pass. The other is over a number of days that each version draws, and in tiles
// of a width that it draws, too, if it is tiled: a window of two days has the last 24 hours in tiles of any.
var Lengthened = []struct {
	Always, Day, Changing, Days string
	Tiles                       []string
}{
	{"always_tiled_day", "COUNT(1d, payment, user, tile=1h, where='user != nil')", "tiled_days", "COUNT(%dd, payment, user, tile=%s)", []string{"1h", "6h", "1d"}},
	{"always_logged_day", "COUNT(1d, payment, user, tile=exact, max=100000)", "logged_days", "COUNT(%dd, payment, user, tile=%s, max=100000)", []string{"exact"}},
}

// OfRows are features that need the table and each of the lists.
var OfRows = []string{"always_risk", "always_blocked", "always_hidden"}

// ofRows are features over the table and the lists, and what they need. The entities of always_by_ip are addresses to look up.
var ofRows = []Feature{
	{"always_risk", "{expr: merchant.risk, by: shop}"},
	{"always_spent_there", "SUM(1d, payment, amount, user, shop)"},
	{"always_over", "{expr: always_spent_there > merchant.limit, by: shop}"},
	{"always_blocked", "{expr: card in blocked}"},
	{"always_blocked_why", "{expr: blocked.why, by: card, default: nothing}"},
	{"always_by_ip", "COUNT(1d, payment, ip)"},
	{"always_hidden", "{expr: 'ip in hidden ? hidden.why : nil', by: ip}"},
}

// enriched are what logins are enriched with. Logins are of one partition, so it is determined what is known at each,
// if state is kept for as long as payments may be ahead of them. What is kept for less may be incomplete: a processor
// that is killed, or that takes a partition over, is then ahead of others.
var enriched = []Feature{
	{"always_logins", "COUNT(lifetime, login, user)"},
	{"always_login_units", "SUM(7d, login, units, user, tile=1d, keep=1000d)"},
	{"always_login_shops", "COUNT_DISTINCT(1d, login, user, shop, tile=exact, keep=1000d, max=100000)"},
	{"always_login_ips", "LAST_K(2h, login, ip, user, k=3, keep=1000d, max=100000)"},
	{"always_login_sights", "COUNT(7d, login, SET(7d, login, user, ip, tile=1d, keep=1000d), tile=1d, keep=1000d)"},
	{"always_login_day", "COUNT(1d, login, user)"},
	{"always_login_hour", "SUM(1h, login, units, user)"},
	{"always_login_latest", "LAST_K(2h, login, shop, user, k=3, max=100000)"},
}

// KeptBriefly is for how long features are kept that do not say it.
const KeptBriefly = time.Hour

// DrawVersions draws n versions of the definitions. Each has about half the features of a pool,
// and all features named always_….
func DrawVersions(r *rand.Rand, n int) [][]Feature {
	var always []Feature
	for i, f := range drawFeatures(r) {
		if i%2 == 0 {
			always = append(always, Feature{"always_" + f.Name, f.Text})
		}
	}
	// There are few shops, and little is kept of each: their keys are compacted all the time.
	always = append(always, Feature{"always_by_shop", "COUNT(1d, payment, shop, keep=2d)"})
	always = append(always, Feature{"always_seen_by_user", "COUNT(lifetime, payment, user)"},
		Feature{"always_ratio", "{expr: always_seen_by_user / always_twice, default: 0}"}, Feature{"always_twice", "COUNT(7d, payment, user)"})
	always = append(append(always, ofRows...), enriched...)
	for _, pair := range Lengthened {
		always = append(always, Feature{pair.Always, pair.Day})
	}
	pool := drawFeatures(r)
	lengths, days := []int{1, 2, 5, 12}, make([]int, len(Lengthened))
	var versions [][]Feature
	for range n {
		version := slices.Clone(always)
		for _, f := range pool {
			if r.IntN(2) == 0 {
				version = append(version, f)
			}
		}
		for i, pair := range Lengthened {
			days[i] = (days[i] + 1 + r.IntN(len(lengths)-1)) % len(lengths) // another length than that of the version before
			tile := pair.Tiles[0]
			if lengths[days[i]] > 1 {
				tile = pair.Tiles[r.IntN(len(pair.Tiles))]
			}
			version = append(version, Feature{pair.Changing, fmt.Sprintf(pair.Days, lengths[days[i]], tile)})
		}
		versions = append(versions, version)
	}
	return versions
}

// drawFeatures draws a feature for every function, with random windows and entities.
func drawFeatures(r *rand.Rand) (all []Feature) {
	for i, function := range aggregate.All {
		spec := function.Spec()
		if spec.Members == aggregate.MembersRequired {
			spec.Types = []value.Type{value.String, value.Int} // the types that members have
		}
		f := Feature{fmt.Sprintf("f%d", i), drawFeature(r, spec)}
		for tries := 0; !f.compiles(); tries++ { // not every function allows every window
			if tries == 1000 {
				panic("no window fits " + spec.Name + ": " + f.Text)
			}
			f.Text = drawFeature(r, spec)
		}
		all = append(all, f.withRoom())
	}
	return append(all, Feature{"second", multiHop[r.IntN(len(multiHop))]})
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

func (f Feature) compiles() bool {
	_, err := f.registry()
	return err == nil
}

func (f Feature) registry() (*features.Registry, error) {
	return defined.Parse(Definitions([]Feature{f}, "", "count", "", true))
}

// withRoom returns the feature such that its log has room for all events of an entity, if it reads one. Other features
// write to the same log, also of definitions that are no longer applied.
func (f Feature) withRoom() Feature {
	registry, err := f.registry()
	if err == nil && registry.Series[0].Measure == state.Record && !strings.Contains(f.Text, "max=") && !strings.Contains(f.Text, "(last ") {
		f.Text = strings.TrimSuffix(f.Text, ")") + ", max=100000)"
	}
	return f
}

// Definitions returns a version of the definitions as text for a file. The suffix is that of the
// topics; late is how late logins are handled, count or dead_letter; dedup is that of payments, empty for none; enriches
// says whether logins are written with features.
func Definitions(version []Feature, suffix, late, dedup string, enriches bool) string {
	if dedup != "" {
		dedup = "\n    dedup: " + dedup
	}
	var known []string
	for _, f := range version {
		if enriches && slices.Contains(enriched, f) {
			known = append(known, f.Name)
		}
	}
	enrich := ""
	if len(known) > 0 {
		enrich = "\n    enrich: {service: known, topic: " + Enriched + suffix + "}"
	}
	b := strings.Builder{}
	b.WriteString(strings.NewReplacer("SUFFIX", suffix, "LATE", late, "DEDUP", dedup, "ENRICH", enrich).Replace(streams))
	for _, f := range version {
		fmt.Fprintf(&b, "  %s: %s\n", f.Name, f.Text)
	}
	if len(known) > 0 {
		fmt.Fprintf(&b, "services: {known: [%s]}\n", strings.Join(known, ", "))
	}
	return b.String()
}
