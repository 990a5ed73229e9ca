package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// result is the report of a round, written as a line of JSON.
type result struct {
	Seed       uint64         `json:"seed"`
	Topology   string         `json:"topology"`
	Partitions int            `json:"partitions"`
	Shards     int            `json:"shards"`
	Processors int            `json:"processors"`
	Features   int            `json:"features"`
	Records    int            `json:"records"` // committed records
	Faults     map[string]int `json:"faults"`
	Exits      int            `json:"exits"` // processes that exited by themselves and were restarted
	// TakenOver counts the positions with slices ahead from which processors started; see [round.start].
	TakenOver int `json:"taken_over"`
	Compared  int `json:"compared"`
	// Watched counts the questions that were asked while definitions were reloaded; see [round.watch].
	Watched int `json:"watched,omitempty"`
	// Incomplete counts answers that rightly report missing events.
	Incomplete  int      `json:"incomplete"`
	Differences int      `json:"differences"`
	Seconds     float64  `json:"seconds"`
	Failures    []string `json:"failures,omitempty"` // the first differences and other failures
}

// summary adds up rounds.
type summary struct {
	rounds, failed, compared, incomplete, differences, takenOver int

	topologies, faults map[string]int
	seeds              []uint64 // of failed rounds
}

func (s *summary) add(r result) {
	if s.faults == nil {
		s.faults, s.topologies = map[string]int{}, map[string]int{}
	}
	s.rounds++
	s.compared += r.Compared
	s.incomplete += r.Incomplete
	s.differences += r.Differences
	s.takenOver += r.TakenOver
	s.topologies[r.Topology]++
	for name, n := range r.Faults {
		s.faults[name] += n
	}
	if len(r.Failures) > 0 {
		s.failed++
		s.seeds = append(s.seeds, r.Seed)
	}
}

// text summarizes all rounds in some lines.
func (s *summary) text(took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rounds in %v (%s): %d values compared, %d differences; %d answers said that they are not complete\n",
		s.rounds, took.Round(time.Second), counts(s.topologies), s.compared, s.differences, s.incomplete)
	fmt.Fprintf(&b, "faults: %s\n", counts(s.faults))
	if s.faults[backlog.name] > 0 {
		fmt.Fprintf(&b, "processors that were killed left %d positions with slices ahead to their successors\n", s.takenOver)
	}
	if s.failed > 0 {
		fmt.Fprintf(&b, "%d rounds failed, of the seeds %v\n", s.failed, s.seeds)
	}
	return b.String()
}

func counts(by map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, by[name]))
	}
	return strings.Join(parts, ", ")
}
