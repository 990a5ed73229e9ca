package cost

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// Sizing is what a workload needs. docs/sizing.md explains how it is computed.
type Sizing struct {
	Topics   []TopicSize  `json:"topics"`
	Entities []EntitySize `json:"entities"`
	// Memory is the size of the state in bytes, without replicas and headroom.
	Memory float64 `json:"memory"`
	// Busy cores: of Redis, of processors, of the API.
	RedisCores     float64 `json:"redis_cores"`
	ProcessorCores float64 `json:"processor_cores"`
	APICores       float64 `json:"api_cores"`
	// What to deploy, with headroom. Masters is the greater of what memory and CPU need.
	MastersByMemory int `json:"masters_by_memory"`
	MastersByCPU    int `json:"masters_by_cpu"`
	Masters         int `json:"masters"`
	Shards          int `json:"shards"`
	Processors      int `json:"processors"` // cores over all processes
	APIs            int `json:"apis"`       // cores over all processes
	// What one question is assumed to ask for: all features of the service that reads most keys, or
	// all features if there is no service.
	QuestionKeys   int `json:"question_keys"`
	QuestionValues int `json:"question_values"`

	load *Workload
}

// TopicSize is the load of one topic.
type TopicSize struct {
	Topic      string  `json:"topic"`
	Events     float64 `json:"events"` // a second
	Keys       float64 `json:"keys"`   // that an event is written to, on average
	Partitions int     `json:"partitions"`
}

// EntitySize is the size of one kind of entity.
type EntitySize struct {
	By     []string `json:"by"`
	Number float64  `json:"number"`
	// Events of one entity, from the stream with the most, over the time for which they are kept. State that is kept
	// forever is in one tile and counts as none.
	Events float64 `json:"events"`
	Bytes  float64 `json:"bytes"` // of one entity
}

// Measured costs in seconds of CPU, including the network's share; see docs/sizing.md.
const (
	secondsEvent     = 2.0e-6 // of a processor: fetched, decoded and mapped
	secondsKey       = 1.1e-6 // of a processor, for each key that an event is written to
	secondsRedisKey  = 1.9e-6 // of Redis, for each such key
	secondsQuestion  = 70e-6  // of the API
	secondsValue     = 0.3e-6 // of the API, for each value asked for
	secondsRedisRead = 2.5e-6 // of Redis, for each key read
)

// Headroom.
const (
	busy          = 0.5  // of a core: backlog of an hour is processed in an hour
	filled        = 0.6  // of a master's memory: forks, buffers and fragmentation take the rest
	partitionRate = 5000 // events a second of one partition
	shardsMaster  = 4    // shards of each master of a cluster at least
)

// Size computes what a workload needs.
func Size(r *features.Registry, w *Workload) *Sizing {
	z := &Sizing{load: w}
	for _, s := range r.Streams {
		z.addStream(s, w.Events[s.Name], float64(keysWritten(r, s)))
	}
	z.sizeQuestion(r)
	z.RedisCores += w.Questions * float64(z.QuestionKeys) * secondsRedisRead
	z.APICores = w.Questions * (secondsQuestion + float64(z.QuestionValues)*secondsValue)
	z.Processors = atLeastOne(z.ProcessorCores / busy)
	if w.Questions > 0 {
		z.APIs = atLeastOne(z.APICores / busy)
	}
	for i := range z.Topics {
		t := &z.Topics[i]
		t.Partitions = max(z.Processors, atLeastOne(t.Events/partitionRate))
	}
	_, entities := sizedNames(r)
	for _, name := range entities {
		e := sizeEntity(r, name, w)
		z.Entities = append(z.Entities, e)
		z.Memory += e.Number * e.Bytes
	}
	z.MastersByMemory = atLeastOne(z.Memory / (filled * w.Memory))
	z.MastersByCPU = atLeastOne(z.RedisCores / busy)
	z.Masters = max(z.MastersByMemory, z.MastersByCPU)
	z.Shards = ShardsFor(z.Masters)
	// A master holds whole shards: the fullest one must not overflow.
	for z.Masters > 1 && z.Memory/float64(z.Shards)*math.Ceil(float64(z.Shards)/float64(z.Masters)) > filled*w.Memory {
		z.Masters++
		z.MastersByMemory, z.Shards = z.Masters, ShardsFor(z.Masters)
	}
	return z
}

