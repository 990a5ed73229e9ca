package serve

import (
	"slices"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/value"
)

// option is a part of a question. Whoever adds one writes its row, what it does, and its part of the documents.
type option struct {
	key string // of a question in JSON
	// read reads the part into what the question asks, with all checks.
	read   func(q *asked, v *fastjson.Value) error
	missed bool // read is also called without the part, with nil
	// openAPI is its property in openapi.yaml, written there by `go test ./serve -run OpenAPIOptions -update`.
	openAPI string

	parameter string // of a URL; empty if a URL cannot have the part
	// takes reports whether a feature takes the parameter; nil if all do. A key with that name takes precedence.
	takes    func(p *preparedFeature) bool
	repeated bool // the parameter may be given more than once
	// parse makes the part from the values of the parameter.
	parse func(r *request, p *preparedFeature, texts []string) (*fastjson.Value, error)
}

// options are the parts of a question, in the order in which they are read: one may need what an earlier one has left.
var options = []option{
	{key: "features", read: (*asked).readFeatures, openAPI: `
          description: Names of features. Each is answered once.
          type: [array, 'null']
          items: {type: string}`},
	{key: "service", read: (*asked).readService, openAPI: `
          description: The name of a service, which asks for all its features.
          type: [string, 'null']`},
	{key: "entities", read: (*asked).readEntities, openAPI: `
          description: |
            Each holds the keys that the features need, and may hold more. Strings are JSON strings;
            int, decimal and timestamp (in milliseconds) are JSON numbers; bool is true or false. Features
            that need a key that is null are null themselves, and NOT_FOUND.
          type: array
          minItems: 1
          items: {type: object}`},
	{key: "members", read: (*asked).readMembers, missed: true, parameter: "member", takes: (*preparedFeature).hasMembers, repeated: true, parse: parseMembers, openAPI: `
          description: |
            Values to ask about: whether the entities have met them. A list for all features asked for,
            or an object of lists by feature name.`},
	{key: "at", read: (*asked).readMoment, parameter: "at", parse: parseMoment, openAPI: `
          description: A Moment; by default that of the latest event, pending or in hand, or the present.`},
	{key: "pending", read: (*asked).readPending, openAPI: `
          description: |
            Events that are not on the bus yet, to be counted as if they were: a PendingEvent, or a list of up
            to 16.`},
	{key: "event", read: (*asked).readEvent, openAPI: `
          description: |
            The event in hand, a PendingEvent, for features that read its fields. It is only looked at, not counted.
            Without it, the latest of the pending events is in hand.`},
	{key: "wait_for", read: (*asked).readWaitFor, parameter: "wait_for", parse: parseWaitFor, openAPI: `
          description: |
            A record that its producer has written. The answer waits until the record is applied wherever
            the question looks, and says whether it was.
          type: [object, 'null']
          required: [topic, partition, offset]
          additionalProperties: false
          properties:
            topic: {type: string}
            partition: {type: integer, format: int64, minimum: 0}
            offset: {type: integer, format: int64, minimum: 0}
            timeout_ms:
              description: How long to wait, at most half of the time that the server has for a question.
              type: [integer, 'null']
              format: int64
              minimum: 0
              default: 100`},
}

var optionKeys = func() (keys []string) {
	for i := range options {
		keys = append(keys, options[i].key)
	}
	return keys
}()

// parameter returns the option that a parameter of the feature's URL sets; nil if it is a key or unknown.
func (p *preparedFeature) parameter(name string) *option {
	i := slices.IndexFunc(options, func(o option) bool { return o.parameter == name && name != "" })
	if i < 0 || slices.Contains(p.By, name) || options[i].takes != nil && !options[i].takes(p) {
		return nil
	}
	return &options[i]
}

// parameters returns the parameters that the feature takes.
func (p *preparedFeature) parameters() []string {
	known := slices.Clone(p.By)
	for i := range options {
		if name := options[i].parameter; p.parameter(name) != nil {
			known = append(known, name)
		}
	}
	return known
}

func unknownParameter(p *preparedFeature, name string) error {
	known := p.parameters()
	return reply.Errorf(reply.UnknownKey, "feature %q has no parameter %s; it takes %s", p.Name, reply.Quote(name), strings.Join(known, ", ")).
		About(p.Name).Unlike(name, known)
}

func (p *preparedFeature) hasMembers() bool { return p.membership != aggregate.NoMembers }

func parseMembers(r *request, p *preparedFeature, texts []string) (*fastjson.Value, error) {
	list := r.arena.NewArray()
	for i, text := range texts {
		v, err := r.literalOf(text, p.member.typ == value.String)
		if err != nil {
			return nil, err
		}
		list.SetArrayItem(i, v)
	}
	return list, nil
}

func parseMoment(r *request, _ *preparedFeature, texts []string) (*fastjson.Value, error) {
	return r.literalOf(texts[0], false)
}

func parseWaitFor(r *request, _ *preparedFeature, texts []string) (*fastjson.Value, error) {
	parts := strings.Split(texts[0], "/") // topic names contain no slash
	if len(parts) != 3 {
		return nil, reply.Errorf(reply.WrongType, "wait_for must be topic/partition/offset, such as transactions/3/1234; %s is not", reply.Quote(texts[0])).At("wait_for")
	}
	wait := r.arena.NewObject()
	wait.Set("topic", r.arena.NewString(parts[0]))
	for i, key := range []string{"partition", "offset"} {
		v, err := r.literalOf(parts[1+i], false)
		if err != nil {
			return nil, err
		}
		wait.Set(key, v)
	}
	return wait, nil
}
