package model

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/avro"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

const paySchema = `{"type": "record", "name": "Pay", "fields": [
  {"name": "status", "type": "string"}, {"name": "user", "type": ["null", "string"]}, {"name": "device", "type": "string"},
  {"name": "amount", "type": "double"}, {"name": "t", "type": "long"}]}`

func payJSON(user, device string, amount float64, status string, at int64) string {
	return fmt.Sprintf(`{"user": %q, "device": %q, "amount": %v, "status": %q, "t": %d}`, user, device, amount, status, at)
}

func marshalAvro(t *testing.T, event map[string]any) string {
	t.Helper()
	event["user"] = map[string]any{"string": event["user"]}
	data, err := avro.MustParse(paySchema).Encode(event)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Answers from records in another format equal the model over the same events in JSON.
func TestFormatsEqualModel(t *testing.T) {
	formats := map[string]func(user, device string, amount float64, status string, at int64) string{
		`{type: csv, columns: [status, user, t, device, amount], separator: "|"}`: func(user, device string, amount float64, status string, at int64) string {
			return fmt.Sprintf("%s|%s|%d|\"%s\"|%v\n", status, user, at, device, amount)
		},
		"json_schema": func(user, device string, amount float64, status string, at int64) string {
			return "\x00\x00\x00\x00\x01" + payJSON(user, device, amount, status, at)
		},
		"debezium": func(user, device string, amount float64, status string, at int64) string {
			return fmt.Sprintf(`{"payload": {"before": {"user": "before"}, "after": %s, "op": "u"}}`, payJSON(user, device, amount, status, at))
		},
		"cloudevents": func(user, device string, amount float64, status string, at int64) string {
			return fmt.Sprintf(`{"specversion": "1.0", "user": "no", "data": %s}`, payJSON(user, device, amount, status, at))
		},
		`{type: avro, schema: pay.avsc}`: func(user, device string, amount float64, status string, at int64) string {
			return marshalAvro(t, map[string]any{"status": status, "user": user, "device": device, "amount": amount, "t": at})
		},
		`{type: protobuf, schema: pay.proto}`: func(user, device string, amount float64, status string, at int64) string {
			data := protowire.AppendVarint(protowire.AppendTag(nil, 5, protowire.VarintType), uint64(at))
			for i, text := range []string{status, user, device} {
				data = protowire.AppendString(protowire.AppendTag(data, protowire.Number(1+i), protowire.BytesType), text)
			}
			return string(protowire.AppendFixed64(protowire.AppendTag(data, 4, protowire.Fixed64Type), math.Float64bits(amount)))
		},
	}
	if want := len(record.Formats) - 1; len(formats) != want {
		t.Errorf("%d formats are compared with JSON, want all %d", len(formats), want)
	}
	for format, write := range formats {
		r, err := definition.LoadFS(fstest.MapFS{
			"test.yaml": {Data: []byte(strings.Replace(definitions, "topic: pay\n", "topic: pay\n    format: "+format+"\n", 1))},
			"pay.avsc":  {Data: []byte(paySchema)},
			"pay.proto": {Data: []byte(`syntax = "proto3"; message Pay { string status = 1; string user = 2; string device = 3; double amount = 4; int64 t = 5; }`)},
		}, "test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		f := newFixture(t)
		random, mapper, stored := rand.New(rand.NewPCG(3, 1)), r.NewMapper(), memory.New()
		pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
		var now int64
		for range 500 {
			now += random.Int64N(60)
			user, device, status := pick("a", "b"), pick("d1", "d2", "d3"), pick("ok", "no", "")
			amount := float64(random.IntN(1000)) / 100
			event, err := json.Marshal(map[string]any{"user": user, "device": device, "status": status, "amount": amount})
			if err != nil {
				t.Fatal(err)
			}
			f.apply(now, string(event[1:len(event)-1]))
			b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
			_, err = mapper.Map(&record.Record{
				Partition: state.Partition{Topic: "pay"}, Timestamp: (recorded + now) * 1000,
				Value: []byte(write(user, device, amount, status, recorded+now)),
			}, 0, b)
			if err != nil {
				t.Fatal(err)
			}
			if err := stored.Apply(context.Background(), b); err != nil {
				t.Fatal(err)
			}
		}
		at := (recorded + now) * 1000
		for _, feature := range r.Features {
			own, _ := f.registry.Feature(feature.Name)
			for _, entity := range f.model.Entities(own) {
				got, want := answer(t, stored, feature, entity, at, at), f.model.Answer(own, entity, at)
				if diff := cmp.Diff(want.Value, got.Value); diff != "" || (want.Found || want.Capped) != (got.Status != query.NotFound) {
					t.Errorf("%s of %s in format %s is %s (-model +store):\n%s", feature.Name, entity, format, got.Status, diff)
				}
			}
		}
	}
}
