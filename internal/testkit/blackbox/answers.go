package blackbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/value"
)

// Answer is the value of one feature in an HTTP response.
type Answer struct {
	Value     json.RawMessage
	Status    query.Status
	Exact     bool
	Uncertain int64
	Capped    bool
	// StandardError is relative; 0 if the answer has none.
	StandardError float64 `json:"standard_error"`
	// Members are the answers about the members that the question names; FalsePositiveRate applies
	// to each true among them.
	Members           []Member
	FalsePositiveRate float64 `json:"false_positive_rate"`

	From          *int64
	To            int64
	CompleteSince *int64 `json:"complete_since"`
	LaterEvents   bool   `json:"later_events"`
}

// Question is the body of POST /v1/query.
type Question struct {
	Features []string          `json:"features"`
	Entities []json.RawMessage `json:"entities"`
	At       int64             `json:"at"`
	Pending  json.RawMessage   `json:"pending,omitempty"`
	// Members are named for each feature.
	Members map[string][]json.RawMessage `json:"members,omitempty"`
	WaitFor *Record                      `json:"wait_for,omitempty"`
}

// Record names a record that a question waits for.
type Record struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Timeout   int64  `json:"timeout_ms"`
}

// Reply is the response to a question.
type Reply struct {
	Results   []struct{ Features map[string]Answer } // one for each entity, in the order of the question
	Waited    struct{ Applied bool }                 // whether the results include the record of WaitFor
	ReadFrom  string                                 `json:"read_from"` // "replica" if any of the state was read from one
	Staleness int64                                  `json:"staleness_ms"`
	TableLag  *int64                                 `json:"table_lag_ms"` // of the tables that the answers need; nil for none
}

// Ask asks the API at a URL and returns the answers by entity, each by feature.
func Ask(url string, q Question) ([]map[string]Answer, error) {
	reply, err := Query(url, q)
	if err != nil {
		return nil, err
	}
	answers := make([]map[string]Answer, len(reply.Results))
	for i, r := range reply.Results {
		answers[i] = r.Features
		for name, a := range r.Features {
			if a.Members != nil {
				a.Status = a.Members[0].Status // all members have the same status
				r.Features[name] = a
			}
		}
	}
	return answers, nil
}

// Query asks the API at a URL.
func Query(url string, q Question) (*Reply, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	response, err := http.Post(url+"/v1/query", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", response.Status, text)
	}
	var reply Reply
	if err := json.Unmarshal(text, &reply); err != nil {
		return nil, err
	}
	return &reply, nil
}

// maxValues is the default limit of values that one question may ask for.
const maxValues = 10_000

// Comparison compares answers of an API with the model's.
type Comparison struct {
	T     testing.TB
	URL   string // of the API
	Model *model.Model
	// Partly accepts answers that are complete only since a moment within their coverage.
	Partly bool
	// MayLack says of which features of enriched events the same is accepted; nil for none.
	MayLack func(*features.Feature) bool
	// Gaps also accepts such answers, and still compares them: the log has lost records that the state still has.
	Gaps bool
	// Earlier returns the answer of the model of earlier definitions, if they have the feature. Their caps may have
	// been lower: an answer that is capped like theirs, but not like the model's, is skipped.
	Earlier func(feature, entity string, at int64) (r aggregate.Result, has bool)
	// Members maps fields to members, for features that need some. Features whose field is missing here are not asked
	// for.
	Members map[string][]value.Value

	Compared, Wrong int
	falsePositives
	Incomplete map[string]int   // answers skipped, by feature
	Capped     map[string]int   // answers skipped because of earlier caps, by feature
	Complete   map[string]int   // answers compared, by feature that is complete since a moment
	Since      map[string]int64 // that moment, by feature
}

// All asks for every feature of every entity at the moments and compares the answers. It skips moments that are further
// before clock than a feature is kept.
func (c *Comparison) All(r *features.Registry, clock int64, moments ...int64) {
	c.T.Helper()
	c.Incomplete, c.Capped, c.Complete, c.Since = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int64{}
	c.ask(r, clock, moments, func(asked []*features.Feature, entities []string, at int64) bool {
		c.chunk(asked, entities, at)
		return true
	})
	if problem := c.problem(); problem != "" {
		c.Wrong++
		c.T.Errorf("%s", problem)
	}
	if c.Wrong > 0 {
		c.T.Errorf("%d of %d answers differ from the model", c.Wrong, c.Compared)
	}
}

