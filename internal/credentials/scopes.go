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
	query, admin bool
	services     []string
}

// The words of scopes.
const (
	queryScope   = "query"    // questions about all features, and which entities are busiest
	adminScope   = "admin"    // for operators: metrics, definitions, dead letters
	serviceScope = "service:" // and a name: questions about the features of that service
)

var serviceName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// AllScopes returns those of a client that may ask for everything.
func AllScopes() Scopes { return Scopes{query: true, admin: true} }

// readScopes parses scopes: "query", "admin", "service:NAME". The error does not show an invalid
// one, which may be a token.
func readScopes(words []string) (Scopes, error) {
	var s Scopes
	for i, word := range words {
		if !s.add(word) {
			return Scopes{}, fmt.Errorf("scope %d is unknown: the scopes are query, admin and service:NAME", i+1)
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
	case word == adminScope:
		s.admin = true
	case limited && serviceName.MatchString(service):
		s.services = append(s.services, service)
	default:
		return false
	}
	return true
}

// Admin reports whether the metrics and the status may be asked for.
func (s Scopes) Admin() bool { return s.admin }

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
	if s.query {
		words = append(words, queryScope)
	}
	if s.admin {
		words = append(words, adminScope)
	}
	for _, service := range s.services {
		words = append(words, serviceScope+service)
	}
	if words == nil {
		return "none"
	}
	return strings.Join(words, " ")
}
