package state

import (
	"iter"
	"slices"
	"strconv"
)

// Partition names one partition of a topic, or the progress of a plan or a fill in it.
type Partition struct {
	Topic string
	ID    int32
	// Plan is the version of the plan, or Fill the ID of the fill, whose progress is meant; both are "" for the partition itself.
	Plan, Fill string
	// Archive is the ID of an archive whose rows the fill applies, in place of a partition.
	Archive string
}

// String returns the name of the partition for operators: TOPIC/PARTITION.
func (p Partition) String() string { return p.Topic + "/" + strconv.Itoa(int(p.ID)) }

// WithPlan returns the name of a partition's progress while a plan is applied to it. Batches of another plan then find
// no progress and change nothing.
func (p Partition) WithPlan(version string) Partition {
	p.Plan = version
	return p
}

// Itself returns the partition of which the name is, or whose progress it is.
func (p Partition) Itself() Partition { return Partition{Topic: p.Topic, ID: p.ID} }

// Mutation is the change that one event makes to one series of one entity.
type Mutation struct {
	Series *Series
	Tile   int64 // the tile of the event, or for RememberID of its record
	// Num is the amount for counts and Sum, the candidate for Min and Max, the value for
	// ValueMoments, and the event's time in milliseconds for measures of times. Floats are stored
	// as their bits.
	Num int64
	*Text
}

// Text is what a mutation has of variable length. Most mutations are of numbers and have none: nil if the measure has no
// member and the series no keys. A batch has hundreds of thousands of mutations, so each is kept short.
type Text struct {
	// Member is the value as text for Distinct, Approx, LastTimes, Seen, LeastText and
	// GreatestText, the value as AppendValue encodes it for FirstValue and LastValue, the log
	// record with its length for Record, and the event's own ID for RememberID.
	Member []byte
	Key    []byte // for Groups
}

// Size returns the number of bytes of a text, 0 for none.
func (t *Text) Size() int {
	if t == nil {
		return 0
	}
	return len(t.Member) + len(t.Key)
}

// EntityUpdate is the change that one event makes to one entity.
type EntityUpdate struct {
	Range  int   // index in Batch.Ranges
	Offset int64 // of the event
	Entity []byte
	Hash   uint64 // EntityHash(Entity)
	// From and To bound its mutations in Batch.Mutations.
	From, To int
}

// Met says when an entity met the event of an update before.
type Met struct {
	Update int   // index in Batch.Updates
	At     int64 // the earliest time of a record with its ID that the entity knows, in milliseconds, rounded down to a tile
}

// PartitionRange is one partition's share of a batch.
type PartitionRange struct {
	Partition Partition
	To        int64 // the offset after the last record in the batch
	Epoch     int32 // the leader epoch of that record, -1 if unknown
	// Progress holds for each shard the position that the store has confirmed. Applying a batch
	// moves its offset to To.
	Progress []Position
	// Behind is set if applying finds that a shard lacks something that it had confirmed: the store went back in time.
	// Nothing more of the range is applied then, and the partition must be read again from the lowest progress of all
	// shards.
	Behind bool
	// Lagging marks the shards that lack records before their progress, because their master did not answer while
	// others did. They apply nothing more of the range until the partition is read again from their progress. Batches
	// of one partition share it, as they share Progress. It is nil if no shard lags.
	Lagging []bool
	// Without holds for each shard the slices that the range must not change. A shard without all of its slices is left
	// alone. It is nil if there are none.
	Without []SliceSet
}

// Lags reports whether a shard lacks records before its progress.
func (r *PartitionRange) Lags(shard int) bool { return r.Lagging != nil && r.Lagging[shard] }

// Moves reports whether the range moves the progress of a shard.
func (r *PartitionRange) Moves(shard int) bool {
	return !r.Behind && !r.Lags(shard) && (r.Without == nil || r.Without[shard] != AllSlices)
}

// Changes reports whether an update of the range is still to be applied to its shard, given the shard's position.
func (r *PartitionRange) Changes(shard int, at *Position, u *EntityUpdate) bool {
	return r.Moves(shard) && !at.Has(u) && (r.Without == nil || !r.Without[shard].Has(SliceOf(u.Hash)))
}

