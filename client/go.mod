module github.com/weir-stream/weir/client

go 1.22
