package lag

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	redisstore "github.com/weir-stream/weir/store/redis"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func TestPartition(t *testing.T) {
	id := state.Partition{Topic: "tx", ID: 3}
	at := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		progress  []int64
		committed int64
		want      PartitionLag
	}{
		"even":           {[]int64{50, 50}, 40, PartitionLag{Applied: at(50), Furthest: at(50), Committed: at(40), Lag: 50}},
		"uneven":         {[]int64{50, 70, 60}, -1, PartitionLag{Applied: at(50), Furthest: at(70), Lag: 50, Behind: []Shard{{0, at(50)}, {2, at(60)}}}},
		"none yet":       {[]int64{-1, -1}, -1, PartitionLag{Lag: 90}},
		"one new":        {[]int64{-1, 100}, 100, PartitionLag{Furthest: at(100), Committed: at(100), Lag: 90, Behind: []Shard{{0, nil}}}},
		"lost":           {[]int64{4, 10}, 4, PartitionLag{Applied: at(4), Furthest: at(10), Committed: at(4), Lag: 90, Lost: 6, Behind: []Shard{{0, at(4)}}}},
		"ahead":          {[]int64{120, 120}, 120, PartitionLag{Applied: at(120), Furthest: at(120), Committed: at(120)}},
		"of another log": {[]int64{120, 120}, 120, PartitionLag{Applied: at(120), Furthest: at(120), Committed: at(120), Lag: 90, OtherLog: true}},
		"open":           {[]int64{80, 80}, 80, PartitionLag{Stable: 80, Applied: at(80), Furthest: at(80), Committed: at(80), Lag: 20, Open: 20}},
		"beyond":         {[]int64{90, 90}, 90, PartitionLag{Stable: 80, Applied: at(90), Furthest: at(90), Committed: at(90), Lag: 10, Open: 10}},
	} {
		c.want.Topic, c.want.Partition, c.want.Start, c.want.End = "tx", 3, 10, 100
		if c.want.Stable == 0 {
			c.want.Stable = 100
		}
		got := partitionLag(id, &fetch.Log{Start: 10, Stable: c.want.Stable, End: 100}, positions(c.progress...), name == "of another log", c.committed)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func positions(offsets ...int64) (list []state.Position) {
	for _, offset := range offsets {
		list = append(list, state.Position{Offset: offset})
	}
	return list
}

func TestWrite(t *testing.T) {
	id, behind := state.Partition{Topic: "transactions", ID: 0}, make([]int64, 12)
	for i := range behind {
		behind[i] = int64(1000 + i)
	}
	open, since := state.Partition{Topic: "transactions", ID: 1}, time.Date(2026, 7, 1, 8, 30, 0, 0, time.UTC)
	list := []PartitionLag{
		partitionLag(state.Partition{Topic: "logins", ID: 11}, &fetch.Log{Stable: 7, End: 7}, positions(-1, 7), false, -1),
		partitionLag(id, &fetch.Log{Start: 1004, Stable: 1200, End: 1200}, positions(behind...), false, 999),
		partitionLag(open, &fetch.Log{Stable: 50, End: 54}, positions(50), false, 50),
		partitionLag(state.Partition{Topic: "transactions", ID: 2}, &fetch.Log{Err: errors.New("it does not answer")}, positions(5, 9), false, 5),
	}
	list[2].OpenSince = &since
	want := strings.Join([]string{
		`TOPIC         PARTITION  START  END   APPLIED  FURTHEST  COMMITTED  LAG  OPEN`,
		`logins        11         0      7     -        7         -          7    0`,
		`transactions  0          1004   1200  1000     1011      999        196  0`,
		`transactions  1          0      54    50       50        50         4    4`,
		`transactions  2          ?      ?     5        9         5          ?    ?`,
		``,
		`logins/11: shards behind: 0 at -`,
		`transactions/0: 4 offsets were removed from the log before all shards had applied them`,
		`transactions/0: shards behind: 0 at 1000, 1 at 1001, 2 at 1002, 3 at 1003, 4 at 1004, ` +
			`5 at 1005, 6 at 1006, 7 at 1007 and 3 more`,
		`transactions/1: a transaction is open from offset 50 on, since 2026-07-01T08:30:00Z; nothing after it can be read until it ends`,
		`transactions/2: it is unknown what the log holds: it does not answer`,
		`transactions/2: shards behind: 0 at 5`,
		`total lag 207, without the partitions whose logs are unknown: 1`,
		`last_k, spent, of logins: the backfill of some partitions is given up; what is still needed of it is filled again`,
		`new, of logins: backfill not begun`,
		`young, of logins: backfilled 25%`,
		``,
	}, "\n")
	names := map[string][]string{"1": {"young"}, "2": {"new"}, "3": {"last_k", "spent"}, "4": {"done"}, "5": nil}
	epoch := func(id string) state.FillEpoch {
		return state.FillEpoch{Fill: &state.Fill{ID: id}, Topic: "logins", Since: state.MinTime}
	}
	young, done, broken := epoch("1"), epoch("4"), epoch("3")
	young.Filled, young.All, young.Since = 10, 40, since.UnixMilli()
	done.Whole, broken.Broken = true, true
	taken := epoch("6") // young continues with a part of it
	taken.Broken = true
	young.Fill.Columns = map[string][]string{"logins": {"young"}}
	taken.Fill.Columns = map[string][]string{"logins": {"gone", "young"}}
	names["6"] = []string{"gone", "young"}
	fills := Fills(&state.History{Fills: []state.FillEpoch{young, epoch("2"), broken, done, epoch("5"), taken}},
		func(f *state.Fill) []string { return names[f.ID] })
	var out strings.Builder
	(Report{list, fills}).WriteText(&out)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out.Reset()
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(Report{list[:1], fills[3:]}); err != nil {
		t.Fatal(err)
	}
	want = `{
  "partitions": [
    {
      "topic": "logins",
      "partition": 11,
      "start": 0,
      "stable": 7,
      "end": 7,
      "applied": null,
      "furthest": 7,
      "committed": null,
      "lag": 7,
      "open": 0,
      "lost": 0,
      "open_since": null,
      "behind": [
        {
          "shard": 0,
          "applied": null
        }
      ]
    }
  ],
  "lag": 7,
  "lost": 0,
  "backfills": [
    {
      "features": [
        "young"
      ],
      "topic": "logins",
      "status": "filling",
      "filled": 10,
      "all": 40,
      "complete_since": "2026-07-01T08:30:00Z"
    }
  ]
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Runs on a real broker with transactions, and a real Redis.
func TestRead(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now().Truncate(time.Millisecond)
	broker, namespace := kafkatest.Shared(t), testkit.Namespace(t)
	topic := kafkatest.CreateTopic(t, broker, 2)
	s := redisstore.New(redistest.Shared(t).Client(t), namespace, 3)
	if err := s.Create(ctx); err != nil {
		t.Fatal(err)
	}
	producer, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.TransactionalID(namespace),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} { // the last one stays open
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if err := producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: 1}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if end == kgo.TryAbort {
			defer func() { _ = producer.EndTransaction(context.WithoutCancel(ctx), end) }()
		} else if err := producer.EndTransaction(ctx, end); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Place(ctx, testkit.FirstPlacement(state.Partition{Topic: topic, ID: 1}, s.Shards(), 3)); err != nil {
		t.Fatal(err)
	}
	client := broker.Client()
	testkit.Eventually(t, time.Minute, "a commit", func() (bool, string) { // a new broker finds its coordinator first
		reply, err := client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
			GroupID: namespace, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{topic: {{Partition: 1, Offset: 2}}},
		})
		return err == nil && reply.Topics[topic][0].Error == nil, fmt.Sprint(reply, err)
	})
	three, two := int64(3), int64(2)
	for isolation, want := range map[fetch.Isolation]PartitionLag{
		fetch.ReadCommitted:   {Stable: 5, Open: 4},
		fetch.ReadUncommitted: {Stable: 9},
	} {
		want.Topic, want.Partition, want.End, want.Lag = topic, 1, 9, 6
		want.Applied, want.Furthest, want.Committed = &three, &three, &two
		testkit.Eventually(t, time.Minute, "the end of what can be read", func() (bool, string) {
			got, err := (&Monitor{Client: client, Isolation: isolation, Group: namespace, Store: s}).Read(ctx, []string{topic})
			if err != nil {
				return false, err.Error()
			}
			since := got[1].OpenSince
			if (since != nil) != (want.Open > 0) || since != nil && (since.Before(began) || since.After(time.Now())) {
				return false, fmt.Sprint("open since ", since)
			}
			got[1].OpenSince = nil
			diff := cmp.Diff([]PartitionLag{{Topic: topic}, want}, got)
			return diff == "", diff
		})
	}
	_, err = (&Monitor{Client: client, Store: s}).Read(ctx, []string{topic, "no-such-topic"})
	if !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Errorf("a missing topic: got error %v", err)
	}
}

// everywhere is the progress of all shards, everywhere the same.
type everywhere int64

func (e everywhere) Progress(_ context.Context, partitions []state.Partition) (all [][]state.Position, err error) {
	for range partitions {
		all = append(all, positions(int64(e)))
	}
	return all, nil
}

func (everywhere) Log(context.Context, string) (state.LogID, error) {
	return state.LogID{Cluster: "another", Topic: "one"}, nil
}

// ofLog is progress of a log.
type ofLog struct {
	everywhere
	tag string
}

func (o ofLog) Progress(ctx context.Context, partitions []state.Partition) (all [][]state.Position, err error) {
	all, err = o.everywhere.Progress(ctx, partitions)
	for _, of := range all {
		of[0].Log = o.tag
	}
	return all, err
}

// Offsets of a log that was made again say nothing about the present one.
func TestReadOfAnotherLog(t *testing.T) {
	broker := kafkatest.Embedded(t, map[string]int{"tx": 1})
	client := &kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...), Transport: &kafka.Transport{}}
	for tag, other := range map[string]bool{"": false, "before": true} {
		list, err := (&Monitor{Client: client, Group: "weir", Store: ofLog{3, tag}}).Read(t.Context(), []string{"tx"})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		Report{Partitions: list}.WriteText(&text)
		if said := strings.Contains(text.String(), "\ntx/0: what was applied is of another log: "); list[0].OtherLog != other || said != other {
			t.Errorf("of the log %q: %+v\n%s", tag, list[0], text.String())
		}
	}
}

// A leader that does not answer leaves only its own partitions unknown.
func TestReadWithoutALeader(t *testing.T) {
	broker := kafkatest.Embedded(t, map[string]int{"tx": 2})
	broker.ControlKey(int16(kmsg.ListOffsets), func(request kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		reply := request.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, asked := range request.(*kmsg.ListOffsetsRequest).Topics {
			topic := kmsg.NewListOffsetsResponseTopic()
			topic.Topic = asked.Topic
			for _, of := range asked.Partitions {
				p := kmsg.NewListOffsetsResponseTopicPartition()
				if p.Partition, p.Offset = of.Partition, 7; p.Partition == 1 {
					p.ErrorCode = kerr.LeaderNotAvailable.Code
				}
				topic.Partitions = append(topic.Partitions, p)
			}
			reply.Topics = append(reply.Topics, topic)
		}
		return reply, nil, true
	})
	monitor := Monitor{Client: &kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...), Transport: &kafka.Transport{}}, Group: "weir", Store: everywhere(3)}
	list, err := monitor.Read(t.Context(), []string{"tx"})
	if err != nil {
		t.Fatal(err)
	}
	three := int64(3)
	want := []PartitionLag{
		{Topic: "tx", Start: 7, Stable: 7, End: 7, Applied: &three, Furthest: &three, Lost: 4},
		{Topic: "tx", Partition: 1, Applied: &three, Furthest: &three, Error: "fetch: offsets of tx/1: it has no leader yet: try again in a moment"},
	}
	if diff := cmp.Diff(want, list); diff != "" || Unknown(list) != 1 {
		t.Errorf("%d are unknown, want 1 (-want +got):\n%s", Unknown(list), diff)
	}
}

// What is not done is not shown as 100%.
func TestPercent(t *testing.T) {
	for of, want := range map[[2]int64]string{{0, 7}: "0%", {6, 1000}: "1%", {996, 1000}: "99%", {1e15 - 1, 1e15}: "99%", {7, 7}: "100%"} {
		if got := Percent(of[0], of[1]); got != want {
			t.Errorf("%d of %d: got %s, want %s", of[0], of[1], got, want)
		}
	}
}

// Two readings show how long a fill takes. It is unknown for a fill that has not or hardly moved, or is new.
func TestTimeLeft(t *testing.T) {
	epoch := func(id string, filled, all int64) state.FillEpoch {
		return state.FillEpoch{Fill: &state.Fill{ID: id}, Topic: "tx", Filled: filled, All: all}
	}
	read := func(epochs ...state.FillEpoch) []Fill {
		return Fills(&state.History{Fills: epochs}, func(f *state.Fill) []string { return []string{f.ID} })
	}
	done := epoch("done", 7, 7)
	done.Whole = true
	before := read(epoch("begins", 0, 0), epoch("moves", 100, 1000), epoch("stands", 100, 1000), epoch("back", 100, 1000), epoch("hardly", 100, 1e12), done)
	after := read(epoch("begins", 10, 1000), epoch("moves", 200, 1000), epoch("stands", 100, 1000), epoch("back", 90, 1000), epoch("hardly", 101, 1e12), done, epoch("new", 1, 9))
	SetTimeLeft(after, before, 2*time.Second)
	left := map[string]int64{}
	for _, f := range after {
		if f.SecondsLeft != 0 {
			left[f.Features[0]] = f.SecondsLeft
		}
	}
	if diff := cmp.Diff(map[string]int64{"moves": 16}, left); diff != "" {
		t.Errorf("seconds left (-want +got):\n%s", diff)
	}
	if !Filling(before) || Filling(read(done, epoch("begins", 0, 0))) {
		t.Error("Filling does not tell fills in progress from those that are done or have not begun")
	}
	var out strings.Builder
	writeFills(&out, after)
	if !strings.Contains(out.String(), "moves, of tx: backfilled 20%, about 16s left\n") || strings.Count(out.String(), "left") != 1 {
		t.Errorf("the output does not state the time left:\n%s", out.String())
	}
}

// A fill over a cut is done when its files are also applied, and complete since the files are.
func TestFillsOfFiles(t *testing.T) {
	e := state.FillEpoch{
		Fill: &state.Fill{ID: "f", Cut: &state.Cut{Topic: "tx", Until: 5000}}, Topic: "tx",
		Whole: true, Filled: 30, All: 40, FilledRows: 996, AllRows: 1000, Since: 4000, ArchivedSince: 1000,
	}
	for archived, want := range map[bool]string{false: "filling since 1970-01-01T00:00:05Z", true: "done since 1970-01-01T00:00:01Z"} {
		e.Archived = archived
		f := Fills(&state.History{Fills: []state.FillEpoch{e}}, func(*state.Fill) []string { return []string{"paid"} })[0]
		if got := f.Status + " since " + f.Since.Format(time.RFC3339); got != want {
			t.Errorf("with all rows read %v: got %s, want %s", archived, got, want)
		}
		var out strings.Builder
		if writeFills(&out, []Fill{f}); !archived && out.String() != "paid, of tx: backfilled 75%, 99% of the rows of files\n" {
			t.Errorf("got %q; want the share of rows", out.String())
		}
	}
}
