package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/reworded"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/serve/catalogue"
)

// inquiry is one call of weir query.
type inquiry struct {
	address  string
	server   connection
	features []string
	service  string
	entity   map[string]string
	keys     []string // of entity, as given
	members  []string
	at       string
	pending  string // JSON, or the name of a file of it
	event    string // likewise
	raw      bool
	timeout  time.Duration
}

func newQueryCommand() *cobra.Command {
	var q inquiry
	cmd := &cobra.Command{
		Use:   "query FEATURE... KEY=VALUE...",
		Short: "Ask a running server for features of an entity",
		Example: `  weir query device_tx_7d user_amount_1d device_id=d000001 user_id=u000001
  weir query --service payment_risk device_id=d000001 user_id=u000001 card_id=c000001 --at 2018-07-25T05:21:16Z
  weir query card_merchants_7d card_id=c000001 --member m000001 --member m000002
  weir query device_tx_7d device_id=d000001 --pending '{"stream": "transaction", "event": {"device_id": "d000001", …}}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.parse(args); err != nil {
				return err
			}
			if err := q.server.load(); err != nil {
				return err
			}
			cmd.SilenceUsage = true // later errors are not about usage
			ctx, cancel := context.WithTimeout(cmd.Context(), q.timeout)
			defer cancel()
			return q.Run(ctx, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.address, "address", "http://127.0.0.1:8080", "URL of the server")
	q.server.flag = "--address"
	q.server.add(flags)
	flags.StringVar(&q.service, "service", "", "ask for the features of a service")
	flags.StringArrayVar(&q.members, "member", nil, "value to ask features such as seen about; may be given several times")
	flags.StringVar(&q.at, "at", "", "moment asked for: milliseconds since 1970 or RFC 3339 (default now)")
	flags.StringVar(&q.pending, "pending", "", `events to count that are not yet on the bus: {"stream": …, "event": …}, a list of them, or a file of either`)
	flags.StringVar(&q.event, "event", "", `the event in hand, which is only looked at: {"stream": …, "event": …}, or a file of it`)
	flags.BoolVar(&q.raw, "json", false, "print the server's answer as it is")
	flags.DurationVar(&q.timeout, "timeout", 10*time.Second, "how long to wait for the server")
	cmd.ValidArgsFunction = q.complete
	completeFlag(cmd, "service", q.completeService)
	return cmd
}

// parse separates features from the keys of the entity.
func (q *inquiry) parse(args []string) error {
	q.entity = map[string]string{}
	for _, arg := range args {
		key, value, isKey := strings.Cut(arg, "=")
		if !isKey {
			if key, value, ok := strings.Cut(arg, ":"); ok {
				return fmt.Errorf("%q is neither a feature nor KEY=VALUE: did you mean %s=%s?", arg, key, value)
			}
			q.features = append(q.features, arg)
			continue
		}
		if _, twice := q.entity[key]; twice {
			return fmt.Errorf("key %q is given twice", key)
		}
		q.entity[key] = value
		q.keys = append(q.keys, key)
	}
	if len(q.features) == 0 && q.service == "" {
		return errors.New("name a feature or a --service; GET /v1/features of the server lists them")
	}
	q.address = serverURL(q.address)
	return nil
}

func (q *inquiry) Run(ctx context.Context, out io.Writer) error {
	var catalogue catalogue.Catalogue
	if err := q.call(ctx, http.MethodGet, "/v1/features", nil, &catalogue); err != nil {
		return err
	}
	asked := q.asked(catalogue)
	question, err := q.question(asked)
	if err != nil {
		return err
	}
	var body json.RawMessage
	if err := q.call(ctx, http.MethodPost, "/v1/query", question, &body); err != nil {
		return err
	}
	if q.raw {
		_, err := fmt.Fprintln(out, string(body))
		return err
	}
	var answer answer
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("the answer of %s: %w", q.address, err)
	}
	return q.print(out, answer, asked)
}

// asked returns the catalogue's entries of the requested features, each once, in the order of the answer. It skips
// unknown names, because the server's error about them is better.
func (q *inquiry) asked(c catalogue.Catalogue) []catalogue.Feature {
	names := slices.Clone(q.features)
	for _, s := range c.Services {
		if s.Name == q.service {
			names = append(names, s.Features...)
		}
	}
	var asked []catalogue.Feature
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		for _, f := range c.Features {
			if f.Name == name {
				asked = append(asked, f)
			}
		}
	}
	return asked
}

// question makes the question, with the entity's values in the types of their keys.
func (q *inquiry) question(asked []catalogue.Feature) ([]byte, error) {
	types := map[string]string{}
	var known []string
	for _, f := range asked {
		for _, key := range f.Keys {
			if types[key.Name] == "" {
				known = append(known, key.Name)
			}
			types[key.Name] = key.Type
		}
	}
	entity := map[string]any{}
	for _, key := range q.keys {
		if types[key] == "" && len(asked) > 0 {
			return nil, fmt.Errorf("no feature asked for has the key %q; their keys: %s", key, strings.Join(known, ", "))
		}
		entity[key] = literal(q.entity[key], types[key] == "string")
	}
	question := map[string]any{"entities": []any{entity}}
	if len(q.features) > 0 {
		question["features"] = q.features
	}
	if q.service != "" {
		question["service"] = q.service
	}
	if len(q.members) > 0 {
		question["members"] = q.named(asked)
	}
	if q.at != "" {
		question["at"] = literal(q.at, false)
	}
	for part, text := range map[string]string{"pending": q.pending, "event": q.event} {
		if text == "" {
			continue
		}
		events, err := eventsOf("--"+part, text)
		if err != nil {
			return nil, err
		}
		question[part] = events
	}
	return json.Marshal(question)
}

// named returns the members, by the features that need some. If no feature does, they are for all: the server knows
// which features accept them.
func (q *inquiry) named(asked []catalogue.Feature) any {
	list := func(isString bool) (members []any) {
		for _, member := range q.members {
			members = append(members, literal(member, isString))
		}
		return members
	}
	lists, isString := map[string]any{}, false
	for _, f := range asked {
		isString = isString || f.Members == "string"
		if f.MembersNeeded {
			lists[f.Name] = list(f.Members == "string")
		}
	}
	if len(lists) == 0 {
		return list(isString)
	}
	return lists
}

// eventsOf returns the events that a flag gives in JSON, or in a file of JSON.
func eventsOf(flag, given string) (json.RawMessage, error) {
	text, what := []byte(given), flag
	if !strings.HasPrefix(given, "{") && !strings.HasPrefix(given, "[") {
		var err error
		if text, err = os.ReadFile(given); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		what += ": " + given
	}
	if !json.Valid(text) {
		return nil, fmt.Errorf("%s is not JSON: %s", what, reworded.JSON(text))
	}
	return text, nil
}

// literal returns a value in JSON: unchanged if it is valid JSON, else a string, which the server then refuses by name.
func literal(text string, isString bool) any {
	if !isString && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

// call sends a request to the server and decodes its answer.
func (q *inquiry) call(ctx context.Context, method, path string, body []byte, answer any) error {
	return q.server.call(ctx, method, q.address, path, body, answer)
}

// answer is the server's answer.
type answer struct {
	Results []struct {
		Features map[string]value
	}
	Pending []pendingOutcome
}

// pendingOutcome says what became of a pending event.
type pendingOutcome struct {
	Stream       string
	Time         int64
	Met          *int64
	Deduplicated bool
	Late         bool
	Uncounted    bool
}

func (p *pendingOutcome) String() string {
	text := fmt.Sprintf("the pending event of %s at %s ", p.Stream, spelling.Moment(p.Time))
	switch {
	case p.Uncounted:
		return text + "counts nowhere: it is of another entity, or no feature selects it"
	case p.Met != nil:
		text += "is not counted again: its ID was met at " + spelling.Moment(*p.Met)
	case p.Deduplicated:
		text += "is counted, once even if it has already arrived"
	default:
		text += "is counted, twice if it has already arrived"
	}
	if p.Late {
		text += "; it is too late for some features"
	}
	return text
}

// member is the answer about one member.
type member struct {
	Member, Value json.RawMessage
	Status        string
}

type value struct {
	Value         json.RawMessage
	Status        string
	Members       []member
	From          *int64
	To            int64
	Exact         bool
	StandardError float64 `json:"standard_error"`
	RelativeError float64 `json:"relative_error"`
	FalsePositive float64 `json:"false_positive_rate"`
	Uncertain     int64
	Capped        bool
	CompleteSince *int64 `json:"complete_since"`
}

// print writes one line for each feature, and then one for each pending event.
func (q *inquiry) print(out io.Writer, a answer, asked []catalogue.Feature) error {
	var entity []string
	for _, key := range q.keys {
		entity = append(entity, key+"="+q.entity[key])
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ENTITY\tFEATURE\tVALUE\tSTATUS\tFROM\tTO\tEXACT\tCOMPLETE SINCE")
	for _, result := range a.Results {
		for _, f := range asked {
			v := result.Features[f.Name]
			from := "-"
			if v.From != nil {
				from = spelling.Moment(*v.From)
			}
			since := "beginning"
			if status := query.Status(v.Status); v.CompleteSince != nil {
				since = spelling.Moment(*v.CompleteSince)
			} else if status == query.OutsideMaxAge || status == query.NoEvent || status.Unread() {
				since = "-"
			}
			row := func(name, cell, status string) {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
					strings.Join(entity, " "), name, cell, status, from, spelling.Moment(v.To), v.exactness(), since)
			}
			if v.Members == nil {
				row(f.Name, v.cell(), v.Status)
			}
			for _, m := range v.Members {
				row(f.Name+" "+string(m.Member), string(m.Value), m.Status)
			}
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range a.Pending {
		fmt.Fprintln(out, &a.Pending[i])
	}
	return nil
}

// longestCell is about how many bytes of a list the table shows.
const longestCell = 80

// cell returns the value in JSON; of a long list the first items and their number.
func (v value) cell() string {
	var items []json.RawMessage
	if len(v.Value) <= longestCell || json.Unmarshal(v.Value, &items) != nil {
		return string(v.Value)
	}
	text := ""
	for i, item := range items {
		if i > 0 && len(text)+len(item) > longestCell {
			return fmt.Sprintf("[%s… %d in all]", text, len(items))
		}
		text += string(item) + ","
	}
	return string(v.Value)
}

// exactness describes the error of the value.
func (v value) exactness() string {
	if v.Exact {
		return "yes"
	}
	var why []string
	if v.StandardError != 0 {
		why = append(why, "standard error "+strconv.FormatFloat(v.StandardError*100, 'g', 3, 64)+"%")
	}
	if v.RelativeError != 0 {
		why = append(why, "within "+strconv.FormatFloat(v.RelativeError*100, 'g', 3, 64)+"%")
	}
	if v.FalsePositive != 0 {
		why = append(why, "true is wrong with "+strconv.FormatFloat(v.FalsePositive*100, 'g', 3, 64)+"%")
	}
	if v.Uncertain != 0 {
		why = append(why, fmt.Sprintf("up to %d more", v.Uncertain))
	}
	if v.Capped {
		why = append(why, "capped")
	}
	if len(why) == 0 {
		return "no"
	}
	return "no: " + strings.Join(why, ", ")
}
