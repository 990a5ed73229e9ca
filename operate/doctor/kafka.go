package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/reworded/brokers"
	"github.com/weir-stream/weir/operate/topics"
	"github.com/weir-stream/weir/pipeline/fetch"
)

// Topics configures the check of the topics.
type Topics struct {
	Registry    *features.Registry
	DeadLetters string
	// Copies is the age of the oldest copy of Redis that may be restored.
	Copies time.Duration
	// MaxRecordBytes is the configured limit.
	MaxRecordBytes int64
	// Create means that missing topics are created.
	Create bool
}

// batchOverhead is what brokers count as the size of a batch of one record, in addition to its value.
const batchOverhead = 61 + 9

// Kafka checks the brokers and the topics.
func Kafka(ctx context.Context, client *kafka.Client, t Topics) (f Findings) {
	names := t.names()
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		f.add(Fail, "kafka", brokers.Reword(err).Error(), "check that it runs at kafka.brokers, and who has access")
		return f
	}
	f.ok("kafka", "%s", plural(len(found.Brokers), "broker"))
	var there []kafka.Topic
	for _, name := range names {
		i := slices.IndexFunc(found.Topics, func(t kafka.Topic) bool { return t.Name == name })
		switch {
		case i >= 0 && found.Topics[i].Error == nil:
			there = append(there, found.Topics[i])
		case i >= 0 && !errors.Is(found.Topics[i].Error, kafka.UnknownTopicOrPartition):
			f.add(Fail, "topic "+name, brokers.Reword(found.Topics[i].Error).Error(), "check who has access to the brokers")
		case t.Create:
			f.add(Warn, "topic "+name, "is missing", "weir run will create it; create it before to choose its settings")
		default:
			f.add(Fail, "topic "+name, "is missing", "create it, or set kafka.create_topics; with ACLs, allow Describe on it")
		}
	}
	var wanted []string
	for _, topic := range there {
		wanted = append(wanted, topic.Name)
	}
	settings, err := topics.Settings(ctx, client, wanted)
	if err != nil {
		f.add(Warn, "kafka", brokers.Plainly(err).Error(), "until then the topics' settings are not checked")
		return f
	}
	for _, topic := range there {
		f = append(f, t.judge(topic, settings[topic.Name])...)
	}
	t.room(&f, settings)
	t.written(ctx, client, &f, wanted)
	return f
}

// written checks that the user may write to the topics of dead letters and of enriched events, as far as they are there.
// It is a warning, because the user of whoever checks need not be that of the processors.
func (t *Topics) written(ctx context.Context, client *kafka.Client, f *Findings, there []string) {
	names := slices.DeleteFunc(t.names(), func(name string) bool {
		return !slices.Contains(there, name) || name != t.DeadLetters && !slices.Contains(t.Registry.EnrichedTopics(), name)
	})
	if len(names) == 0 {
		return
	}
	refused, err := fetch.Unwritable(ctx, client, names)
	if err != nil {
		f.add(Warn, "kafka", brokers.Plainly(err).Error(), "until then it is not checked which topics may be written to")
	}
	for _, name := range refused {
		f.add(Warn, "topic "+name, "this user may not write to it: a processor with this user stops a partition at the first record for it",
			"allow Write on it, unless this is not the processors' user; weir run --check asks with theirs")
	}
}

// names lists the topics that are read, those of enriched events, that of dead letters, and those of tables.
func (t *Topics) names() (names []string) {
	for _, name := range slices.Concat(t.Registry.Topics(), t.Registry.EnrichedTopics(), []string{t.DeadLetters}, features.TableTopics(t.Registry.Tables)) {
		if !slices.Contains(names, name) { // a stream may read enriched events, or what is also a table
			names = append(names, name)
		}
	}
	return names
}

// room checks that the topic of dead letters takes every record that the other topics take.
func (t *Topics) room(f *Findings, settings map[string]map[string]string) {
	most := number(settings[t.DeadLetters]["max.message.bytes"])
	for _, topic := range t.Registry.Topics() {
		if larger := number(settings[topic]["max.message.bytes"]); most > 0 && larger > most {
			f.add(Warn, "topic "+t.DeadLetters, fmt.Sprintf("max.message.bytes is %d, and that of topic %s is %d: "+
				"the letter of a larger record that cannot be used is cut, and cannot be replayed", most, topic, larger), "raise it to that of the other topics and some KiB more")
			return
		}
	}
}

