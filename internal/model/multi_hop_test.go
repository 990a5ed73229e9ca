package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

// throughDefinitions lead from a user through values of every type that can name an entity, and
// through lists of several orders and windows, to every function that allows several entities, in
// tiles and exact.
func throughDefinitions() string {
	definitions, _, _ := strings.Cut(exactDefinitions(), "features:\n")
	var d strings.Builder
	d.WriteString(definitions + "features:\n")
	lists := []string{
		"SET(10s, event, user, %s)", "SET(1m, event, user, %[1]s, tile=exact, where='int != 3', bounds='[]')",
		"LAST_K(lifetime, event, %s, user, k=5)", "LAST_DISTINCT_K(30s, event, %s, user, k=4, delay=5s)",
	}
	seconds := []string{
		"(10s, event%s, tile=1s%s)", "(1m, event%s, tile=5s, where='bool', delay=10s%s)", "(lifetime, event%s%s)",
		"(10s, event%s, tile=exact, bounds='[]'%s)", "(20s, event%s, tile=exact, where='int > 0', delay=3s%s)",
	}
	n := 0
	for _, by := range []string{"string", "int", "decimal", "bool", "timestamp"} {
		for i, k := range aggregate.All {
			spec := k.Spec()
			if !spec.MultiHop {
				continue
			}
			for j, list := range lists {
				list = fmt.Sprintf(list, by)
				second, arguments := seconds[(i+j)%len(seconds)], ", "+by
				switch {
				case spec.FieldLast:
					arguments += ", " + []string{"string", "user"}[j%2]
				case spec.Types != nil:
					arguments = ", " + []string{"decimal", "int"}[j%2] + arguments
				}
				fmt.Fprintf(&d, "  f%d: %s%s\n", n, spec.Name, fmt.Sprintf(second, arguments, ", through="+list+[]string{"", ", max=2"}[n%2]))
				n++
			}
		}
	}
	// A set of users is asked about by a feature of its own.
	d.WriteString("  call: COUNT_DISTINCT(30s, event, SET(30s, event, string, user), string)\n")
	d.WriteString("  ratio: {expr: f0 / f1, default: 7}\n")
	return d.String()
}

// Multi-hop features equal the model on random events: out of order, late and repeated.
func TestMultiHopEqualsModel(t *testing.T) {
	r := defined.Registry(t, throughDefinitions())
	found, capped := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		model, mapper, stored := New(r), r.NewMapper(), memory.New()
		var written []record.Record
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			at := recorded*1000 + rapid.Int64Range(-40, 40).Draw(t, "time")*500
			if rapid.IntRange(0, 9).Draw(t, "late") == 0 {
				at -= 7_200_000 // for all but lifetimes
			}
			rec := record.Record{Partition: state.Partition{Topic: "pay"}, Timestamp: recorded*1000 + 60_000, Value: eventAt(t, at)}
			if n := len(written); n > 0 && rapid.IntRange(0, 9).Draw(t, "again") == 0 {
				rec = written[rapid.IntRange(0, n-1).Draw(t, "which")]
			}
			written = append(written, rec)
			applyToBoth(t, model, mapper, stored, &rec)
		}
		at := recorded*1000 + rapid.Int64Range(-40, 80).Draw(t, "at")*500
		for _, f := range r.Features {
			for _, entity := range []string{"a", "s1"} {
				got, want := answer(t, stored, f, entity, at, at), model.Answer(f, entity, at)
				if _, derived := f.Basis.(*features.Derived); !want.Found && !derived {
					want.Value = f.Function.Spec().Neutral
				}
				diff := cmp.Diff(want.Value, got.Value) + cmp.Diff(want.Items, got.Items)
				if diff != "" || (want.Found || want.Capped) != (got.Status != query.NotFound) || want.Capped != got.Capped || got.Exact == got.Capped {
					t.Fatalf("%s of %s is %+v (-model +answer):\n%s", f.Definition, entity, got, diff)
				}
				if want.Found {
					found++
				}
				if want.Capped {
					capped++
				}
			}
		}
	})
	if found == 0 || capped == 0 {
		t.Fatalf("%d answers were found and %d capped, want some of each", found, capped)
	}
}

// Members with quotation marks name the entities that events have written.
func TestMultiHopOfQuotedMembers(t *testing.T) {
	r := defined.Registry(t, definitions+`
  shared: COUNT_DISTINCT(1h, pay, SET(1h, pay, user, device), user)
  spent: SUM(1h, pay, amount, SET(1h, pay, device, user), tile=exact)
`)
	f := &fixture{t, r, New(r)}
	f.apply(0, `"user":"a|b","device":"d\\","amount":1.10`)
	f.apply(1, `"user":"c","device":"d\\","amount":2.20`)
	f.apply(2, `"user":"c","device":"|","amount":4.40`)
	f.want(`a\|b`, 3, map[string]string{"shared": "2"})
	f.want("c", 3, map[string]string{"shared": "2"})
	f.want(`d\\`, 3, map[string]string{"spent": "7.7"})
	f.want(`\|`, 3, map[string]string{"spent": "6.6"})
	f.want("nobody", 3, map[string]string{"shared": "0 nothing", "spent": "0 nothing"})
}
