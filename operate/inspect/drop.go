package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/inspector"
)

// Dropper is a Store that can drop damaged state.
type Dropper interface {
	Store
	Drop(ctx context.Context, held inspector.Held, kept packed.Salvage, keep int64) (until int64, err error)
}

// Scope is what Drop drops.
type Scope struct {
	Keys     map[string]string // of the entity
	Features []string          // only what these need; none: all
	All      bool              // also what can be read
	DryRun   bool
}

// Dropped is what was dropped of one key, or would be.
type Dropped struct {
	Entity map[string]string `json:"entity"`
	Key    string            `json:"key"`
	Damage string            `json:"damage,omitempty"` // empty where nothing is wrong
	Bytes  int               `json:"bytes"`            // held before
	Kept   int               `json:"kept"`             // bytes of what can be read
	// Lost are the features that lack events of the entity from now on, with the
	// event time, in ms, from which on they are complete.
	Lost map[string]int64 `json:"complete_since"`

	by []string
}

// Drop drops what is damaged of an entity and keeps what can be read. Answers say
// since when they are complete from then on. Events that come meanwhile are kept,
// or the key is left as it is, with inspector.ErrChanged. Keys with nothing to drop are
// not listed.
func Drop(ctx context.Context, s Dropper, registry *features.Registry, scope Scope) ([]Dropped, error) {
	wanted, all, err := find(registry, scope.Keys, scope.Features)
	if err != nil {
		return nil, err
	}
	list := []Dropped{}
	for _, g := range wanted {
		entity, err := g.entity(scope.Keys)
		if err != nil {
			return nil, err
		}
		held, err := s.Inspect(ctx, all[g.name].series[0], entity)
		if err != nil {
			return nil, err
		}
		if held.ParentDamage != nil {
			return list, fmt.Errorf("%s: drop what is damaged of the parent first", ofParent(held))
		}
		kept := salvage(all[g.name], held, scope.All)
		if kept.Wrong == nil && (!scope.All || len(held.Packed) == 0) {
			continue
		}
		_, until, err := s.ShardProgress(ctx, held.Shard)
		if err == nil && !scope.DryRun {
			until, err = s.Drop(ctx, held, kept, all[g.name].series[0].GroupKeep)
		}
		if err != nil {
			return list, err
		}
		d := Dropped{Entity: map[string]string{}, Key: held.Key, Bytes: len(held.Packed), Kept: len(kept.Kept)}
		if kept.Wrong != nil {
			d.Damage = kept.Wrong.Error()
		}
		for _, key := range g.keys {
			d.by = append(d.by, key.Name)
			d.Entity[key.Name] = scope.Keys[key.Name]
		}
		d.Lost = lost(registry, all[g.name], kept.Tags, until)
		list = append(list, d)
	}
	return list, nil
}

// salvage finds out what can be kept of a key.
func salvage(g *group, held inspector.Held, nothing bool) packed.Salvage {
	kept := packed.Salvaged(held.Packed, g.tagged)
	if held.Type != "" {
		kept.Wrong = errors.New(foreign(held))
	}
	if nothing {
		kept.Kept, kept.Tags = nil, nil
	}
	return kept
}

// lost are the features that need one of the series with tags, of all series of a
// group where there are none, and since when they are complete.
func lost(registry *features.Registry, g *group, tags []uint32, until int64) map[string]int64 {
	since := map[string]int64{}
	for _, f := range registry.Features {
		for _, s := range f.Series {
			if !slices.Contains(g.series, s) || len(tags) > 0 && !slices.Contains(tags, s.Tag()) {
				continue
			}
			stream, _ := registry.Stream(s.Stream)
			since[f.Name] = max(since[f.Name], until+stream.MaxFuture.Milliseconds()+1)
		}
	}
	return since
}

// WriteDropped writes for people what was dropped, or would be.
func WriteDropped(out io.Writer, list []Dropped, dryRun bool) error {
	if len(list) == 0 {
		_, err := io.WriteString(out, "nothing of it is damaged; --all drops also what can be read\n")
		return err
	}
	dropped, complete := "dropped", "complete"
	if dryRun {
		dropped, complete = "to drop", "would be complete"
	}
	var text strings.Builder
	for _, d := range list {
		for i, name := range d.by {
			if i > 0 {
				text.WriteByte(' ')
			}
			fmt.Fprintf(&text, "%s=%s", name, d.Entity[name])
		}
		fmt.Fprintf(&text, "\n  key       %s\n", visible(d.Key))
		if d.Damage != "" {
			fmt.Fprintf(&text, "  damaged   %s\n", d.Damage)
		}
		fmt.Fprintf(&text, "  %-8s  all but %s of %s\n", dropped, number(d.Kept, "byte"), number(d.Bytes, "byte"))
		for _, name := range slices.Sorted(maps.Keys(d.Lost)) {
			fmt.Fprintf(&text, "  %s %s since %s\n", name, complete, moment(d.Lost[name]))
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
