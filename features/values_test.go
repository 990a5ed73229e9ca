package features_test

import "github.com/weir-stream/weir/value"

func str(s string) value.Value { return value.Value{Type: value.String, Str: []byte(s)} }
