package deadletter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/operate/topics"
)

// selection holds what a replay will do.
type selection struct {
	index   *index
	passage *passage
	chosen  map[RecordID]*Letter // by the ID of the letter
	renew   map[event][]int32    // missing receipts of events that were replayed before, by partition
	summary Summary
}

// choose reads the dead-letter topic and decides about each letter.
func (r *Replay) choose(ctx context.Context) (*selection, error) {
	if err := r.Filter.Check(); err != nil {
		return nil, err
	}
	x, err := newIndex(ctx, r.Topic, &r.Filter)
	if err != nil {
		return nil, err
	}
	for _, id := range r.Filter.IDs {
		if !slices.ContainsFunc(x.letters, func(l *Letter) bool { return l.At == id || l.Source == id }) {
			return nil, fmt.Errorf("topic %s has no dead letter at or of %s, or flags exclude it; nothing was replayed", r.Topic.Name, id)
		}
	}
	p := &selection{
		index: x, chosen: map[RecordID]*Letter{}, renew: map[event][]int32{},
		summary: Summary{Replayed: map[string]int{}, Passed: map[Why]int{}},
	}
	sources, err := r.sources(ctx, x.letters)
	if err != nil {
		return nil, err
	}
	met := map[event]bool{}
	for _, l := range x.letters {
		if !l.Sealed { // nor is it a letter of an event that another is of
			p.summary.Passed[Foreign]++
			continue
		}
		why := r.passed(l, sources[l.Source.Topic])
		if why == "" && met[l.event()] {
			why = Twice
		}
		if why != "" {
			p.summary.Passed[why]++
		} else {
			p.chosen[l.At] = l
		}
		if partitions := x.uncovered(l.event()); l.Replayed && len(partitions) > 0 {
			p.renew[l.event()] = partitions
		}
		met[l.event()] = true
	}
	p.passage, err = newPassage(ctx, r.State, slices.Collect(maps.Values(p.chosen)), x.skipped)
	return p, err
}

// passed returns why a letter must not be replayed, or "" if it will be.
func (r *Replay) passed(l *Letter, source sourceTopic) Why {
	switch {
	case l.Namespace != r.Topic.Namespace:
		return Foreign
	case l.Replayed:
		return Before
	case l.Reason == string(record.Late):
		return Counted
	case l.Reason == string(record.BrokenBatch):
		return Broken
	case l.Cut:
		return Cut
	case !slices.Contains(source.partitions, l.Source.Partition):
		return NoTopic
	case !r.StampNow && source.retention > 0 && l.Timestamp < time.Now().Add(-source.retention).UnixMilli():
		return Expired
	}
	return ""
}

// sourceTopic is a topic that records came from.
type sourceTopic struct {
	partitions []int32
	retention  time.Duration // by the records' own times; 0 if unlimited
}

// sources looks up the topics of the letters; missing topics have no partitions.
func (r *Replay) sources(ctx context.Context, letters []*Letter) (map[string]sourceTopic, error) {
	sources := map[string]sourceTopic{}
	var names []string
	for _, l := range letters {
		if _, known := sources[l.Source.Topic]; !known {
			sources[l.Source.Topic] = sourceTopic{}
			names = append(names, l.Source.Topic)
		}
	}
	if len(names) == 0 {
		return sources, nil
	}
	found, err := r.Topic.Client.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return nil, fmt.Errorf("topics of the dead letters: %w", err)
	}
	var there []string
	for _, topic := range found.Topics {
		var s sourceTopic
		for _, p := range topic.Partitions {
			s.partitions = append(s.partitions, int32(p.ID))
		}
		if sources[topic.Name] = s; topic.Error == nil {
			there = append(there, topic.Name)
		}
	}
	settings, err := topics.Settings(ctx, r.Topic.Client, there)
	if err != nil {
		return nil, err
	}
	for name, of := range settings {
		s := sources[name]
		ms, _ := strconv.ParseInt(of["retention.ms"], 10, 64) // -1 is forever
		if ms > 0 && of["message.timestamp.type"] != "LogAppendTime" {
			s.retention = time.Duration(ms) * time.Millisecond
		}
		sources[name] = s
	}
	return sources, nil
}