// FirstIncomplete asks what All asks until an answer is not complete, or is still from tiles of another width than those of the
// definition, and returns that answer; "" if all are complete.
func (c *Comparison) FirstIncomplete(r *features.Registry, clock int64, moments ...int64) (first string, err error) {
	c.ask(r, clock, moments, func(asked []*features.Feature, entities []string, at int64) bool {
		var answers []map[string]Answer
		if answers, err = Ask(c.URL, c.question(asked, entities, at)); err != nil {
			return false
		}
		for i, entity := range entities {
			for _, f := range asked {
				if a := answers[i][f.Name]; a.Status == query.Incomplete {
					first = fmt.Sprintf("%s of %s at %d is %s", f.Name, entity, at, a.Status)
					if a.CompleteSince != nil {
						first += fmt.Sprintf(", complete since %d", *a.CompleteSince)
					}
					return false
				} else if len(f.Parts()) == 0 && f.Window.Tiled() && a.From != nil {
					if from, to := f.Window.Covers(f.Series[0], at, math.MaxInt64); *a.From != from || a.To != to && to < clock {
						first = fmt.Sprintf("%s of %s at %d covers %d to %d, and not %d to %d", f.Name, entity, at, *a.From, a.To, from, to)
						return false
					}
				}
			}
		}
		return true
	})
	return first, err
}

// ask calls a function with each question: some features of the same entities, some of these, and a
// moment. It ends when the function returns false.
func (c *Comparison) ask(r *features.Registry, clock int64, moments []int64, question func(asked []*features.Feature, entities []string, at int64) bool) {
	for _, group := range c.groups(r) {
		var entities []string
		for _, f := range group {
			entities = append(entities, c.Model.Entities(f)...)
		}
		slices.Sort(entities)
		entities = slices.Compact(entities)
		for _, at := range moments {
			asked := slices.DeleteFunc(slices.Clone(group), func(f *features.Feature) bool {
				return f.Forgets() && at < clock-f.Keep.Milliseconds()
			})
			if len(asked) == 0 {
				continue
			}
			cost := len(asked)
			for _, f := range asked {
				cost += f.FanOut() + len(c.membersOf(f))
			}
			for chunk := range slices.Chunk(entities, maxValues/cost) {
				if !question(asked, chunk, at) {
					return
				}
			}
		}
	}
}

// question asks for features of entities at a moment.
func (c *Comparison) question(asked []*features.Feature, entities []string, at int64) Question {
	q := Question{At: at}
	for _, f := range asked {
		q.Features = append(q.Features, f.Name)
		q.name(f, c.membersOf(f))
	}
	for _, entity := range entities {
		q.Entities = append(q.Entities, entityJSON(asked[0], entity))
	}
	return q
}

// groups returns the features by their by-fields, without those that need the event in hand, which no question has; features
// that need members have groups of their own.
func (c *Comparison) groups(r *features.Registry) map[string][]*features.Feature {
	groups := map[string][]*features.Feature{}
	for _, f := range r.Features {
		if f.InHand != nil {
			continue
		}
		by := strings.Join(f.By, ",")
		if f.Membership() == aggregate.MembersRequired {
			if by += " with members"; c.membersOf(f) == nil {
				continue
			}
		}
		groups[by] = append(groups[by], f)
	}
	return groups
}

// Shown bounds the differences that are printed in full.
const Shown = 10

