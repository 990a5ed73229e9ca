package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/refill"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store/redis/inspector"
)

// Refilled describes what was, or would be, restored in a key from the log.
type Refilled struct {
	Records  int64 `json:"records"` // records read
	Events   int64 `json:"events"`  // events of the entity or its children
	Children int   `json:"children"`
	// Waiting lists features that are being backfilled: until that is done, it is unknown what they lack.
	Waiting []string `json:"waiting,omitempty"`
}

func (r *Refilled) writeText(text *strings.Builder, dryRun bool) {
	refilled := "refilled"
	if dryRun {
		refilled = "to refill"
	}
	fmt.Fprintf(text, "  %-9s from %s of %s in the log", refilled, spelling.Counted(int(r.Events), "event"), spelling.Counted(int(r.Records), "record"))
	if r.Children > 0 {
		children := "children"
		if r.Children == 1 {
			children = "child"
		}
		fmt.Fprintf(text, ", with %d %s", r.Children, children)
	}
	text.WriteByte('\n')
	if len(r.Waiting) > 0 {
		fmt.Fprintf(text, "  %s: refill again once the backfill is done\n", strings.Join(r.Waiting, ", "))
	}
}

// refilling drops the damaged or lost parts of a key, and restores them from the log. Records that the shard had
// applied before the drop come from the log; later ones are applied after it, as always.
type refilling struct {
	*dropping
	fills map[string]*state.Fill // by ID
	used  []uint32               // tags of series of other definitions, present or past

	log     *refill.Log // nil until it is read
	want    want        // what to read from the log
	dropped bool        // at least once
	last    *Dropped
}

// want lists what to restore: series of the group, and complete groups of children.
type want struct {
	series  map[*state.Series]bool
	waiting []string
}

// maxTries bounds how often it starts over because the key has changed, for example by an event.
const maxTries = 100

// run refills the key; nil if it lacks nothing.
func (r *refilling) run(ctx context.Context) (*Dropped, error) {
	if err := r.learn(ctx); err != nil {
		return nil, err
	}
	for range maxTries {
		done, err := r.try(ctx)
		switch {
		case errors.Is(err, refill.ErrBehind):
			r.close()
		case errors.Is(err, inspector.ErrChanged):
		case err != nil && r.dropped:
			return nil, fmt.Errorf("what was dropped is not refilled yet; run the command again: %w", err)
		default:
			return done, err
		}
	}
	return nil, fmt.Errorf("refill %s: %w", visible(r.entity), inspector.ErrChanged)
}

func (r *refilling) close() {
	if r.log != nil {
		r.log.Close()
		r.log = nil
	}
}

// learn finds which series the definitions fill, and which ones other definitions used recently.
func (r *refilling) learn(ctx context.Context) (err error) {
	fills, err := r.store.Fills(ctx, r.registry.Plan())
	if err != nil {
		return err
	}
	r.fills = map[string]*state.Fill{}
	for _, f := range fills {
		r.fills[f.ID] = f
	}
	used, err := r.store.SeriesUsed(ctx)
	for _, s := range r.registry.Series {
		delete(used, s.ID)
	}
	for id := range used {
		r.used = append(r.used, (&state.Series{ID: id}).Tag())
	}
	slices.Sort(r.used)
	return err
}

