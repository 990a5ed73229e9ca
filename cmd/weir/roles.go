package main

import (
	"errors"
	"fmt"
)

// roles are what one process does.
type roles struct {
	processor bool // applies events
	api       bool // answers questions
}

// parseRoles reads the names of roles; at least one is wanted.
func parseRoles(names []string) (r roles, err error) {
	for _, name := range names {
		switch name {
		case "processor":
			r.processor = true
		case "api":
			r.api = true
		default:
			return roles{}, fmt.Errorf("--roles: %q is no role: processor, api or both with a comma", name)
		}
	}
	if len(names) == 0 {
		return roles{}, errors.New("--roles: at least one of processor and api is wanted")
	}
	return r, nil
}
