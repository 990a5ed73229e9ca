package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/reworded/brokers"
	"github.com/weir-stream/weir/operate/deadletter"
	"github.com/weir-stream/weir/operate/lag"
	"github.com/weir-stream/weir/operate/lists"
	"github.com/weir-stream/weir/operate/preview"
	"github.com/weir-stream/weir/pipeline/scan"
	"github.com/weir-stream/weir/serve/tools"
)

// The bounds of a preview for the page: weir preview has its own.
const (
	previewRecords  = 20_000
	previewBytes    = 64 << 20
	previewExamples = 3
)

// tools reads the store for people, and Kafka as the processor does; without a processor it does not
// read Kafka.
func (n *Node) tools() tools.Config {
	c := tools.Config{LongestKeys: n.store.Greatest, ListContents: n.tables.Contents}
	c.WriteList = func(ctx context.Context, list *features.Table, changes []lists.Written) error {
		client, err := n.listClient()
		if err != nil {
			return err
		}
		return lists.Write(ctx, client, list, changes)
	}
	if n.processor == nil {
		return c
	}
	c.Preview = func(ctx context.Context, r *features.Registry, list []*features.Feature, since time.Time) (*preview.Report, error) {
		report, err := n.preview(ctx, r, list, since)
		return report, brokers.Plainly(err)
	}
	c.DeadLetters = func(ctx context.Context, reason string, most int) ([]tools.DeadLetter, error) {
		list, err := n.newestDeadLetters(ctx, reason, most)
		return list, brokers.Plainly(err)
	}
	return c
}

func (n *Node) preview(ctx context.Context, r *features.Registry, list []*features.Feature, since time.Time) (*preview.Report, error) {
	partitions, err := lag.Partitions(ctx, n.kafka, preview.Topics(r, list))
	if err != nil {
		return nil, err
	}
	scanner := scan.New(scan.Config{
		Transport: n.applying.Transport, Bootstrap: n.kafka.Addr, Isolation: n.applying.Isolation, Schemas: n.schemas, Patience: tools.Limit,
	})
	defer scanner.Close()
	logs, err := scan.Open(ctx, scanner, partitions, since.UnixMilli(), nil)
	if err != nil {
		return nil, err
	}
	cfg := preview.Config{
		Registry: r, Features: list, Since: since.UnixMilli(), Now: time.Now().UnixMilli(), MaxRecords: previewRecords, MaxBytes: previewBytes,
		MaxRecordBytes: n.applying.MaxRecordBytes, Examples: previewExamples,
		Tables: n.tables.For(features.TablesOf(list), errors.New("no definition in use has it as it is here; weir preview reads it with your own access")),
	}
	for _, l := range logs {
		cfg.Logs = append(cfg.Logs, l)
	}
	report, err := preview.Run(ctx, cfg)
	if errors.Is(err, preview.ErrTooLarge) {
		err = fmt.Errorf("the newest %d records have more than %d MiB: preview fewer minutes, or use weir preview --records", previewRecords, previewBytes>>20)
	}
	return report, err
}

func (n *Node) newestDeadLetters(ctx context.Context, reason string, most int) (list []tools.DeadLetter, err error) {
	var filter deadletter.Filter
	if reason != "" {
		filter.Reasons = []string{reason}
	}
	seal, err := n.store.Seal(ctx)
	if err != nil {
		return nil, err
	}
	topic := &deadletter.Topic{Client: n.kafka, Name: n.topics.DeadLetters, Namespace: n.applying.Namespace, Seal: seal, Patience: tools.Limit / 2}
	letters, err := deadletter.Newest(ctx, topic, &filter, most)
	for _, l := range letters {
		list = append(list, tools.DeadLetter{
			At: l.At.String(), Source: l.Source.String(), SetAside: l.SetAside, Timestamp: l.Timestamp, Reason: l.Reason, Message: l.Message,
			Stream: l.Stream, Replayed: l.Replayed, Sealed: l.Sealed, Key: tools.ContentOf(l.Key), Value: tools.ContentOf(l.Value),
		})
	}
	return list, err
}
