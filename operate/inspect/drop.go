package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/refill"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store/redis/inspector"
)

// Dropper is a Store that can drop damaged state, and restore it from the log.
type Dropper interface {
	Store
	Drop(ctx context.Context, held packed.Held, kept []byte, loss packed.Loss, keep int64) (*progress.Record, error)
	Refill(ctx context.Context, held packed.Held, r inspector.Refill) error
	Fills(ctx context.Context, p *state.Plan) ([]*state.Fill, error)
	SeriesUsed(ctx context.Context) (map[string]time.Time, error)
	Log(ctx context.Context, tag string) (state.LogID, error)
	Seal(ctx context.Context) (state.Seal, error)
}

// Scope selects what to drop.
type Scope struct {
	Keys     map[string]string // of the entity
	Features []string          // only what these need; all if empty
	All      bool              // also readable state
	DryRun   bool
	// Refill configures reading the log to restore what is dropped, and what was dropped before; nil for no refill.
	Refill *refill.Config
}

// Dropped describes what was, or would be, dropped from one key.
type Dropped struct {
	Entity map[string]string `json:"entity"`
	Key    string            `json:"key"`
	Damage string            `json:"damage,omitempty"` // empty if nothing is wrong
	Bytes  int               `json:"bytes"`            // held before
	Kept   int               `json:"kept"`             // bytes of what can be read
	// Refilled is what was restored; nil if no refill was requested.
	Refilled *Refilled `json:"refilled,omitempty"`
	// Lost maps the features that now lack events of the entity to the event time, in ms, since which they are
	// complete.
	Lost map[string]int64 `json:"complete_since"`

	by []string
}

// Drop drops the damaged state of an entity and keeps what can be read. Answers then state since when they are
// complete. Events that are applied meanwhile are kept, or the key is left unchanged, with inspector.ErrChanged. Keys
// with nothing to drop are not listed. With a refill, the registry must be that of the processors' plan.
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
		of := &dropping{store: s, registry: registry, scope: scope, group: all[g.name], entity: entity}
		d, err := of.run(ctx)
		if err != nil {
			return list, err
		}
		if d != nil {
			list = append(list, *d)
		}
	}
	return list, nil
}

// dropping is the drop of one key.
type dropping struct {
	store    Dropper
	registry *features.Registry
	scope    Scope
	group    *group
	entity   string
}

// run drops what must be dropped; nil if nothing.
func (d *dropping) run(ctx context.Context) (*Dropped, error) {
	if d.scope.Refill != nil {
		r := &refilling{dropping: d}
		defer r.close()
		return r.run(ctx)
	}
	held, err := d.inspect(ctx)
	if err != nil {
		return nil, err
	}
	kept := d.salvage(held)
	if kept.Wrong == nil && (!d.scope.All || len(held.Packed) == 0) {
		return nil, nil
	}
	record, err := d.store.ShardProgress(ctx, held.Shard)
	if err == nil && !d.scope.DryRun {
		record, err = d.store.Drop(ctx, held, kept.Kept, packed.Loss{Tags: kept.Tags}, d.group.any().GroupKeep)
	}
	if err != nil {
		return nil, err
	}
	return d.dropped(held, kept, packed.Losses{{Until: record.Newest(), Tags: kept.Tags}}), nil
}

// inspect reads the key. The error is that of the store, or that the parent's key must be repaired
// first.
func (d *dropping) inspect(ctx context.Context) (packed.Held, error) {
	held, err := d.store.Inspect(ctx, d.group.any(), d.entity)
	if err == nil && held.ParentDamage != nil {
		err = fmt.Errorf("%s: drop what is damaged of the parent first", ofParent(held))
	}
	return held, err
}

// salvage finds what can be kept of the key.
func (d *dropping) salvage(held packed.Held) packed.Salvage {
	kept := packed.Salvaged(held.Packed, d.group.tagged)
	if held.Type != "" {
		kept.Wrong = errors.New(foreign(held))
	}
	if d.scope.All {
		kept.Kept, kept.Tags = nil, nil
	}
	return kept
}

// dropped describes what was dropped of the key, and what is lost.
func (d *dropping) dropped(held packed.Held, kept packed.Salvage, losses packed.Losses) *Dropped {
	out := &Dropped{Entity: map[string]string{}, Key: held.Key, Bytes: len(held.Packed), Kept: len(kept.Kept), Lost: map[string]int64{}}
	if kept.Wrong != nil {
		out.Damage = kept.Wrong.Error()
	}
	for _, key := range d.group.keys {
		out.by = append(out.by, key.Name)
		out.Entity[key.Name] = d.scope.Keys[key.Name]
	}
	for _, f := range d.registry.Features {
		for _, s := range f.Series {
			of := losses
			if s.Parent == d.group.name {
				of = losses.OfChildren(state.EmbeddingTag(s.Group))
			} else if s.Group != d.group.name {
				continue
			}
			if until := of.Of(s.Tag()); until != nil {
				out.Lost[f.Name] = max(out.Lost[f.Name], *until+1)
			}
		}
	}
	return out
}

// WriteDropped writes as text what of a scope was, or would be, dropped.
func WriteDropped(text *strings.Builder, list []Dropped, scope Scope) {
	if len(list) == 0 {
		said := "nothing is damaged; --all also drops what can be read\n"
		if scope.All {
			said = "there is nothing to drop\n"
		}
		text.WriteString(said)
		return
	}
	dropped, complete := "dropped", "complete"
	if scope.DryRun {
		dropped, complete = "to drop", "would be complete"
	}
	for _, d := range list {
		for i, name := range d.by {
			if i > 0 {
				text.WriteByte(' ')
			}
			fmt.Fprintf(text, "%s=%s", name, d.Entity[name])
		}
		fmt.Fprintf(text, "\n  key       %s\n", visible(d.Key))
		if d.Damage != "" {
			fmt.Fprintf(text, "  damaged   %s\n", d.Damage)
		}
		fmt.Fprintf(text, "  %-8s  all but %s of %s\n", dropped, spelling.Counted(d.Kept, "byte"), spelling.Counted(d.Bytes, "byte"))
		if r := d.Refilled; r != nil {
			r.writeText(text, scope.DryRun)
		}
		for _, name := range slices.Sorted(maps.Keys(d.Lost)) {
			fmt.Fprintf(text, "  %s %s since %s\n", name, complete, spelling.Moment(d.Lost[name]))
		}
	}
}
