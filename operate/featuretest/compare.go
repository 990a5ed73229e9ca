package featuretest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// said maps the parts of an answer that an expectation in the long form may name.
var said = map[string]func(*query.Answer) string{
	"value":  func(a *query.Answer) string { return string(a.AppendValue(nil)) },
	"status": func(a *query.Answer) string { return strconv.Quote(string(a.Status)) },
	"exact":  func(a *query.Answer) string { return strconv.FormatBool(a.Exact) },
	"capped": func(a *query.Answer) string { return strconv.FormatBool(a.Capped) },
}

// differs describes how an answer differs from an expectation; "" if it does not. The expectation is a value, or any of
// {value, status, exact, capped}.
func differs(f *file, feature *features.Feature, a *query.Answer, want *yaml.Node) string {
	if !longForm(want) {
		return f.valueDiffers(feature, a, want)
	}
	var all []string
	each(want, func(key, v *yaml.Node) {
		if key.Value == "value" {
			if d := f.valueDiffers(feature, a, v); d != "" {
				all = append(all, d)
			}
			return
		}
		if got, wanted := said[key.Value](a), toJSON(v); got != wanted {
			all = append(all, fmt.Sprintf("expected %s %s, got %s", key.Value, strings.Trim(wanted, `"`), strings.Trim(got, `"`)))
		}
	})
	return strings.Join(all, "; ")
}

// longForm reports whether an expectation names parts of the answer, and is not itself a value.
func longForm(want *yaml.Node) bool {
	long := want.Kind == yaml.MappingNode && len(want.Content) > 0
	each(want, func(key, _ *yaml.Node) {
		if said[key.Value] == nil {
			long = false
		}
	})
	return long
}

func (f *file) valueDiffers(feature *features.Feature, a *query.Answer, want *yaml.Node) string {
	moments := feature.Type() == value.Timestamp
	if moments {
		want = f.inMilliseconds(want)
	}
	wanted, got := toJSON(want), string(a.AppendValue(nil))
	if equal(decoded([]byte(wanted)), decoded([]byte(got)), feature.Type()) {
		return ""
	}
	if moments {
		wanted, got = f.asMoments(wanted), f.asMoments(got)
	}
	return fmt.Sprintf("expected %s, got %s%s", wanted, got, f.details(a))
}

// inMilliseconds returns an expectation in which moments, also those in lists and by category, are numbers as in answers.
func (f *file) inMilliseconds(want *yaml.Node) *yaml.Node {
	n := *resolved(want)
	if ms, err := f.parseMoment(n.Value); err == nil && n.Kind == yaml.ScalarNode {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(ms, 10), Line: n.Line, Column: n.Column}
	}
	n.Content = slices.Clone(n.Content)
	for i := range n.Content {
		if n.Kind == yaml.SequenceNode || i%2 == 1 {
			n.Content[i] = f.inMilliseconds(n.Content[i])
		}
	}
	return &n
}

// asMoments formats the number, or the numbers of a list, in JSON as moments. It returns other JSON unchanged.
func (f *file) asMoments(text string) string {
	switch v := decoded([]byte(text)).(type) {
	case json.Number:
		if ms, err := v.Int64(); err == nil {
			return f.momentText(ms)
		}
	case []any:
		var all []string
		for _, item := range v {
			n, ok := item.(json.Number)
			if !ok {
				return text
			}
			all = append(all, f.asMoments(n.String()))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	return text
}

// details describes the basis of an answer.
func (f *file) details(a *query.Answer) string {
	var all []string
	if a.Status != query.Present {
		all = append(all, string(a.Status))
	}
	switch {
	case a.Status == query.OutsideMaxAge:
	case a.From == state.MinTime:
		all = append(all, "all until "+f.momentText(a.To))
	default:
		all = append(all, "from "+f.momentText(a.From)+" to "+f.momentText(a.To))
	}
	if a.Capped {
		all = append(all, "capped")
	}
	if off := max(a.StandardError, a.RelativeError); a.Shape == aggregate.Scalar && off > 0 {
		all = append(all, fmt.Sprintf("an estimate within %.1f%%", 100*off))
	}
	return " (" + strings.Join(all, ", ") + ")"
}

// equal compares JSON with values of a type. Numbers are compared to as many fractional digits as expected, unless the
// type has only whole ones.
func equal(want, got any, typ value.Type) bool {
	switch want := want.(type) {
	case json.Number:
		got, ok := got.(json.Number)
		return ok && equalNumbers(want.String(), got.String(), typ)
	case []any:
		got, ok := got.([]any)
		return ok && slices.EqualFunc(want, got, func(w, g any) bool { return equal(w, g, typ) })
	case map[string]any:
		got, ok := got.(map[string]any)
		return ok && maps.EqualFunc(want, got, func(w, g any) bool { return equal(w, g, typ) })
	default:
		return want == got
	}
}

func equalNumbers(want, got string, typ value.Type) bool {
	w, ok1 := new(big.Rat).SetString(want)
	g, ok2 := new(big.Rat).SetString(got)
	if !ok1 || !ok2 {
		return want == got
	}
	if w.Cmp(g) == 0 {
		return true
	}
	switch typ {
	case value.Float:
		x, _ := w.Float64()
		y, _ := g.Float64()
		if math.Abs(x-y) <= 1e-12*math.Abs(x) {
			return true // differs only in the last digits of a float
		}
	case value.Decimal:
	default:
		return false
	}
	_, behind, fraction := strings.Cut(want, ".")
	return fraction && !strings.ContainsAny(behind, "eE") && g.FloatString(len(behind)) == w.FloatString(len(behind))
}

// momentText formats a moment: the time, and how long after the start.
func (f *file) momentText(ms int64) string {
	text := spelling.Moment(ms)
	offset := time.Duration(ms-f.start) * time.Millisecond
	if offset%time.Second != 0 {
		return text
	}
	if offset < 0 {
		return text + " [-" + window.FormatDuration(-offset) + "]"
	}
	return text + " [+" + window.FormatDuration(offset) + "]"
}
