package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/client"
)

// severities lists the decisions, the least severe first.
var severities = []string{"approve", "review", "decline"}

// ruleSet is the content of rules.yaml.
type ruleSet struct {
	Service           string
	Features          []string
	Rules             []*rule
	Unknown           string     // the decision if a feature is not known
	ApproveUnanswered *condition `yaml:"approve_unanswered"`
}

// rule is a condition and the decision if it holds.
type rule struct {
	Name     string
	When     condition
	Decision string
}

// condition is a compiled expression.
type condition struct {
	source  string
	program *vm.Program
	names   []string // names used in the expression
}

// parse reads and compiles rules; the error lists every mistake.
func parse(text []byte) (*ruleSet, error) {
	set := new(ruleSet)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(set); err != nil {
		return nil, err
	}
	if len(set.Rules) == 0 || set.ApproveUnanswered == nil {
		return nil, errors.New("there must be rules and approve_unanswered")
	}
	env := map[string]any{"amount": 0.0}
	mistakes := []error{
		checkDecision("unknown", set.Unknown),
		set.ApproveUnanswered.compile("approve_unanswered", env),
	}
	for _, name := range set.Features {
		env[name] = 0.0
	}
	for _, r := range set.Rules {
		mistakes = append(mistakes, checkDecision(r.Name, r.Decision), r.When.compile(r.Name, env))
	}
	return set, errors.Join(mistakes...)
}

func checkDecision(where, decision string) error {
	if !slices.Contains(severities, decision) {
		return fmt.Errorf("%s: %q is none of the decisions %q", where, decision, severities)
	}
	return nil
}

// UnmarshalYAML keeps the expression as text; compile parses it.
func (c *condition) UnmarshalYAML(node *yaml.Node) error { return node.Decode(&c.source) }

// compile checks the expression against the types of the names it may use.
func (c *condition) compile(where string, env map[string]any) (err error) {
	if c.program, err = expr.Compile(c.source, expr.Env(env), expr.AsBool()); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	root := c.program.Node()
	ast.Walk(&root, c)
	return nil
}

// Visit collects the names in the expression.
func (c *condition) Visit(node *ast.Node) {
	if name, ok := (*node).(*ast.IdentifierNode); ok {
		c.names = append(c.names, name.Value)
	}
}

// holds evaluates the condition. It is false if a feature it uses is not known.
func (c *condition) holds(env map[string]any) (bool, error) {
	for _, name := range c.names {
		if _, ok := env[name]; !ok {
			return false, nil
		}
	}
	value, err := expr.Run(c.program, env)
	return value == true, err
}

// decision is the decision about a payment, with the rules that led to it and the values they saw.
type decision struct {
	Payment  string         `json:"payment"`
	Decision string         `json:"decision"`
	Reasons  []string       `json:"reasons"`
	Features map[string]any `json:"features"`
}

// add takes over the verdict of a rule that holds, if it is the most severe so far.
func (d *decision) add(reason, verdict string) {
	d.Reasons = append(d.Reasons, reason)
	if slices.Index(severities, verdict) > slices.Index(severities, d.Decision) {
		d.Decision = verdict
	}
}

// decide applies all rules to an amount and its features.
func (s *ruleSet) decide(amount float64, features map[string]client.Feature) (*decision, error) {
	d := &decision{Decision: severities[0], Reasons: []string{}, Features: map[string]any{}}
	for _, name := range s.Features {
		if value, ok := known(features[name]); ok {
			d.Features[name] = value
		}
	}
	if len(d.Features) < len(s.Features) {
		d.add("unknown_feature", s.Unknown)
	}
	env := maps.Clone(d.Features)
	env["amount"] = amount
	for _, r := range s.Rules {
		holds, err := r.When.holds(env)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		if holds {
			d.add(r.Name, r.Decision)
		}
	}
	slices.Sort(d.Reasons)
	return d, nil
}

// decideUnanswered decides by the amount alone.
func (s *ruleSet) decideUnanswered(amount float64) (*decision, error) {
	d := &decision{Decision: severities[0], Features: map[string]any{}}
	open, err := s.ApproveUnanswered.holds(map[string]any{"amount": amount})
	if err != nil {
		return nil, fmt.Errorf("approve_unanswered: %w", err)
	}
	if open {
		d.add("no_features", severities[0])
	} else {
		d.add("no_features", s.Unknown)
	}
	return d, nil
}

// known returns a feature's number. ok is false if the feature is OUTSIDE_MAX_AGE, younger than its
// window (INCOMPLETE), missing from the answer, or has a status that the client does not know:
// none of these counts as 0.
func known(f client.Feature) (float64, bool) {
	if !f.Known() {
		return 0, false
	}
	return f.Float()
}
