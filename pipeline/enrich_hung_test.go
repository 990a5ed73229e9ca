package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// While a Redis master hangs, enriched events wait. Their answers are the same as if it had not hung, also for events
// that arrive while its shards still lag. Other streams continue, in the same worker.
func TestEnrichWhileAMasterHangs(t *testing.T) {
	t.Parallel()
	with := strings.Replace(enrichedDefinitions, "streams:\n", "streams:\n"+
		"  login: {topic: logins, timestamp: at, fields: {user: string}}\n", 1)
	with = strings.Replace(with, "features:\n", "features:\n  logins: COUNT(lifetime, login, user)\n", 1)
	b := newBenchOf(t, with, map[string]int{"payments": partitions, enrichedTopic: partitions, "logins": 1, deadLetters: 1})
	b.config.MaxEvents, b.config.Workers = 30, 1
	cluster := redistest.NewCluster(t)
	b.onCluster(cluster)
	sent := purchases(3, 900)
	b.run()
	b.write(sent[:300]...)
	b.committed(300)
	cluster.Nodes[0].Pause()
	b.write(sent[300:600]...)
	testkit.Eventually(t, time.Minute, "the enriched events wait", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		return err != nil && strings.Contains(err.Error(), "its enriched events wait"), fmt.Sprint(err)
	})
	for i := range 70 {
		b.write(kafka.Message{Topic: "logins", Key: []byte{0}, Time: time.UnixMilli(at), Value: fmt.Appendf(nil, `{"at":%d,"user":"u%d"}`, at, i%7)})
	}
	feature, _ := b.registry.Feature("logins")
	testkit.Eventually(t, time.Minute, "logins are applied where a master answers", func() (bool, string) {
		var reading query.Reading
		reading.Reset(at)
		for user := range 7 {
			reading.Want(feature, fmt.Sprint("u", user), at)
		}
		if err := reading.Read(t.Context(), b.store); err != nil {
			return false, err.Error()
		}
		var got []string
		there := 0
		for range 7 {
			var a query.Answer
			reading.Next(&a)
			got = append(got, string(a.Value.AppendText(nil)))
			if got[len(got)-1] == "10" {
				there++
			} else if a.Status != query.Unavailable {
				return false, fmt.Sprintf("%q", got)
			}
		}
		return there > 0 && there < 7, fmt.Sprintf("%q", got)
	})
	cluster.Nodes[0].Resume()
	b.write(sent[600:]...)
	b.committed(900)
	b.checkEnriched(sent)
}
