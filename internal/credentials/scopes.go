package credentials

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Client is an authenticated client, with what it may ask for.
type Client struct {
	Name   string // of a token's line, a token's subject or a certificate's subject; may be empty
	Scopes Scopes
}

// Scopes are what a client may ask for. The zero value allows nothing.
type Scopes struct {
	query, metrics, author, operator, lists bool
	services                                []string
}

// The words of scopes.
const (
	queryScope    = "query"    // questions about all features
	serviceScope  = "service:" // and a name: questions about the features of that service
	metricsScope  = "metrics"  // for Prometheus
	authorScope   = "author"   // for authors of definitions: what they say, and previews of others
	operatorScope = "operator" // for operators: the status, dead letters, entities with the most events or state
	listsScope    = "lists"    // to read and change lists
)

// scopeWords lists them for messages.
const scopeWords = "query, service:NAME, metrics, author, operator and lists"

var serviceName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// AllScopes returns those of a client that may ask for everything but lists: who may change something is always said.
func AllScopes() Scopes {
	return Scopes{query: true, metrics: true, author: true, operator: true}
}

// readScopes parses the words of scopes. The error does not show an invalid one, which may be a token.
func readScopes(words []string) (Scopes, error) {
	var s Scopes
	for i, word := range words {
		if word == "admin" {
			return Scopes{}, fmt.Errorf("scope %d, admin, allows too much to be one: name those of metrics, author, operator and lists that are needed", i+1)
		}
		if !s.add(word) {
			return Scopes{}, fmt.Errorf("scope %d is unknown: the scopes are %s", i+1, scopeWords)
		}
	}
	return s, nil
}

// add adds a word if it is a scope, and reports whether it is.
func (s *Scopes) add(word string) bool {
	service, limited := strings.CutPrefix(word, serviceScope)
	switch {
	case word == queryScope:
		s.query = true
	case word == metricsScope:
		s.metrics = true
	case word == authorScope:
		s.author = true
	case word == operatorScope:
		s.operator = true
	case word == listsScope:
		s.lists = true
	case limited && serviceName.MatchString(service):
		s.services = append(s.services, service)
	default:
		return false
	}
	return true
}

// Metrics reports whether the metrics may be asked for.
func (s Scopes) Metrics() bool { return s.metrics }

// Author reports whether definitions and previews may be asked for.
func (s Scopes) Author() bool { return s.author }

// Operator reports whether the status, dead letters and the entities with the most events or state may be asked for.
func (s Scopes) Operator() bool { return s.operator }

// Lists reports whether lists may be read and changed.
func (s Scopes) Lists() bool { return s.lists }

// Query reports whether any feature may be asked for.
func (s Scopes) Query() bool { return s.query || len(s.services) > 0 }

// Everything reports whether all features may be asked for.
func (s Scopes) Everything() bool { return s.query }

// Service reports whether all features of a service may be asked for.
func (s Scopes) Service(name string) bool { return s.query || slices.Contains(s.services, name) }

// Feature reports whether a feature may be asked for, by the services that it is in.
func (s Scopes) Feature(services []string) bool {
	return s.query || slices.ContainsFunc(services, s.Service)
}

// String lists the scopes as they are written.
func (s Scopes) String() string {
	var words []string
	for _, scope := range []struct {
		has  bool
		word string
	}{{s.query, queryScope}, {s.metrics, metricsScope}, {s.author, authorScope}, {s.operator, operatorScope}, {s.lists, listsScope}} {
		if scope.has {
			words = append(words, scope.word)
		}
	}
	for _, service := range s.services {
		words = append(words, serviceScope+service)
	}
	if words == nil {
		return "none"
	}
	return strings.Join(words, " ")
}