// Lag marks a shard as lagging.
func (r *PartitionRange) Lag(shard int) {
	if r.Lagging == nil {
		r.Lagging = make([]bool, len(r.Progress))
	}
	r.Lagging[shard] = true
}

// Batch is what one write of the store applies: the mutations of events of several partitions,
// those of each partition ordered by offset.
type Batch struct {
	Ranges    []PartitionRange
	Updates   []EntityUpdate
	Mutations []Mutation
	// Series are all series of the definitions that made the batch, also those without mutations in
	// it.
	Series []*Series
	// Now is the greatest timestamp of a record in the batch, in milliseconds. State may be pruned that is too old by Now - Spare.
	Now, Spare int64
	// EveryShard moves the progress of all shards, also of those without events, which shows
	// whether one has gone back in time.
	EveryShard bool
	// Calls counts the script calls that applied the batch, including repeated ones.
	Calls int
	// GreatestKey is the length, in bytes, of the longest string that was received for compaction: how long keys become
	// before they shrink.
	GreatestKey int
	// CutKeys counts the keys that were so long that their oldest state was dropped.
	CutKeys int
	// Refused counts the entities whose mutations the store could not apply, because their keys have content that Weir
	// did not write. Refusal is the reason for the first one.
	Refused int
	Refusal string
	// RefusedKey is the key in the store concerned, if known. It names the entity, so not every client may see it.
	RefusedKey string
	// Met lists the updates that a read which laid the batch over the state left out, since the entity knows their IDs.
	// One that was read several times may be in it as often.
	Met []Met

	bytes []byte
	texts []Text
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Updates)
	clear(b.Mutations)
	clear(b.texts)
	*b = Batch{Ranges: b.Ranges[:0], Updates: b.Updates[:0], Mutations: b.Mutations[:0], bytes: b.bytes[:0], texts: b.texts[:0]}
}

// Hold copies p into the batch's memory.
func (b *Batch) Hold(p []byte) []byte {
	if cap(b.bytes)-len(b.bytes) < len(p) {
		// Slices returned earlier keep pointing to the old memory.
		b.bytes = make([]byte, 0, max(2*cap(b.bytes), len(p), 16<<10))
	}
	n := len(b.bytes)
	b.bytes = append(b.bytes, p...)
	return b.bytes[n:len(b.bytes):len(b.bytes)]
}

// HoldText returns an empty text in the batch's memory.
func (b *Batch) HoldText() *Text {
	if len(b.texts) == cap(b.texts) {
		// Pointers returned earlier keep pointing to the old memory.
		b.texts = make([]Text, 0, max(2*cap(b.texts), 64))
	}
	b.texts = b.texts[:len(b.texts)+1]
	return &b.texts[len(b.texts)-1]
}

// Update begins the update of an entity by the event at an offset of a range. It copies the text of
// the entity; Add adds the mutations.
func (b *Batch) Update(rangeIndex int, offset int64, entity []byte) {
	b.Updates = append(WithRoom(b.Updates), EntityUpdate{
		Range: rangeIndex, Offset: offset, Entity: b.Hold(entity), Hash: EntityHash(entity),
		From: len(b.Mutations), To: len(b.Mutations),
	})
}

// Add adds a mutation to the last update. It does not copy its text.
func (b *Batch) Add(m Mutation) {
	b.Mutations = append(WithRoom(b.Mutations), m)
	b.Updates[len(b.Updates)-1].To++
}

// WithRoom returns a slice with room for one more, and doubles it if there is none: append alone would copy a slice of
// hundreds of thousands of mutations four times over while it grows.
func WithRoom[T any](s []T) []T {
	if len(s) == cap(s) {
		return slices.Grow(s, len(s)+1)
	}
	return s
}

// IDMutations yields the mutations by which an entity remembers the ID of the event, one for each generation of the series
// of IDs.
func (b *Batch) IDMutations(u *EntityUpdate) iter.Seq[*Mutation] {
	return func(yield func(*Mutation) bool) {
		for i := u.From; i < u.To; i++ {
			if b.Mutations[i].Series.Measure == RememberID && !yield(&b.Mutations[i]) {
				return
			}
		}
	}
}
