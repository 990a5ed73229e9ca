package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/state"
)

// Memory is what the change costs at the current number of entities.
type Memory struct {
	Store string `json:"store"`
	// Keys is how many keys the store has, and Looked at how many of them the entities were counted.
	Keys     int64     `json:"keys"`
	Looked   int64     `json:"looked_at"`
	Entities []Counted `json:"entities"` // whose estimated bytes change, by fields
	// Least and Most are the bytes by which the memory grows, negative if it shrinks: Least if each entity has one
	// event, Most if each has events in every tile that is kept.
	Least int64 `json:"bytes_least"`
	Most  int64 `json:"bytes_most"`
}

// Counted are the entities with the same fields.
type Counted struct {
	By []string `json:"by"`
	// Entities are those with keys of their own; Embedded says that most are kept in the keys of others,
	// so that their number is not known, and they are left out of Least and Most.
	Entities int64 `json:"entities"`
	Embedded bool  `json:"embedded,omitempty"`
	Least    int64 `json:"bytes_least"`
	Most     int64 `json:"bytes_most"`
}

// MemoryOf computes what the change costs, given how many keys were found in a store of some name.
func MemoryOf(before, after *features.Registry, store string, found *state.KeyCount) *Memory {
	m := &Memory{Store: store, Keys: found.Keys, Looked: found.Looked, Entities: []Counted{}}
	was := map[string]cost.Entity{}
	for _, e := range cost.Explain(before).Entities {
		was[strings.Join(e.By, "+")] = e
	}
	for _, is := range cost.Explain(after).Entities {
		m.add(was[strings.Join(is.By, "+")], is, after.Series, found)
		delete(was, strings.Join(is.By, "+"))
	}
	for _, gone := range was {
		m.add(gone, cost.Entity{By: gone.By}, before.Series, found)
	}
	slices.SortFunc(m.Entities, func(a, b Counted) int { return slices.Compare(a.By, b.By) })
	return m
}

// add adds the entities with some fields, unless their cost stays the same.
func (m *Memory) add(was, is cost.Entity, series []*state.Series, found *state.KeyCount) {
	if was.BytesOnce == is.BytesOnce && was.BytesFull == is.BytesFull {
		return
	}
	c := Counted{By: is.By}
	for _, s := range series {
		if slices.Equal(s.By, c.By) {
			c.Entities, c.Embedded = max(c.Entities, found.Groups[s.Group]), c.Embedded || found.Embeds && s.Parent != ""
		}
	}
	if !c.Embedded {
		once, full := (is.BytesOnce-was.BytesOnce)*c.Entities, (is.BytesFull-was.BytesFull)*c.Entities
		c.Least, c.Most = min(once, full), max(once, full)
		m.Least, m.Most = m.Least+c.Least, m.Most+c.Most
	}
	m.Entities = append(m.Entities, c)
}

// writeText writes the memory as text.
func (m *Memory) writeText(out *strings.Builder) {
	if len(m.Entities) == 0 {
		out.WriteString("memory: nothing changes\n")
		return
	}
	source := fmt.Sprintf("entities counted by their keys in %s, all %d", m.Store, m.Keys)
	if m.Looked < m.Keys {
		source = fmt.Sprintf("entities estimated from %d of the %d keys in %s", m.Looked, m.Keys, m.Store)
	}
	fmt.Fprintf(out, "memory, %s; bytes estimated as above\n", source)
	for _, c := range m.Entities {
		by := strings.Join(c.By, "+")
		switch {
		case c.Embedded:
			fmt.Fprintf(out, "  %s: not known: %d have keys of their own, the others are in the keys of %s\n", by, c.Entities, c.By[0])
		case c.Entities == 0:
			fmt.Fprintf(out, "  %s: not known: %s has none yet\n", by, m.Store)
		default:
			fmt.Fprintf(out, "  %s: %s for %d entities\n", by, growth(c.Least, c.Most), c.Entities)
		}
	}
	fmt.Fprintf(out, "  in all: %s\n", growth(m.Least, m.Most))
}

// growth formats the bytes by which memory grows.
func growth(least, most int64) string {
	const mebi = 1 << 20
	return fmt.Sprintf("%+.1f to %+.1f MiB", float64(least)/mebi, float64(most)/mebi)
}
