package record_test

import (
	"fmt"
	"strings"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

const recorded = int64(1_700_000_000_000) // 2023-11-14 22:13:20 UTC

func event(value string) *record.Record {
	return &record.Record{
		Partition: state.Partition{Topic: "events"}, Offset: 42, Timestamp: recorded,
		Value: []byte(strings.ReplaceAll(value, "NOW", fmt.Sprint(recorded))),
	}
}

func str(s string) value.Value { return value.Value{Type: value.String, Str: []byte(s)} }
func num(n int64) value.Value  { return value.Value{Type: value.Int, Num: n} }

func decimal(n int64, scale uint8) value.Value {
	return value.Value{Type: value.Decimal, Num: n, Scale: scale}
}

// show is a value as the tests write it.
func show(v value.Value) string {
	if v.IsNull() {
		return "null"
	}
	return v.Type.String() + " " + string(v.AppendText(nil))
}
