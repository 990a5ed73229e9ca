package features

import "github.com/weir-stream/weir/features/kinds"

func str(s string) kinds.Value { return kinds.Value{Type: kinds.String, Str: []byte(s)} }
func num(n int64) kinds.Value  { return kinds.Value{Type: kinds.Int, Num: n} }

func decimal(n int64, scale uint8) kinds.Value {
	return kinds.Value{Type: kinds.Decimal, Num: n, Scale: scale}
}

// show is a value as the tests write it.
func show(v kinds.Value) string {
	if v.IsNull() {
		return "null"
	}
	return v.Type.String() + " " + string(v.AppendText(nil))
}
