package cost

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/features"
)

// Workload is the load that a Sizing is computed for.
type Workload struct {
	Events    map[string]float64 // a second, by stream
	Entities  map[string]float64 // alive at a time, by their fields, joined with "+"
	Questions float64            // a second
	Memory    float64            // of the machine of one Redis master, in bytes
}

// defaultMemory is the memory of a Redis master's machine unless given.
const defaultMemory = 32 << 30

// ParseWorkload reads a workload of the registry's streams and entities: parts separated by commas.
//
//	events=100k/s         over all streams; transaction=60k/s is of one stream
//	entities=100M         over all kinds of them; user_id=20M is of one kind
//	questions=5k/s        none if left out
//	memory=64GiB          of a Redis master's machine, 32 GiB if left out
//
// What remains of a total is spread evenly over the streams or entities that are not named. The error names the part
// that is wrong.
func ParseWorkload(r *features.Registry, text string) (*Workload, error) {
	w := &Workload{Events: map[string]float64{}, Entities: map[string]float64{}, Memory: defaultMemory}
	streams, entities := sizedNames(r)
	totals := map[string]float64{}
	given := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%q: write events=100k/s,entities=100M, and optionally questions=5k/s or memory=64GiB", part)
		}
		rate := strings.HasSuffix(value, "/s")
		number, err := parseAmount(value)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", part, err)
		case given[name+strconv.FormatBool(rate)]:
			return nil, fmt.Errorf("%s: %s is given twice", part, name)
		case name == "memory" && !rate:
			if number < 1<<30 {
				return nil, fmt.Errorf("%s: it must be at least 1GiB", part)
			}
			w.Memory = number
		case name == "questions" && rate:
			w.Questions = number
		case name == "events" && rate, name == "entities" && !rate:
			totals[name] = number
		case rate && slices.Contains(streams, name):
			w.Events[name] = number
		case !rate && slices.Contains(entities, name):
			w.Entities[name] = number
		default:
			return nil, fmt.Errorf("%s: %s", part, unsized(name, rate, streams, entities))
		}
		given[name+strconv.FormatBool(rate)] = true
	}
	if err := spread(w.Events, streams, totals, "events", "events=100k/s"); err != nil {
		return nil, err
	}
	return w, spread(w.Entities, entities, totals, "entities", "entities=100M")
}

// sizedNames returns the streams and kinds of entities that features depend on.
func sizedNames(r *features.Registry) (streams, entities []string) {
	for _, s := range r.Series {
		if name := strings.Join(s.By, "+"); !slices.Contains(entities, name) {
			entities = append(entities, name)
		}
		if !slices.Contains(streams, s.Stream) {
			streams = append(streams, s.Stream)
		}
	}
	slices.Sort(streams)
	slices.Sort(entities)
	return streams, entities
}

// unsized describes what is wrong with a name.
func unsized(name string, rate bool, streams, entities []string) string {
	known := append(streams, "events", "questions")
	switch {
	case !rate && slices.Contains(known, name):
		return "it must be a rate, such as 100k/s"
	case rate && slices.Contains(append(entities, "entities", "memory"), name):
		return "it must be a number, not a rate"
	case rate:
		return fmt.Sprintf("there is no stream %q with features; write events, questions, or a stream: %s", name, strings.Join(streams, ", "))
	default:
		return fmt.Sprintf("there are no features of the entity %q; write entities, memory, or an entity: %s", name, strings.Join(entities, ", "))
	}
}

// spread divides the rest of a total evenly among the names that have no amount.
func spread(of map[string]float64, names []string, totals map[string]float64, what, example string) error {
	total, ok := totals[what]
	var rest []string
	for _, name := range names {
		if _, named := of[name]; named {
			total -= of[name]
		} else {
			rest = append(rest, name)
		}
	}
	switch {
	case !ok && len(rest) > 0:
		return fmt.Errorf("%s: no value for %s; write %s for all", strings.Join(rest, ", "), what, example)
	case ok && total < 0:
		return fmt.Errorf("%s: less than those of %s together", what, strings.Join(slices.Sorted(maps.Keys(of)), ", "))
	}
	for _, name := range rest {
		of[name] = total / float64(len(rest))
	}
	return nil
}

var errAmount = errors.New("it must be a number above 0, such as 2500, 100k, 1.5M or 64GiB, and /s for a rate")

var amountUnits = []struct {
	name string
	size float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9},
}

// parseAmount reads a number with its unit; a trailing /s is skipped.
func parseAmount(text string) (float64, error) {
	text, unit := strings.TrimSuffix(text, "/s"), 1.0
	for _, u := range amountUnits {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = digits, u.size
			break
		}
	}
	if strings.Trim(text, "0123456789.") != "" {
		return 0, errAmount
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n <= 0 || n*unit > 1e15 {
		return 0, errAmount
	}
	return n * unit, nil
}
