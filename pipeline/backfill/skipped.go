package backfill

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// HeaderSkipped is the header of a record in the topic of dead letters that has a Skipped, as JSON. Its value is the
// partition.
const HeaderSkipped = record.SkippedHeader

// Skipped lists records of a partition that a fill has read and could not use. Most of them are dead letters already.
// Their copies, if they are replayed under better definitions, count in the series of the fill, while those of records
// that the fill could use do not. Whether a record could be used depends on the definitions of that moment, so it is
// written down.
type Skipped struct {
	Namespace string   `json:"namespace"`
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Offsets   []int64  `json:"offsets"` // ascending
	Series    []string `json:"series"`  // IDs
}

// skip notes that a record of a partition cannot be used.
func (b *batch) skip(p state.Partition, offset int64) {
	if b.skipped == nil {
		b.skipped = map[state.Partition][]int64{}
	}
	b.skipped[p] = append(b.skipped[p], offset)
}

// writeSkipped writes what the batch skips, before any position passes it. It waits while Kafka is unavailable, and returns
// whether all was written before the context ended.
func (r *runner) writeSkipped(ctx context.Context, b *batch) bool {
	series := slices.Compact(slices.Sorted(slices.Values(r.fill.Series())))
	var messages []kafka.Message
	for p, offsets := range b.skipped {
		text, err := json.Marshal(Skipped{r.cfg.Namespace, p.Topic, p.ID, offsets, series})
		if err != nil {
			panic(err) // it has numbers and strings only
		}
		partition := p.Topic + "/" + strconv.Itoa(int(p.ID))
		said := record.Header{Key: HeaderSkipped, Value: []byte(partition)}
		seal := record.SealOf(r.seal, r.cfg.DeadLetterTopic, nil, text, []record.Header{said}, 1)
		messages = append(messages, kafka.Message{Value: text, Headers: []kafka.Header{kafka.Header(said), kafka.Header(seal)}})
	}
	for len(messages) > 0 {
		err := r.cfg.DeadLetters.WriteMessages(ctx, messages...)
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			r.report.trouble(fmt.Errorf("write to %s, the topic of dead letters, what cannot be used: %w", r.cfg.DeadLetterTopic, err))
		}
		if !retry.Wait(ctx, lookInterval) {
			return false
		}
	}
	return true
}
