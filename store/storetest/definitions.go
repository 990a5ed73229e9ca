package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// conformanceWindows have tiles of several widths, including the default one, and no tiles.
var conformanceWindows = []struct{ size, options string }{
	{"10s", ""}, {"1h", ", tile=5m, keep=1h"}, {"1d", ", keep=2d"}, {"7d", ", tile=12h, keep=1d"}, {"30d", ", keep=0s"},
	{"7d", ", delay=1d"}, {"lifetime", ""},
	{"10s", ", tile=exact"}, {"1d", ", tile=exact, bounds='[]', keep=2d"}, {"1h", ", tile=exact, bounds='()'"},
	{"7d", ", tile=exact, bounds='[)', delay=1d"}, {"lifetime", ", tile=exact"},
	{"calendar day tz Europe/Berlin", ", keep=2d"}, {"tumbling 6h", ", keep=1d"},
	{"session 20m", ", tile=exact, keep=1d"}, {"last 3", ", tile=exact, exclude=current"},
}

// conformanceDefinitions has every function in tiles over every type that it takes and every
// window, so a new function is tested once it is in aggregate.All.
func conformanceDefinitions() string {
	var d strings.Builder
	d.WriteString(`
streams:
  event:
    topic: transactions
    timestamp: {path: at, unit: ms}
    fields:
      user: string
      seat: int
      string: string
      int: int
      float: float
      decimal: {type: decimal, scale: 3}
      bool: bool
      timestamp: timestamp
features:
`)
	for i, k := range aggregate.All {
		spec := k.Spec()
		if _, ok := k.(aggregate.Mergeable); !ok {
			continue
		}
		fields := []value.Type{value.Null}
		if spec.Types != nil {
			fields = slices.DeleteFunc(slices.Clone(spec.Types), func(t value.Type) bool {
				return t == value.Location || slices.Contains(spec.LogTypes, t)
			})
		}
		for n, field := range fields {
			for j := range conformanceWindows {
				// The first type has all windows, the others have some of them.
				if n == 0 || (i+j+n)%3 == 0 {
					fmt.Fprintf(&d, "  f%d_%s_%d: %s\n", i, field, j, conformanceDefinition(k, field, j, ""))
				}
				if n == i%len(fields) && (i+j)%3 == 0 && spec.Shape == aggregate.Scalar && spec.Members != aggregate.MembersRequired {
					fmt.Fprintf(&d, "  f%d_%s_%d_per: %s\n", i, field, j, conformanceDefinition(k, field, j, ", per=string"))
				}
			}
		}
	}
	d.WriteString(conformanceMultiHop)
	return d.String()
}

// conformanceDefinition returns a feature with a function over a field and the j-th window.
func conformanceDefinition(k aggregate.Function, field value.Type, j int, per string) string {
	w, spec := conformanceWindows[j], k.Spec()
	arguments := []string{"user"}
	if j%2 == 1 {
		arguments = []string{"user", "seat"}
	}
	switch {
	case spec.Types == nil:
	case spec.FieldLast:
		arguments = append(arguments, field.String())
	default:
		arguments = append([]string{field.String()}, arguments...)
	}
	options := w.options
	_, keyed := k.(aggregate.Keyed)
	exact, lastSeen := strings.Contains(options, "exact"), spec.Method == "last_seen"
	fromLog := exact || per != "" && (keyed || lastSeen)
	if (spec.DefaultMax > 0 || per != "") && !fromLog {
		options += ", max=4"
	}
	if lastSeen && !fromLog {
		options = strings.Replace(options, ", delay=1d", "", 1) // its edge is exact anyway
	}
	if lastSeen || spec.TilesAreUnits || fromLog {
		options = strings.NewReplacer(", tile=5m", "", ", tile=12h", "").Replace(options)
	}
	if spec.Method != "" {
		options += ", method=" + spec.Method
	}
	given := map[string]string{"k": "3", "p": "0.3", "error": "0.02", "unit": "1h", "fp": "0.4", "current": "counted", "bins": "[-2, 1, 3]", "condition": "'int > 1'"}
	switch w.size {
	case "10s":
		given["unit"] = "1s"
	case "1h":
		given["unit"] = "1m"
	}
	for _, p := range spec.Parameters {
		options += ", " + p.Name + "=" + given[p.Name]
	}
	return fmt.Sprintf("%s(%s, event, %s%s, where='int != 3')", spec.Name, w.size, strings.Join(arguments, ", "), options+per)
}

// conformanceMultiHop are multi-hop features, tiled and exact; names of users contain special
// characters.
const conformanceMultiHop = `
  through_count: COUNT(1d, event, SET(1d, event, user, seat), where='int != 3')
  through_exact: COUNT(1h, event, SET(30d, event, user, seat, delay=1d), tile=exact, max=1)
  through_sum: SUM(7d, event, decimal, SET(1h, event, seat, user), tile=12h, max=2)
  through_exact_sum: SUM(1h, event, int, SET(lifetime, event, seat, user), tile=exact, bounds='()')
  through_distinct: COUNT_DISTINCT(30d, event, user, string, through=LAST_K(7d, event, user, seat, k=2))
  through_exact_distinct: COUNT_DISTINCT(1d, event, SET(1d, event, seat, user), string, tile=exact)
`
