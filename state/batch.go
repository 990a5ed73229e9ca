package state

// Partition names one partition of a topic.
type Partition struct {
	Topic string
	ID    int32
}

// WithPlan is the name of a partition's progress while a plan is applied to it:
// batches of another plan then meet none, and change nothing.
func (p Partition) WithPlan(version string) Partition {
	return Partition{Topic: p.Topic + "@" + version, ID: p.ID}
}

// Mutation is what one event does to one series of one entity.
type Mutation struct {
	Series *Series
	Tile   int64 // the event's tile; for Identify that of its record
	// Num is the amount of counts and Sum, the candidate of Min and Max, the value
	// of Spread, and for the measures of a time the event's, in milliseconds. Floats stand in it by their bits.
	Num int64
	// Member is the value as text for Distinct, Approx, Touch, Seen, LeastText and
	// GreatestText, as of AppendValue for FirstValue and LastValue, for Record the
	// record of the log with its length, and for Identify the event's own identity.
	Member []byte
	Key    []byte // for Groups
}

// EntityUpdate is one entity that one event touched.
type EntityUpdate struct {
	Range  int   // index in Batch.Ranges
	Offset int64 // of the event
	Entity []byte
	Hash   uint64 // EntityHash(Entity)
	// From and To bound its operations in Batch.Mutations.
	From, To int
}

// PartitionRange is one partition's share in a batch.
type PartitionRange struct {
	Partition Partition
	To        int64 // the offset after the last record in the batch
	Epoch     int32 // the leader epoch of that record, -1 if unknown
	// Progress is by shard the position that the store has confirmed. Applying a
	// batch moves its offset to To.
	Progress []Position
	// Behind is set by applying where a shard was found to lack what it had
	// confirmed: the store has gone back in time, and the partition must be
	// read again from the lowest progress of all shards. Nothing more of the
	// source is applied then.
	Behind bool
	// Lagging marks by shard those that lack some of what is behind their progress,
	// because their master did not answer while others did. Nothing more of the
	// source is applied in them until the partition is read again from where they
	// are. Batches of one partition share it, as they do Progress; nil for none.
	Lagging []bool
}

// Lags says whether a shard lacks some of what is behind its progress.
func (s *PartitionRange) Lags(shard int) bool { return s.Lagging != nil && s.Lagging[shard] }

// Lag marks a shard that does.
func (s *PartitionRange) Lag(shard int) {
	if s.Lagging == nil {
		s.Lagging = make([]bool, len(s.Progress))
	}
	s.Lagging[shard] = true
}

// Batch is what one write of the store applies: the operations of some events
// of several partitions, each partition's in the order of its offsets.
type Batch struct {
	Ranges    []PartitionRange
	Updates   []EntityUpdate
	Mutations []Mutation
	// Series are all that the definitions have which made the batch, also those
	// that it does not touch.
	Series []*Series
	// Now is the greatest timestamp of a record in the batch, in milliseconds;
	// state that is too old by it may be pruned.
	Now int64
	// EveryShard asks to move the progress of all shards, also of those that
	// no event touched, and so to find out whether one has gone back in time.
	EveryShard bool
	// Calls counts the calls of shards that applying has made; those that were
	// made again count again.
	Calls int
	// GreatestKey is the length in bytes of the longest state key that applying was
	// handed out to be compacted: what keys grow to before they are made smaller.
	GreatestKey int
	// Refused counts the entities of which the store could not take in what the
	// batch does to them, because something else has written into their keys;
	// Refusal is the first one's reason.
	Refused int
	Refusal string
	// RefusedKey is the store's key that it is about, where it is known. It names
	// the entity, so it is not for everybody's eyes.
	RefusedKey string

	bytes []byte
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Updates)
	clear(b.Mutations)
	b.Ranges, b.Updates, b.Mutations = b.Ranges[:0], b.Updates[:0], b.Mutations[:0]
	*b = Batch{Ranges: b.Ranges, Updates: b.Updates, Mutations: b.Mutations, bytes: b.bytes[:0]}
}

// Hold copies p into the batch's memory.
func (b *Batch) Hold(p []byte) []byte {
	if cap(b.bytes)-len(b.bytes) < len(p) {
		// What was handed out before goes on pointing into the old memory.
		b.bytes = make([]byte, 0, max(2*cap(b.bytes), len(p), 16<<10))
	}
	n := len(b.bytes)
	b.bytes = append(b.bytes, p...)
	return b.bytes[n:len(b.bytes):len(b.bytes)]
}

// Touch begins an entity that the event at offset of a source touches. The
// entity is copied; Add adds its operations.
func (b *Batch) Update(source int, offset int64, entity []byte) {
	b.Updates = append(b.Updates, EntityUpdate{
		Range: source, Offset: offset, Entity: b.Hold(entity), Hash: EntityHash(entity),
		From: len(b.Mutations), To: len(b.Mutations),
	})
}

// Add adds an operation to the entity begun last. Member is not copied.
func (b *Batch) Add(op Mutation) {
	b.Mutations = append(b.Mutations, op)
	b.Updates[len(b.Updates)-1].To++
}

// Identity is the operation by which an entity remembers the identity of the
// event that touched it; nil where it does not.
func (b *Batch) Identity(t *EntityUpdate) *Mutation {
	for i := t.From; i < t.To; i++ {
		if b.Mutations[i].Series.Measure == RememberID {
			return &b.Mutations[i]
		}
	}
	return nil
}