// judge checks one topic.
func (t *Topics) judge(topic kafka.Topic, settings map[string]string) (f Findings) {
	subject := "topic " + topic.Name
	f.ok(subject, "%s", plural(len(topic.Partitions), "partition"))
	for _, p := range topic.Partitions {
		if len(p.Replicas) == 1 {
			f.add(Warn, subject, "has partitions with one copy: a broker that is lost takes events with it", "give it a replication factor of 3")
			break
		}
	}
	var lost []string
	for _, p := range topic.Partitions {
		if p.Leader == (kafka.Broker{}) {
			lost = append(lost, strconv.Itoa(p.ID))
		}
	}
	if len(lost) > 0 {
		f.add(Fail, subject, fmt.Sprintf("has no leader for %s (%s): they cannot be read or written", plural(len(lost), "partition"), strings.Join(lost, ", ")),
			"start the brokers that have them: kafka-topics.sh --describe says which")
	}
	if slices.Contains(features.TableTopics(t.Registry.Tables), topic.Name) {
		keepsRows(&f, subject, settings)
	}
	read := slices.Contains(t.Registry.Topics(), topic.Name)
	if !read && topic.Name != t.DeadLetters {
		return f // how enriched events are kept is for their readers to say
	}
	if policy := settings["cleanup.policy"]; strings.Contains(policy, "compact") {
		f.add(Fail, subject, "cleanup.policy is "+policy+": of the records of one key only the last one is kept", "set cleanup.policy=delete")
	} else {
		f.ok(subject, "cleanup.policy is %s", policy)
	}
	if !read {
		return f
	}
	t.retention(&f, subject, topic.Name, settings)
	if kind := settings["message.timestamp.type"]; kind == "LogAppendTime" {
		f.add(Warn, subject, "message.timestamp.type is LogAppendTime: history that is written into it counts as late",
			"set message.timestamp.type=CreateTime, unless producers' clocks cannot be trusted")
	} else {
		f.ok(subject, "message.timestamp.type is %s", kind)
	}
	if most := number(settings["max.message.bytes"]); most-batchOverhead > t.MaxRecordBytes {
		f.add(Warn, subject, fmt.Sprintf("max.message.bytes is %d: values of more than %d become dead letters", most, t.MaxRecordBytes),
			"raise kafka.max_record_bytes to it")
	}
	return f
}

// keepsRows checks that the topic of a table keeps the newest row of each key.
func keepsRows(f *Findings, subject string, settings map[string]string) {
	policy := settings["cleanup.policy"]
	if strings.Contains(policy, "delete") && (number(settings["retention.ms"]) >= 0 || number(settings["retention.bytes"]) > 0) {
		f.add(Warn, subject, fmt.Sprintf("cleanup.policy is %s: rows of tables are missing once retention has removed them", policy),
			"set cleanup.policy=compact, or keep records forever")
		return
	}
	f.ok(subject, "keeps the rows of tables")
}

// retention compares how long a topic keeps events with how far back it may be read again, after a restore of Redis and
// for a new namespace.
func (t *Topics) retention(f *Findings, subject, topic string, settings map[string]string) {
	if bytes := number(settings["retention.bytes"]); bytes > 0 {
		f.add(Warn, subject, fmt.Sprintf("retention.bytes is %d for each partition: a burst shortens how far the topic goes back", bytes),
			"set retention.bytes=-1, and retention.ms by time")
	}
	ms, err := strconv.ParseInt(settings["retention.ms"], 10, 64)
	if err != nil {
		f.add(Warn, subject, "does not report its retention.ms", "make sure that it is at least "+t.Copies.String())
		return
	}
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) { // some set the greatest number; a time.Duration holds 292 years
		f.ok(subject, "keeps events forever")
		return
	}
	keeps := time.Duration(ms) * time.Millisecond
	longest, feature := t.longest(topic)
	switch wanted := longest + t.Copies; {
	case keeps < t.Copies:
		f.add(Fail, subject, fmt.Sprintf("keeps events for %s: a copy of Redis that is %s old cannot be brought up to date", keeps, t.Copies),
			fmt.Sprintf("set retention.ms=%d, or restore no copies that are so old (--copies)", wanted.Milliseconds()))
	case keeps < wanted:
		f.add(Warn, subject, fmt.Sprintf("keeps events for %s: longer windows, such as %s (%s), cannot be recomputed from the log", keeps, feature, longest),
			fmt.Sprintf("set retention.ms=%d", wanted.Milliseconds()))
	default:
		f.ok(subject, "keeps events for %s", keeps)
	}
}

// longest returns the feature that looks back furthest in a topic, without lifetimes, and how far it looks back. Parts of
// derived features are features with names.
func (t *Topics) longest(topic string) (back time.Duration, feature string) {
	for _, f := range t.Registry.Features {
		if _, derived := f.Basis.(*features.Derived); derived {
			continue
		}
		if of := reach(f, topic); of > back {
			back, feature = of, f.Name
		}
	}
	return back, feature
}

// reach returns how far back a feature looks in a topic, or the list that it goes through, which may have no name; 0 for
// not at all, as for a row of a table, and for lifetimes.
func reach(f *features.Feature, topic string) (back time.Duration) {
	if parts := f.Parts(); parts != nil {
		for _, part := range parts {
			back = max(back, reach(part, topic))
		}
		return back
	}
	if f.Stream == nil || f.Stream.In(topic) == nil || !f.Window.Forgets() {
		return 0
	}
	return f.Window.Type.Reach() + f.Window.Delay + f.Keep
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
