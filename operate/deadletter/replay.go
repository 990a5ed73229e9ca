package deadletter

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features/record"
)

// Replay writes the original records of dead letters back to their topics, into the partitions they came from. Each copy
// counts only in the series that have passed its original without counting it.
type Replay struct {
	Topic *Topic
	State State // of the topic's namespace
	// Producer configures the connection to the brokers.
	Producer []kgo.Opt
	Filter   Filter
	// StampNow gives the records the current time; otherwise they keep their own, by which they may
	// be late or from the future.
	StampNow bool
	// MaxLetters is the number of letters in one transaction; 0 means 500.
	MaxLetters int

	// indexed, if not nil, is called after the topic was read and before anything is written, for
	// tests of concurrent replays.
	indexed func()
}

// Summary counts what happened to the letters that the filter selects.
type Summary struct {
	Replayed map[string]int // events by reason
	Passed   map[Why]int    // letters not replayed
}

// Why is the reason why a letter is not replayed.
type Why string

// The reasons why letters are not replayed.
const (
	Before  Why = "replayed before"
	Foreign Why = "of another namespace, or not sealed by this one: replay them with the settings of theirs"
	Twice   Why = "there twice for one event"
	Counted Why = "late, so counted already by the features that they are not too late for"
	Broken  Why = "of batches that cannot be decoded, so there is nothing to replay"
	Cut     Why = "cut, because their records did not fit into the dead-letter topic: have their producers send them again"
	NoTopic Why = "of a topic or partition that is not there; with ACLs, allow Describe on the topic"
	Expired Why = "older than their topic's retention.ms, which would remove them again; --stamp-now gives them the present time"
	Gone    Why = "removed by the dead-letter topic's retention in the meantime"
)

// allWhys lists them in the order of the output.
func allWhys() []Why {
	return []Why{Foreign, Before, Twice, Counted, Broken, Cut, NoTopic, Expired, Gone}
}

// Preview returns what Run would do.
func (r *Replay) Preview(ctx context.Context) (Summary, error) {
	p, err := r.choose(ctx)
	if err != nil {
		return Summary{}, err
	}
	for _, l := range p.chosen {
		p.summary.Replayed[l.Reason]++
	}
	return p.summary, nil
}

// Run replays. After an error the Summary counts what was certainly replayed. Run may be called again, and continues
// from there.
func (r *Replay) Run(ctx context.Context) (Summary, error) {
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.TransactionalID("weir-replay." + r.Topic.Name), kgo.TransactionTimeout(time.Minute),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(100 << 20),
		kgo.ProducerBatchCompression(kgo.GzipCompression()), // what a producer has compressed may be too large otherwise
	}, r.Producer...)...)
	if err != nil {
		return Summary{}, err
	}
	defer client.Close()
	// This comes first, so that no other replay can run once the topic is read.
	if _, _, err := client.ProducerID(ctx); err != nil {
		return Summary{}, fmt.Errorf("begin a replay: %w", err)
	}
	p, err := r.choose(ctx)
	if err != nil {
		return Summary{}, err
	}
	if r.indexed != nil {
		r.indexed()
	}
	w := &writer{client: client, topic: r.Topic.Name, seal: r.Topic.Seal, most: r.MaxLetters, replayed: p.summary.Replayed}
	if w.most == 0 {
		w.most = maxLetters
	}
	err = r.Topic.read(ctx, func(at RecordID, rec *record.Record) error {
		l := p.chosen[at]
		if l == nil {
			return nil
		}
		delete(p.chosen, at)
		_, others := r.Topic.unseal(rec)
		l.fill(rec, others)
		return w.add(ctx, entry{l.event(), r.record(l, p.passage.lacking(l)), l.Reason, p.index.uncovered(l.event())})
	})
	for of, partitions := range p.renew {
		if err == nil {
			err = w.add(ctx, entry{event: of, receipts: partitions})
		}
	}
	if err == nil {
		err = w.flush(ctx)
	}
	if err == nil && len(p.chosen) > 0 {
		p.summary.Passed[Gone] = len(p.chosen)
	}
	return p.summary, err
}

// record returns the original record of a letter, to count in the series that lack it.
func (r *Replay) record(l *Letter, lacking []string) *kgo.Record {
	rec := &kgo.Record{Topic: l.Source.Topic, Partition: l.Source.Partition, Key: l.Key, Value: l.Value}
	if !r.StampNow {
		rec.Timestamp = time.UnixMilli(l.Timestamp)
	}
	headers := slices.Clone(l.Headers)
	for _, c := range l.Copies {
		headers = append(headers, record.Header{Key: record.CopyHeader, Value: []byte(c.String())})
	}
	of := record.Copy{Namespace: l.Namespace, Partition: l.Source.partition(), Offset: l.Source.Offset, Timestamps: l.timestamps(), Series: lacking}
	headers = append(headers,
		record.Header{Key: record.CopyHeader, Value: []byte(of.String())},
		record.Header{Key: headerReplays, Value: strconv.AppendInt(nil, int64(l.Replays+1), 10)},
		record.Header{Key: headerReplayedFrom, Value: []byte(l.At.String())})
	seal(rec, r.Topic.Seal, headers, len(headers)-len(l.Headers))
	return rec
}
