package status

import (
	"log/slog"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/weir-stream/weir/serve/reply"
)

// Status is the answer of GET /v1/status: what this process has counted since its start, as in
// /metrics.
type Status struct {
	At int64 `json:"at"` // milliseconds
	// Processor is absent if the process applies no events.
	Processor *Processor `json:"processor,omitempty"`
	// Backfills are the backfills under way for the assigned partitions; absent if the process applies no events.
	Backfills []Backfill `json:"backfills,omitzero"`
	// Questions counts questions by outcome.
	Questions []Count `json:"questions"`
}

// Processor counts the events of this process.
type Processor struct {
	Partitions  int     `json:"partitions"` // assigned
	Events      []Count `json:"events"`     // by stream and outcome
	Lag         []Count `json:"lag"`        // by topic and assigned partition
	Open        []Count `json:"open"`       // the part of the lag that an open transaction blocks
	OpenAge     []Count `json:"open_age"`   // seconds for which the transaction has been seen open
	Rewinds     []Count `json:"rewinds"`    // by topic
	Lost        []Count `json:"lost"`       // by topic
	DeadLetters []Count `json:"dead_letters"`
	// Freshness is the time from an event's record until it was applied.
	Freshness Histogram `json:"freshness"`
	// LastDeadLetters are the last few, the latest first.
	LastDeadLetters []DeadLetter `json:"last_dead_letters"`
}

// Count is a number with its labels.
type Count struct {
	Stream    string  `json:"stream,omitempty"`
	Topic     string  `json:"topic,omitempty"`
	Partition string  `json:"partition,omitempty"`
	Outcome   string  `json:"outcome,omitempty"`
	Reason    string  `json:"reason,omitempty"`
	Count     float64 `json:"count"`
}

// Histogram is a distribution of times.
type Histogram struct {
	Count   uint64   `json:"count"`
	Buckets []Bucket `json:"buckets"` // ascending; times above the last one are in Count only
}

// Bucket counts the times of at most Le seconds.
type Bucket struct {
	Seconds float64 `json:"seconds"`
	Count   uint64  `json:"count"`
}

// Backfill describes a backfill under way, of a topic's earlier records for new features.
type Backfill struct {
	Features []string `json:"features"`
	Topic    string   `json:"topic"`
	Applied  int64    `json:"applied"` // offsets, of Total; both are 0 before it has begun
	Total    int64    `json:"total"`
	Share    float64  `json:"share"` // 0 to 1
	// Rate is the offsets per second; absent while unknown.
	Rate float64 `json:"rate,omitempty"`
	// SecondsLeft is about how long the rest takes at that rate; absent while unknown.
	SecondsLeft int64 `json:"seconds_left,omitempty"`
	// Files are the files that weir backfill applies for events before the topic's records; absent if there are none.
	Files *Files `json:"files,omitempty"`
}

// Files are files of events.
type Files struct {
	Count   int   `json:"count"`
	Applied int64 `json:"applied"` // rows, of Total
	Total   int64 `json:"total"`
}

// DeadLetter describes a record that was set aside, without its content.
type DeadLetter struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Timestamp int64  `json:"timestamp"` // of the record, in milliseconds
	Stream    string `json:"stream,omitempty"`
	Reason    string `json:"reason"`
	Path      string `json:"path,omitempty"` // in the record, with dots
}

// StatusHandler answers GET /v1/status.
func (p Process) StatusHandler(now func() time.Time, log *slog.Logger) http.Handler {
	return reply.Answer(func(http.ResponseWriter, *http.Request) ([]byte, *reply.Error) {
		families, err := p.Gatherer.Gather()
		if err != nil {
			log.Error("the metrics cannot be gathered", "error", err)
			return nil, reply.Defect()
		}
		return reply.AppendJSON(nil, p.status(families, now())), nil
	})
}

func (p Process) status(families []*dto.MetricFamily, now time.Time) Status {
	byName := make(map[string]*dto.MetricFamily, len(families))
	for _, f := range families {
		byName[f.GetName()] = f
	}
	s := Status{At: now.UnixMilli(), Questions: counts(byName["weir_question_duration_seconds"])}
	if assigned := byName["weir_assigned_partitions"]; assigned != nil {
		s.Processor = &Processor{
			Partitions:      int(assigned.Metric[0].GetGauge().GetValue()),
			Events:          counts(byName["weir_events_total"]),
			Lag:             counts(byName["weir_lag_records"]),
			Open:            counts(byName["weir_open_transaction_records"]),
			OpenAge:         counts(byName["weir_open_transaction_age_seconds"]),
			Rewinds:         counts(byName["weir_rewinds_total"]),
			Lost:            counts(byName["weir_lost_records_total"]),
			DeadLetters:     counts(byName["weir_dead_letters_total"]),
			Freshness:       histogram(byName["weir_freshness_seconds"]),
			LastDeadLetters: []DeadLetter{},
		}
		if p.DeadLetters != nil {
			s.Processor.LastDeadLetters = append(s.Processor.LastDeadLetters, p.DeadLetters()...)
		}
	}
	if p.Backfills != nil {
		s.Backfills = append([]Backfill{}, p.Backfills()...)
	}
	return s
}

// counts returns the numbers of a metric family, which may be nil. For a histogram it is the number of observations.
func counts(f *dto.MetricFamily) []Count {
	list := []Count{}
	for _, m := range f.GetMetric() {
		c := Count{
			Count: m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()),
		}
		for _, label := range m.GetLabel() {
			switch label.GetName() {
			case "stream":
				c.Stream = label.GetValue()
			case "topic":
				c.Topic = label.GetValue()
			case "partition":
				c.Partition = label.GetValue()
			case "outcome":
				c.Outcome = label.GetValue()
			case "reason":
				c.Reason = label.GetValue()
			}
		}
		list = append(list, c)
	}
	return list
}

// histogram returns the histogram of a metric family, which may be nil.
func histogram(f *dto.MetricFamily) Histogram {
	s := Histogram{Buckets: []Bucket{}}
	for _, m := range f.GetMetric() {
		s.Count = m.GetHistogram().GetSampleCount()
		for _, b := range m.GetHistogram().GetBucket() {
			s.Buckets = append(s.Buckets, Bucket{b.GetUpperBound(), b.GetCumulativeCount()})
		}
	}
	return s
}
