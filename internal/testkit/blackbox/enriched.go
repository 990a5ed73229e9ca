package blackbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// Enriched compares a stream's enriched events with the model, event by event, right after the model applies it. in has
// the records of the stream's topic, and out those of its enriched events, by partition; an event that was written
// again counts once. The model must be new. Features whose entities have events in several partitions, as elsewhere
// says, have no determined values. It returns how many events were written again.
func (c *Comparison) Enriched(r *features.Registry, stream *record.Stream, in, out map[int32][]*kgo.Record, elsewhere func(*features.Feature) bool) (repeated int) {
	c.T.Helper()
	if c.Incomplete == nil {
		c.Incomplete = map[string]int{}
	}
	firsts, repeated, err := Firsts(out)
	if err != nil {
		c.differs("%v", err)
		return repeated
	}
	enrichment, decoder := r.Enrichment(stream), r.NewDecoder()
	for id, records := range in {
		p := state.Partition{Topic: stream.Topic, ID: id}
		rest := firsts[p]
		for _, came := range records {
			taken := record.Record{Partition: p, Offset: came.Offset, Timestamp: came.Timestamp.UnixMilli(), Value: came.Value}
			if c.Model.Apply(taken) != nil {
				continue // poison
			}
			events, err := decoder.Decode(&taken)
			if err != nil {
				c.differs("%v at %d: %v", p, came.Offset, err)
				return repeated
			}
			if len(rest) == 0 || header(rest[0], sourceOffset) != strconv.FormatInt(came.Offset, 10) {
				c.differs("%v: offset %d is not the next event's; %d are left, from %v", p, came.Offset, len(rest), rest[:min(1, len(rest))])
				return repeated
			}
			c.enriched(enrichment, &events[0], came, rest[0], elsewhere)
			rest = rest[1:]
		}
		if len(rest) > 0 {
			c.differs("%v: %d enriched records too many", p, len(rest))
		}
	}
	return repeated
}

// enriched compares an enriched event with the model, which has just applied the event.
func (c *Comparison) enriched(by *features.Enrichment, e *record.Event, in, out *kgo.Record, elsewhere func(*features.Feature) bool) {
	c.T.Helper()
	var value struct {
		Event    json.RawMessage
		Features map[string]Answer
	}
	if err := json.Unmarshal(out.Value, &value); err != nil {
		c.differs("offset %d: %v", in.Offset, err)
		return
	}
	if !bytes.Equal(value.Event, in.Value) || !bytes.Equal(out.Key, in.Key) || out.Partition != in.Partition || !out.Timestamp.Equal(in.Timestamp) {
		c.differs("offset %d: the event is not as it came: %s", in.Offset, out.Value)
	}
	for _, f := range by.Service.Features {
		entity, ok := e.Entity(nil, f.By)
		got, lacking := value.Features[f.Name], c.Partly || c.MayLack != nil && c.MayLack(f)
		switch {
		case !ok:
			if string(got.Value) != "null" || got.Status != query.NotFound {
				c.differs("offset %d: %s of nobody is %s", in.Offset, f.Name, got.Value)
			}
		case f.Forgets() && e.Time < e.Now-f.Keep.Milliseconds():
			if string(got.Value) != "null" || got.Status != query.OutsideMaxAge {
				c.differs("offset %d: %s as of a time that is not kept is %s, %s", in.Offset, f.Name, got.Value, got.Status)
			}
		case elsewhere(f):
			if got.Status == "" || len(got.Value) == 0 {
				c.differs("offset %d: %s is missing", in.Offset, f.Name)
			}
		case got.Status == query.Incomplete && lacking:
			c.Incomplete[f.Name]++
		default:
			if c.Compared++; lacking && got.CompleteSince != nil && got.From != nil && *got.From >= *got.CompleteSince {
				got.CompleteSince = nil
			}
			if d := Differs(got, f, c.Model.Answer(f, string(entity), e.Time)); d != "" {
				c.differs("offset %d: %s of %s at %d: %s (%s)", in.Offset, f.Name, entity, e.Time, d, f.Definition)
			}
		}
	}
}

// differs counts a difference, and shows the first ones.
func (c *Comparison) differs(format string, args ...any) {
	c.T.Helper()
	if c.Wrong++; c.Wrong <= Shown {
		c.T.Errorf(format, args...)
	}
}

// The headers of enriched events that say where the event stands.
const sourceTopic, sourcePartition, sourceOffset = "weir-source-topic", "weir-source-partition", "weir-source-offset"

// Firsts returns the records of a topic of enriched events by source partition, without those whose source offset came before, as a
// consumer skips them, and the number of those.
func Firsts(byPartition map[int32][]*kgo.Record) (firsts map[state.Partition][]*kgo.Record, repeated int, err error) {
	firsts = map[state.Partition][]*kgo.Record{}
	seen := map[state.Partition]int64{}
	for _, records := range byPartition {
		for _, r := range records {
			id, err := strconv.ParseInt(header(r, sourcePartition), 10, 32)
			if err != nil {
				return nil, 0, fmt.Errorf("an enriched event: %w", err)
			}
			offset, err := strconv.ParseInt(header(r, sourceOffset), 10, 64)
			if err != nil {
				return nil, 0, fmt.Errorf("an enriched event: %w", err)
			}
			p := state.Partition{Topic: header(r, sourceTopic), ID: int32(id)}
			if last, ok := seen[p]; ok && offset <= last {
				repeated++
				continue
			}
			seen[p] = offset
			firsts[p] = append(firsts[p], r)
		}
	}
	return firsts, repeated, nil
}

// header returns the value of a record's header, "" if it has none.
func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}
