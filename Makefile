GO ?= go
EVENTS ?= 300000

.PHONY: help bench bench-micro bench-compare

help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

bench: bench-micro bench-compare ## Measure all there is to measure; see bench/README.md

bench-micro: ## Time and allocations per record: decoding, mapping, the path to Redis, serving
	$(GO) test -run '^$$' -bench . -benchmem ./pipeline/fetch ./serve
	$(GO) test -run '^$$' -bench 'Map|Path|Apply' ./bench

bench-compare: ## Weir beside a textbook consumer on a real Kafka and Redis; EVENTS=300000
	$(GO) test -run '^$$' -bench Comparison -benchtime 1x -timeout 30m ./bench -events $(EVENTS)
