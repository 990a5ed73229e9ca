module github.com/weir-stream/weir/docs/examples/go-rules

go 1.26.0

// The example uses the client of the same commit. Leave this line out in a program of your own.
replace github.com/weir-stream/weir/client => ../../../client

require (
	github.com/expr-lang/expr v1.17.8
	github.com/google/go-cmp v0.7.0
	github.com/weir-stream/weir/client v0.0.0-00010101000000-000000000000
	go.yaml.in/yaml/v3 v3.0.6
)
