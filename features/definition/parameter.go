package definition

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// parameters reads the parameters of a function besides its field. It returns the condition, nil if there is none.
func (l *compiler) parameters(d *writtenFeature, f *features.Feature, spec aggregate.Spec) (condition *expr.Expr) {
	taken := map[string]bool{}
	for _, p := range spec.Parameters {
		taken[p.Name] = true
		w := *d.parameters[p.Name]
		if !w.given() {
			if p.Default == "" {
				l.report(d.name.location, "feature %q needs %s: %s", f.Name, p.Name, wanted(p))
				continue
			}
			w = word{text: p.Default}
		}
		switch bad := func() { l.report(w.location, "bad %s %q: it must be %s", p.Name, w.text, wanted(p)) }; p.Type {
		case aggregate.Whole:
			n, err := strconv.Atoi(w.text)
			if err != nil || n < p.Min || n > p.Max {
				bad()
			}
			f.Call.N = n
		case aggregate.Fraction:
			share, ok := floatOf(w.text)
			if !ok || share < 0 || share > 1 {
				bad()
			}
			f.Call.P = share
		case aggregate.Accuracy:
			off, ok := floatOf(w.text)
			if !ok || off < 0.001 || off > 0.1 {
				bad()
			}
			f.Call.Error = off
		case aggregate.Rate:
			rate, ok := floatOf(w.text)
			if !ok || rate < minRate || rate > maxRate {
				bad()
			}
			f.Call.P = rate
		case aggregate.Span:
			span, ok := l.duration(w)
			if ok && span == 0 {
				l.report(w.location, "%s must be longer than 0", p.Name)
			}
			f.Call.Duration = span.Milliseconds()
		case aggregate.Choice:
			if f.Call.N = slices.Index(p.Choices, w.text); f.Call.N < 0 {
				l.report(w.location, "%s", spelling.Unknown(p.Name, w.text, p.Choices))
			}
		case aggregate.Edges:
			if f.Call.Type == value.Null || !slices.Contains(spec.Types, f.Call.Type) {
				continue // the field has a finding already
			}
			bins, ok := edges(w.text, f.Call.Type, f.Call.Scale)
			switch {
			case !ok:
				bad()
			case len(bins) > p.Max:
				l.report(w.location, "%s has %d values; the limit is %d", p.Name, len(bins), p.Max)
			}
			f.Call.Bins = bins
		case aggregate.Condition:
			if expr.NamesEvent(w.text) {
				l.report(w.location, "%s does not compare with the event in hand, only a filter does: write where='…', and divide by the same feature without it in a derived feature", p.Name)
				continue
			}
			if typesKnown(f.Stream.Fields) {
				if condition = l.where(f.Stream, w); condition != nil {
					f.Condition = condition.Text
				}
			}
		}
	}
	l.notTaken(d, spec, taken)
	return condition
}

// enough reports a max that is too low for as many values as the function wants.
func (l *compiler) enough(d *writtenFeature, f *features.Feature) {
	wants, what := map[string]int{"k": f.Call.N, "n": f.Call.N + 1}, "values"
	if f.Window.Exact {
		what = "events"
	}
	for _, p := range f.Spec.Parameters {
		least := wants[p.Name]
		if least > 0 && f.Window.Exclude != window.ExcludeNothing {
			least++
		}
		if d.max.given() && 0 < f.Call.Max && f.Call.Max < least && f.Call.N <= p.Max {
			l.report(d.max.location, "max %d keeps too few %s for %s=%d; it must be %d or more", f.Call.Max, what, p.Name, f.Call.N, least)
		}
	}
}

// notTaken reports given parameters that the function does not take.
func (l *compiler) notTaken(d *writtenFeature, spec aggregate.Spec, taken map[string]bool) {
	takes := "no parameters"
	if len(spec.Parameters) > 0 {
		var names []string
		for _, p := range spec.Parameters {
			names = append(names, p.Name)
		}
		takes = strings.Join(names, ", ")
	}
	for name, w := range d.parameters {
		if w.given() && !taken[name] {
			l.report(w.location, "%s takes no %s; it takes %s", called(spec), name, takes)
		}
	}
}

// wanted describes what a parameter takes.
func wanted(p aggregate.Parameter) string {
	switch p.Type {
	case aggregate.Whole:
		return "a number from " + strconv.Itoa(p.Min) + " to " + strconv.Itoa(p.Max)
	case aggregate.Fraction:
		return "a number from 0 to 1"
	case aggregate.Accuracy:
		return "a number from 0.001 to 0.1"
	case aggregate.Rate:
		return "a number from " + formatFloat(minRate) + " to " + formatFloat(maxRate)
	case aggregate.Span:
		return "a duration such as 1h"
	case aggregate.Edges:
		return "a list of ascending values of the field's type, such as [10, 100]"
	case aggregate.Choice:
		return strings.Join(p.Choices, " or ")
	default:
		return "an expression over the fields of the stream"
	}
}

// parameterText returns the value of a feature's parameter in canonical form.
func parameterText(f *features.Feature, p aggregate.Parameter) string {
	switch p.Type {
	case aggregate.Whole:
		return strconv.Itoa(f.Call.N)
	case aggregate.Fraction, aggregate.Rate:
		return formatFloat(f.Call.P)
	case aggregate.Accuracy:
		return formatFloat(f.Call.Error)
	case aggregate.Span:
		return window.FormatDuration(time.Duration(f.Call.Duration) * time.Millisecond)
	case aggregate.Edges:
		var texts []string
		for _, v := range f.Call.Bins {
			texts = append(texts, string(v.AppendText(nil)))
		}
		return "[" + strings.Join(texts, ", ") + "]"
	case aggregate.Choice:
		return p.Choices[f.Call.N]
	default:
		return quote(f.Condition)
	}
}

// minRate and maxRate bound a probability of errors.
const minRate, maxRate = 0.000001, 0.5

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// edgesWord returns the text of a list in square brackets, written as a YAML sequence or as a text.
func (l *compiler) edgesWord(n node) word {
	if n.Kind == yaml.ScalarNode {
		w, _ := l.scalar(n, "bins")
		return w
	}
	var texts []string
	for _, w := range l.list(n, "bins") {
		texts = append(texts, w.text)
	}
	if texts == nil {
		return word{}
	}
	return word{text: "[" + strings.Join(texts, ", ") + "]", location: n.location()}
}

// edges reads a list of one or more ascending values of a numeric type.
func edges(text string, t value.Type, scale uint8) (values []value.Value, ok bool) {
	if !strings.HasPrefix(text, "[") || !strings.HasSuffix(text, "]") {
		return nil, false
	}
	for part := range strings.SplitSeq(text[1:len(text)-1], ",") {
		v := value.Value{Type: t, Scale: scale}
		part = strings.TrimSpace(part)
		if t == value.Float {
			if v.Flt, ok = floatOf(part); !ok {
				return nil, false
			}
		} else {
			n, ok := value.ParseNumber([]byte(part))
			num, how := n.Scaled(int(scale))
			if !ok || how != value.Exact {
				return nil, false
			}
			v.Num = num
		}
		if len(values) > 0 && value.Compare(values[len(values)-1], v) >= 0 {
			return nil, false
		}
		values = append(values, v)
	}
	return values, true
}

// floatOf reads a number in JSON's syntax.
func floatOf(text string) (float64, bool) {
	if _, ok := value.ParseNumber([]byte(text)); !ok {
		return 0, false
	}
	f, ok := value.ParseFloat([]byte(text))
	return f, ok && !math.IsNaN(f)
}