// ShardsFor returns the recommended number of state shards for a number of masters, a power of two: few for one Redis,
// where each costs one more call, and for a cluster enough that whole shards spread evenly.
func ShardsFor(masters int) int {
	n := 4
	for masters > 1 && n < max(64, shardsMaster*masters) {
		n *= 2
	}
	return n
}

func atLeastOne(n float64) int { return max(1, int(math.Ceil(n))) }

// FillSeconds returns how long a backfill with a whole core takes to read records of a topic and to apply them to the
// series that it fills. It waits for Redis, so Redis' time is included.
func FillSeconds(r *features.Registry, fill *state.Fill, topic string, records int64) float64 {
	filled, keys := r.FillHas(fill), 0
	for _, s := range r.Streams {
		if s.In(topic) != nil {
			keys = max(keys, keysOf(r, s, func(s *state.Series) bool { return filled[s] }))
		}
	}
	return float64(records) * (secondsEvent + float64(keys)*(secondsKey+secondsRedisKey))
}

// keysWritten returns the number of keys that an event of a stream is written to if it has all fields and passes all
// filters: one for each group of its series, except embedded ones.
func keysWritten(r *features.Registry, stream *record.Stream) int {
	return keysOf(r, stream, func(*state.Series) bool { return true })
}

// keysOf returns keysWritten with some series only.
func keysOf(r *features.Registry, stream *record.Stream, some func(*state.Series) bool) int {
	groups := map[string]bool{}
	for _, s := range r.Series {
		if s.Stream == stream.Name && some(s) {
			groups[cmp.Or(s.Parent, s.Group)] = true
		}
	}
	return len(groups)
}

// addStream adds the work for a number of events a second of a stream, each written to a number of keys. They are taken to be
// spread evenly over its topics.
func (z *Sizing) addStream(s *record.Stream, events, keys float64) {
	if events == 0 {
		return
	}
	topics := s.Topics()
	for _, topic := range topics {
		i := slices.IndexFunc(z.Topics, func(t TopicSize) bool { return t.Topic == topic })
		if i < 0 {
			i, z.Topics = len(z.Topics), append(z.Topics, TopicSize{Topic: topic})
		}
		t, share := &z.Topics[i], events/float64(len(topics))
		t.Keys = (t.Keys*t.Events + keys*share) / (t.Events + share)
		t.Events += share
	}
	z.ProcessorCores += events * (secondsEvent + keys*secondsKey)
	z.RedisCores += events * keys * secondsRedisKey
}

// sizeEntity computes the size of one kind of entity. It assumes that each event of an entity begins a new tile, or
// brings a new value, until the bounds are reached.
func sizeEntity(r *features.Registry, name string, w *Workload) EntitySize {
	e := EntitySize{Number: w.Entities[name]}
	var groups []string
	for _, s := range r.Series {
		if strings.Join(s.By, "+") != name {
			continue
		}
		e.By = s.By
		if !slices.Contains(groups, s.Group) {
			groups = append(groups, s.Group)
			e.Bytes += float64(bytesOf(s))
		}
		events := w.Events[s.Stream] / max(1, e.Number) * float64(s.Keep) / 1000
		e.Events = max(e.Events, events)
		e.Bytes += seriesSize(s, events)
	}
	return e
}

// seriesSize returns the bytes that a series takes of an entity that has `events` events while they are kept.
func seriesSize(s *state.Series, events float64) float64 {
	alone := explainEntity([]*state.Series{s})
	one := float64(alone.BytesOnce - bytesOf(s) - bytesSeries)
	all := float64(alone.BytesFull - bytesKey - bytesSeries)
	if s.Keep == 0 {
		return bytesSeries + all
	}
	return bytesSeries + min(max(1, events)*one, all)
}

// sizeQuestion finds the service that reads most keys.
func (z *Sizing) sizeQuestion(r *features.Registry) {
	questions := [][]*features.Feature{r.Features}
	if len(r.Services) > 0 {
		questions = nil
		for _, s := range r.Services {
			questions = append(questions, s.Features)
		}
	}
	for _, features := range questions {
		var explained Feature
		keys, sum := map[string]int{}, 0
		for _, f := range features {
			explainReads(f, &explained, keys, "", 1)
		}
		for _, n := range keys {
			sum += n
		}
		if sum > z.QuestionKeys {
			z.QuestionKeys, z.QuestionValues = sum, len(features)
		}
	}
}
