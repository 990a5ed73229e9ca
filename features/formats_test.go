package features_test

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/twmb/avro"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
)

// transactionSchema is the writer's schema of a record like transaction.
const transactionSchema = `{"type": "record", "name": "Transaction", "fields": [
  {"name": "event_id", "type": "string"}, {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}},
  {"name": "type", "type": "string"}, {"name": "user_id", "type": "string"}, {"name": "device_id", "type": ["null", "string"]},
  {"name": "card_id", "type": ["null", "string"]}, {"name": "merchant_id", "type": "string"}, {"name": "ip", "type": ["null", "string"]},
  {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
  {"name": "score", "type": "double"}, {"name": "status", "type": "string"}]}`

func avroTransaction(t testing.TB) []byte {
	t.Helper()
	data, err := avro.MustParse(transactionSchema).Encode(map[string]any{
		"event_id": "t000000001", "timestamp": recorded, "type": "transaction", "user_id": "u000001",
		"device_id": map[string]any{"string": "d000001"}, "card_id": map[string]any{"string": "c000001"}, "merchant_id": "m00001",
		"ip": map[string]any{"string": "10.1.2.3"}, "amount": big.NewRat(16660, 100), "score": 0.5, "status": "declined",
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const transactionProto = `syntax = "proto3"; import "confluent/type/decimal.proto"; message Transaction { string event_id = 1; int64 timestamp = 2;
  string type = 3; string user_id = 4; optional string device_id = 5; optional string card_id = 6; string merchant_id = 7; optional string ip = 8;
  confluent.type.Decimal amount = 9; double score = 10; string status = 11; }`

func protobufTransaction() (data []byte) {
	data = protowire.AppendVarint(protowire.AppendTag(data, 2, protowire.VarintType), uint64(recorded))
	const amount = "\x0a\x02\x41\x14\x18\x02" // 166.60 of scale 2
	for i, text := range []string{"t000000001", "", "transaction", "u000001", "d000001", "c000001", "m00001", "10.1.2.3", amount, "", "declined"} {
		if text != "" {
			data = protowire.AppendString(protowire.AppendTag(data, protowire.Number(1+i), protowire.BytesType), text)
		}
	}
	return protowire.AppendFixed64(protowire.AppendTag(data, 10, protowire.Fixed64Type), math.Float64bits(0.5))
}

// inFormat makes a decoder of mapperDefinitions for records in another format.
func inFormat(t testing.TB, format string) *record.Decoder {
	t.Helper()
	text := strings.ReplaceAll(mapperDefinitions, "    topic: events\n", "    topic: events\n    format: "+format+"\n")
	r, err := definition.LoadFS(fstest.MapFS{
		"test.yaml": {Data: []byte(text)}, "tx.avsc": {Data: []byte(transactionSchema)}, "tx.proto": {Data: []byte(transactionProto)},
	}, "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return r.NewDecoder()
}

// The same transaction in each format.
func BenchmarkFormats(b *testing.B) {
	for _, f := range []struct {
		name, format string
		value        []byte
	}{
		{"json", "json", event(transaction).Value},
		{"avro", "{type: avro, schema: tx.avsc}", avroTransaction(b)},
		{"protobuf", "{type: protobuf, schema: tx.proto}", protobufTransaction()},
	} {
		b.Run(f.name, func(b *testing.B) {
			d := inFormat(b, f.format)
			rec := event("")
			rec.Value = f.value
			b.SetBytes(int64(len(rec.Value)))
			b.ReportAllocs()
			for b.Loop() {
				if events, err := d.Decode(rec); err != nil || len(events) != 1 {
					b.Fatal(events, err)
				}
			}
		})
	}
}
