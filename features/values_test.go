package features_test

import "github.com/weir-stream/weir/value"

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