// try tries once to refill the key. The error is inspector.ErrChanged, refill.ErrBehind, or
// permanent.
func (r *refilling) try(ctx context.Context) (*Dropped, error) {
	held, err := r.inspect(ctx)
	if err != nil {
		return nil, err
	}
	kept, lacks := r.lacking(held)
	if !lacks {
		return r.last, nil
	}
	record, err := r.store.ShardProgress(ctx, held.Shard)
	if err == nil {
		// The log is read first: if it is unavailable, nothing is dropped yet, and little is left to read after the
		// drop.
		err = r.read(ctx, kept.Tags, record)
	}
	if err != nil {
		return nil, err
	}
	loss := packed.Loss{Mark: packed.NewMark(), Tags: kept.Tags}
	if !r.scope.DryRun {
		if record, err = r.store.Drop(ctx, held, kept.Kept, loss, r.group.any().GroupKeep); err != nil {
			return nil, err
		}
		r.dropped = true
		if err := r.read(ctx, kept.Tags, record); err != nil {
			return nil, err
		}
	}
	loss.Until = record.Newest()
	own, children, err := r.log.Contents(record.Newest())
	if err != nil {
		return nil, err
	}
	lost := r.lost(loss)
	r.last = r.dropping.dropped(held, kept, lost)
	r.last.Refilled = &Refilled{Records: r.log.Records, Events: r.log.Events, Children: len(children), Waiting: r.want.waiting}
	if r.scope.DryRun {
		return r.last, nil
	}
	return r.last, r.store.Refill(ctx, held, inspector.Refill{Dropped: loss, Sections: own, Lost: lost, Children: children})
}

// lacking returns what can be kept of the key, with the tags of what cannot (none means all), and whether the key lacks
// anything: damaged state, state that was dropped before, or readable state that must be dropped.
func (r *refilling) lacking(held packed.Held) (kept packed.Salvage, lacks bool) {
	kept = r.salvage(held)
	losses := lossesOf(held.Packed)
	all := r.scope.All || kept.Wrong != nil && len(kept.Tags) == 0
	for _, l := range losses {
		all = all || len(l.Tags) == 0
		kept.Tags = append(kept.Tags, l.Tags...)
	}
	slices.Sort(kept.Tags)
	kept.Tags = slices.Compact(kept.Tags)
	if all {
		kept.Tags = nil
	}
	kept.Kept = packed.Without(held.Packed, func(tag uint32) bool {
		return all || tag == packed.LossTag || tag == state.DamageTag || slices.Contains(kept.Tags, tag)
	})
	return kept, r.scope.All || kept.Wrong != nil || len(losses) > 0
}

// read reads the log up to the progress of the shard, for what is lost of the key.
func (r *refilling) read(ctx context.Context, tags []uint32, shard *progress.Record) error {
	want, err := r.wants(tags, shard)
	if err != nil {
		return err
	}
	if r.log != nil && !maps.Equal(want.series, r.want.series) {
		r.close()
	}
	if r.log == nil {
		secret, err := r.store.Secret(ctx)
		if err != nil {
			return err
		}
		seal, err := r.store.Seal(ctx)
		if err != nil {
			return err
		}
		r.want = want
		r.log = refill.Open(*r.scope.Refill, r.registry, &refill.Want{
			Group: r.group.name, Entity: r.entity, Series: want.series, Secret: secret, Seal: seal, LogOf: r.store.Log,
		})
	}
	return r.log.ReadTo(ctx, shard)
}

// wants returns which of the lost series can be restored now: not those that a backfill is still filling.
func (r *refilling) wants(tags []uint32, shard *progress.Record) (want, error) {
	undone := map[*state.Series]bool{}
	w := want{series: map[*state.Series]bool{}}
	for _, f := range r.fills {
		has := r.registry.FillHas(f)
		if !r.isFilled(f, shard) && slices.ContainsFunc(r.registry.Series, func(s *state.Series) bool { return has[s] && r.isLost(s, tags) }) {
			maps.Copy(undone, has)
			w.waiting = append(w.waiting, r.registry.FilledBy(f)...)
		}
	}
	slices.Sort(w.waiting)
	w.waiting = slices.Compact(w.waiting)
	apart := map[string]bool{} // groups with children that a backfill is still filling
	for s := range undone {
		apart[s.Group] = true
	}
	topics := map[string]bool{}
	for _, s := range r.registry.Series {
		if r.isLost(s, tags) && !undone[s] && (s.Group == r.group.name || !apart[s.Group]) {
			stream, _ := r.registry.Stream(s.Stream)
			w.series[s] = true
			for _, topic := range stream.Topics() {
				topics[topic] = true
			}
		}
	}
	for p, h := range shard.Held() {
		if topics[p.Topic] && h.Plan != r.registry.Plan().Version {
			return w, fmt.Errorf("other definitions are applied to %v than these: refill with those of the processors, or once they have loaded these", p)
		}
	}
	return w, nil
}

