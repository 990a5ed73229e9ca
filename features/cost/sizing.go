package cost

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
)

// Sizing is what a workload needs. docs/sizing.md says how it is computed.
type Sizing struct {
	Topics   []TopicSize  `json:"topics"`
	Entities []EntitySize `json:"entities"`
	// Memory is that of the state, in bytes, replicas and headroom not included.
	Memory float64 `json:"memory"`
	// Cores that are kept busy: of Redis, of processors, of the API.
	RedisCores     float64 `json:"redis_cores"`
	ProcessorCores float64 `json:"processor_cores"`
	APICores       float64 `json:"api_cores"`
	// What to have, with headroom. Masters is the greater of the two that memory
	// and CPU ask for.
	MastersByMemory int `json:"masters_by_memory"`
	MastersByCPU    int `json:"masters_by_cpu"`
	Masters         int `json:"masters"`
	Shards          int `json:"shards"`
	Processors      int `json:"processors"` // cores over all processes
	APIs            int `json:"apis"`       // cores over all processes
	// What one question is taken to ask for: all features of the service that
	// reads most keys, or all there are.
	QuestionKeys   int `json:"question_keys"`
	QuestionValues int `json:"question_values"`

	load *Workload
}

// TopicSize is what is read from one topic.
type TopicSize struct {
	Topic      string  `json:"topic"`
	Events     float64 `json:"events"` // a second
	Keys       float64 `json:"keys"`   // that an event is written to, on average
	Partitions int     `json:"partitions"`
}

// EntitySize is what one kind of entities takes.
type EntitySize struct {
	By     []string `json:"by"`
	Number float64  `json:"number"`
	// Events of one entity, of the stream that brings most, in the time for which
	// they are kept. What is kept for ever is in one tile and counts for none.
	Events float64 `json:"events"`
	Bytes  float64 `json:"bytes"` // of one entity
}

// Measured costs in seconds of CPU; see docs/sizing.md. The network's share is
// included.
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
	busy          = 0.5  // of a core: what was missed in an hour is caught up with in an hour
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
	z.Processors = atLeast(1, z.ProcessorCores/busy)
	if w.Questions > 0 {
		z.APIs = atLeast(1, z.APICores/busy)
	}
	for i := range z.Topics {
		t := &z.Topics[i]
		t.Partitions = max(z.Processors, atLeast(1, t.Events/partitionRate))
	}
	_, entities := sizedNames(r)
	for _, name := range entities {
		e := sizeEntity(r, name, w)
		z.Entities = append(z.Entities, e)
		z.Memory += e.Number * e.Bytes
	}
	z.MastersByMemory = atLeast(1, z.Memory/(filled*w.Memory))
	z.MastersByCPU = atLeast(1, z.RedisCores/busy)
	z.Masters = max(z.MastersByMemory, z.MastersByCPU)
	z.Shards = ShardsFor(z.Masters)
	// A master holds whole shards: the fullest one must not overflow.
	for z.Masters > 1 && z.Memory/float64(z.Shards)*math.Ceil(float64(z.Shards)/float64(z.Masters)) > filled*w.Memory {
		z.Masters++
		z.MastersByMemory, z.Shards = z.Masters, ShardsFor(z.Masters)
	}
	return z
}

// ShardsFor is how many state shards a number of masters wants, a power of two:
// few for one Redis, where each only costs a call of its own, and for a cluster
// enough that whole ones are spread evenly.
func ShardsFor(masters int) int {
	n := 16
	for masters > 1 && n < max(64, shardsMaster*masters) {
		n *= 2
	}
	return n
}

func atLeast(least int, n float64) int { return max(least, int(math.Ceil(n))) }

// keysWritten is the number of keys that an event of a stream is written to, if
// it has all fields and passes all filters: one for each group of its series, but for those
// that are embedded.
func keysWritten(r *features.Registry, stream *record.Stream) int {
	groups := map[string]bool{}
	for _, s := range r.Series {
		if s.Stream == stream.Name {
			groups[cmp.Or(s.Parent, s.Group)] = true
		}
	}
	return len(groups)
}

// addStream adds the work for a stream's events, a second, and the keys that each
// is written to.
func (z *Sizing) addStream(s *record.Stream, events, keys float64) {
	if events == 0 {
		return
	}
	i := slices.IndexFunc(z.Topics, func(t TopicSize) bool { return t.Topic == s.Topic })
	if i < 0 {
		i, z.Topics = len(z.Topics), append(z.Topics, TopicSize{Topic: s.Topic})
	}
	t := &z.Topics[i]
	t.Keys = (t.Keys*t.Events + keys*events) / (t.Events + events)
	t.Events += events
	z.ProcessorCores += events * (secondsEvent + keys*secondsKey)
	z.RedisCores += events * keys * secondsRedisKey
}

// sizeEntity computes what one kind of entities takes. Each event of one is taken
// to open a tile of its own, or to bring a value of its own, until all that
// may be kept is.
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
		events := w.Events[s.Stream] / max(1, e.Number) * window.Milliseconds(s.Keep).Seconds()
		e.Events = max(e.Events, events)
		e.Bytes += seriesSize(s, events)
	}
	return e
}

// seriesSize is what a series takes of an entity that has a number of events
// while it is kept.
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
		var plan Feature
		keys, sum := map[string]int{}, 0
		for _, f := range features {
			explainReads(f, &plan, keys, "", 1)
		}
		for _, n := range keys {
			sum += n
		}
		if sum > z.QuestionKeys {
			z.QuestionKeys, z.QuestionValues = sum, len(features)
		}
	}
}
