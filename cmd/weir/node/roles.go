package node

import (
	"errors"
	"fmt"
)

// Roles holds the roles of one process.
type Roles struct {
	Processor bool // applies events
	API       bool // answers questions
}

// ParseRoles parses the names of roles; at least one is required.
func ParseRoles(names []string) (r Roles, err error) {
	for _, name := range names {
		switch name {
		case "processor":
			r.Processor = true
		case "api":
			r.API = true
		default:
			return Roles{}, fmt.Errorf("--roles: %q is not a role: processor, api or both with a comma", name)
		}
	}
	if len(names) == 0 {
		return Roles{}, errors.New("--roles: needs at least one of processor and api")
	}
	return r, nil
}