// isLost reports whether a series of the key, or of its embedded children, is lost.
func (r *refilling) isLost(s *state.Series, tags []uint32) bool {
	tag := s.Tag()
	if s.Parent == r.group.name {
		tag = state.EmbeddingTag(s.Group)
	} else if s.Group != r.group.name {
		return false
	}
	return len(tags) == 0 || slices.Contains(tags, tag)
}

// isFilled reports whether a fill is complete in a shard.
func (r *refilling) isFilled(f *state.Fill, shard *progress.Record) bool {
	fills := append([]*state.Fill{f}, f.Before(r.fills)...)
	for p := range shard.Held() {
		if filling := shard.FirstFilling(fills, p); len(f.Columns[p.Topic]) > 0 && !filling.Broken && !filling.Done() {
			return false
		}
	}
	return true
}

// lost returns what remains lost of a key after the log was read: what was not restored, and what the log lacks.
func (r *refilling) lost(dropped packed.Loss) (losses packed.Losses) {
	if tags := r.tagged(func(s *state.Series) bool { return r.isLost(s, dropped.Tags) && !r.want.series[s] }); len(tags) > 0 {
		losses = append(losses, packed.Loss{Until: dropped.Until, Tags: tags})
	}
	if len(r.used) > 0 && len(dropped.Tags) == 0 {
		losses = append(losses, packed.Loss{Until: dropped.Until, Tags: r.tagsOfOthers()})
	}
	for topic, until := range r.log.LostUntil {
		if until == 0 {
			continue
		}
		tags := r.tagged(func(s *state.Series) bool {
			stream, _ := r.registry.Stream(s.Stream)
			return r.want.series[s] && stream.In(topic) != nil
		})
		losses = append(losses, packed.Loss{Until: until, Tags: tags})
	}
	return append(losses, r.lostFiles()...)
}

// lostFiles returns the losses of series over cuts: the log never had the events that came from files.
func (r *refilling) lostFiles() (losses packed.Losses) {
	cuts := map[state.Cut]bool{}
	for s := range r.want.series {
		if s.Cut != nil {
			cuts[*s.Cut] = true
		}
	}
	for cut := range cuts {
		tags := r.tagged(func(s *state.Series) bool { return r.want.series[s] && s.Cut != nil && *s.Cut == cut })
		losses = append(losses, packed.Loss{Until: cut.Until - 1, Tags: tags})
	}
	return losses
}

// tagged returns the tags of some series, in the form of losses.
func (r *refilling) tagged(some func(*state.Series) bool) (tags []uint32) {
	children := map[uint32][]uint32{}
	for _, s := range r.registry.Series {
		switch embedding := state.EmbeddingTag(s.Group); {
		case !some(s):
		case s.Parent == r.group.name:
			children[embedding] = append(children[embedding], s.Tag())
		default:
			tags = append(tags, s.Tag())
		}
	}
	for _, embedding := range slices.Sorted(maps.Keys(children)) {
		tags = append(append(tags, embedding), children[embedding]...)
	}
	return tags
}

// tagsOfOthers returns the tags of other definitions' series, of the entity and of its children.
func (r *refilling) tagsOfOthers() []uint32 {
	tags := slices.Clone(r.used)
	listed := map[uint32]bool{}
	for _, s := range r.registry.Series {
		if embedding := state.EmbeddingTag(s.Group); s.Parent == r.group.name && !listed[embedding] {
			listed[embedding] = true
			tags = append(append(tags, embedding), r.used...)
		}
	}
	return tags
}