func (c *Comparison) chunk(asked []*features.Feature, entities []string, at int64) {
	c.T.Helper()
	q := c.question(asked, entities, at)
	var answers []map[string]Answer
	testkit.Eventually(c.T, 2*time.Minute, "an answer", func() (bool, string) { // a busy machine answers slowly
		var err error
		answers, err = Ask(c.URL, q)
		if err == nil && slices.ContainsFunc(answers, unavailable) {
			err = fmt.Errorf("some are %s", query.Unavailable)
		}
		return err == nil, fmt.Sprint(err)
	})
	for i, entity := range entities {
		for _, f := range asked {
			got := answers[i][f.Name]
			want := c.want(f, entity, at)
			if got.CompleteSince != nil && c.Gaps {
				got = bearGap(got, f, want)
			}
			if got.CompleteSince != nil && c.Partly {
				c.Since[f.Name] = *got.CompleteSince
				if got.From == nil || *got.From < *got.CompleteSince {
					c.Incomplete[f.Name]++
					if got.Status != query.Incomplete || got.Exact {
						c.T.Errorf("%s of %s at %d is incomplete, but has the status %s, exact %v", f.Name, entity, at, got.Status, got.Exact)
					}
					continue
				}
				c.Complete[f.Name]++
				got.CompleteSince = nil
			}
			if got.Capped && !want.Capped && c.cappedEarlier(f.Name, entity, at) {
				c.Capped[f.Name]++
				continue
			}
			c.Compared++
			c.note(got, want)
			difference := Differs(got, f, want)
			// A feature over rows alone counts no other later events.
			if younger := c.Model.Younger(f, entity, at); difference == "" && younger != got.LaterEvents && (younger || len(f.Series) == 0) {
				difference = fmt.Sprintf("%s %s later_events=%v; want %v of the row", got.Value, got.Status, got.LaterEvents, younger)
			}
			if difference != "" {
				c.differs("%s of %s at %d: %s (%s)", f.Name, entity, at, difference, f.Definition)
			}
		}
	}
}

func (c *Comparison) cappedEarlier(feature, entity string, at int64) bool {
	if c.Earlier == nil {
		return false
	}
	r, has := c.Earlier(feature, entity, at)
	return has && r.Capped
}

// unavailable reports whether a Redis master did not answer for an entity.
func unavailable(answers map[string]Answer) bool {
	for _, a := range answers {
		if a.Status == query.Unavailable {
			return true
		}
	}
	return false
}

// bearGap returns an answer as it would be without its gap.
func bearGap(got Answer, f *features.Feature, want aggregate.Result) Answer {
	if got.Status == query.Incomplete {
		got = unmarked(got, f, want)
	}
	got.CompleteSince = nil
	return got
}

// bearLater returns an answer as it would be about the present: the model counts the later events of a tile, too. One
// that is not marked as it must be is left as it is.
func bearLater(got Answer, f *features.Feature, want aggregate.Result) Answer {
	if got.Status != query.LaterEvents || got.Exact {
		return got
	}
	return unmarked(got, f, want)
}

// unmarked returns an answer with the status and the exactness that the model's has.
func unmarked(got Answer, f *features.Feature, want aggregate.Result) Answer {
	precise, _ := precision(f)
	got.Status = statusOf(want)
	got.Exact = precise && got.StandardError == 0 && got.FalsePositiveRate == 0 && isExact(want)
	return got
}

// statusOf returns the status of a complete answer.
func statusOf(r aggregate.Result) query.Status {
	switch {
	case !r.Found:
		return query.NotFound
	case r.IsNull():
		return query.NullValue
	}
	return query.Present
}

// entityJSON returns an entity as a question names it: the values in text, in the order of the
// feature's fields, by field name.
func entityJSON(f *features.Feature, text string) json.RawMessage {
	types := map[string]value.Type{}
	for i, by := range f.By {
		types[by] = f.ByTypes[i]
	}
	values := splitEntity(text)
	entity := map[string]any{}
	for i, by := range f.By {
		entity[by] = values[i]
		if types[by] != value.String {
			entity[by] = json.RawMessage(values[i])
		}
	}
	out, err := json.Marshal(entity)
	if err != nil {
		panic(err) // cannot happen: only strings, numbers and bools
	}
	return out
}

// splitEntity undoes state.AppendEntity.
func splitEntity(text string) []string {
	values := []string{""}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '|':
			values = append(values, "")
			continue
		case '\\':
			i++
		}
		values[len(values)-1] += text[i : i+1]
	}
	return values
}
