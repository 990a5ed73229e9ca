.DEFAULT_GOAL := help
.PHONY: help docs demo build test test-together test-raced test-left-out test-modules check-all chart python java generated race explore fuzz faults lint bench bench-backfill bench-cluster bench-grow bench-handbook bench-month bench-hot bench-micro bench-compare bench-engines bench-questions bench-scale profile check image images man completions rules

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## everything in one process, with made-up events
	go run ./cmd/weir demo

# What `weir version` prints.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null | sed 's/^v//')
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE    ?= $(shell git log -1 --format=%cI 2>/dev/null)

build: ## the binary, ./weir
	CGO_ENABLED=0 go build -trimpath -o weir \
		-ldflags="-s -w -X main.release=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(DATE)" ./cmd/weir

man: build ## manual pages, into dist/man
	./weir man dist/man

completions: build ## completions for bash, zsh, fish and PowerShell, into dist/completions
	mkdir -p dist/completions
	for shell in bash zsh fish powershell; do ./weir completion $$shell > dist/completions/weir.$$shell || exit 1; done

# The client adds no dependencies for its users, and Weir needs no client, so these are modules of their own.
MODULES = client client/servertest docs/examples/go-rules

# Packages whose goroutines share memory are tested under the race detector, which a C compiler must link. What such a
# package leaves out under it, because it would only be slow, runs without. integration_test runs without: most of its time
# goes to brokers and to comparing answers, of a tenth of the events under the detector; `make check-all` has that too.
RACED     = ./store/... ./pipeline/... ./cmd/... ./serve/...
CAN_RACE := $(filter 1,$(shell go env CGO_ENABLED))
TEST      = go test -timeout 30m $(TESTFLAGS)

test: ## all tests, on real servers where available; packages with concurrency under the race detector, if gcc is here
	$(MAKE) --no-print-directory --keep-going test-together $(if $(CAN_RACE),test-raced test-left-out) test-modules

# The slowest of the packages is the first, and mostly waits. With TESTFLAGS for go test, such as -count=1.
test-together:
	$(TEST) ./integration_test ./integration_test/faults \
		$(if $(CAN_RACE),$$(go list ./... | grep --invert-match --line-regexp --fixed-strings "$$(go list $(RACED) ./integration_test/...)"),./...)

test-raced:
	$(TEST) -race ./store/redis $(RACED)

test-left-out:
	$(TEST) -run '/^miniredis$$|^TestConformance' ./store/redis ./store/memory ./store/storetest/plain
	$(TEST) -run '^Test(DemoMemoryIsBounded|FeastClient|Schemathesis)$$' ./cmd/weir ./serve

test-modules:
	for module in $(MODULES); do (cd $$module && $(TEST) -mod=mod $(if $(CAN_RACE),-race) ./...) || exit 1; done

chart: ## lint and render Helm's chart, a module of its own
	cd deploy/helm && go test -mod=mod ./...

PYTHON_VENV ?= .cache/python
python: build ## tests of the client for Python, against ./weir
	test -x $(PYTHON_VENV)/bin/pip || python3 -m venv $(PYTHON_VENV)
	$(PYTHON_VENV)/bin/pip install --quiet --editable 'clients/python[test]'
	cd clients/python && $(CURDIR)/$(PYTHON_VENV)/bin/mypy && WEIR_BINARY=$(CURDIR)/weir $(CURDIR)/$(PYTHON_VENV)/bin/pytest

java: build ## tests of the client for Java, against ./weir
	WEIR_BINARY=$(CURDIR)/weir mvn --quiet --batch-mode --file clients/java verify

generated: build ## clients generated from serve/openapi.yaml for Go, Java and Python, against ./weir
	test -x $(PYTHON_VENV)/bin/pip || python3 -m venv $(PYTHON_VENV)
	$(PYTHON_VENV)/bin/pip install --quiet --editable 'clients/python[test]'
	WEIR_BINARY=$(CURDIR)/weir $(PYTHON_VENV)/bin/pytest clients/generated

race: ## every test under the race detector, also where nothing is shared
	go test -race -timeout 60m ./...
	for module in $(MODULES); do (cd $$module && go test -mod=mod -race ./...) || exit 1; done

# Every test with and without the race detector, 5000 cases of each property, ten minutes of trials, two of each fuzzer.
check-all: check race explore faults ## for the night: what CI does, and what it has no time for
	go test -timeout 60m -count=1 ./...
	$(MAKE) fuzz FUZZTIME=2m

CASES ?= 5000
explore: ## property tests with CASES random cases each (5000, some 12 minutes on two cores)
	RAPID_CHECKS=$(CASES) go test -count=1 -timeout 3h ./features/... ./state/... ./internal/model

FUZZTIME ?= 1m
fuzz: ## every fuzz target for FUZZTIME (1m)
	./.ci/fuzz $(FUZZTIME)

MINUTES ?= 10
faults: ## random trials against a model, on real Kafka and Redis, for MINUTES (10); see docs/faults.md
	go run ./integration_test/faults -minutes $(MINUTES) $(FAULTS)

lint: ## golangci-lint, with the import directions (.golangci.yml)
	golangci-lint run ./...
	for module in $(MODULES); do (cd $$module && golangci-lint run ./...) || exit 1; done

bench: bench-micro bench-compare bench-questions ## the common benchmarks; see bench/README.md

bench-micro: ## time and allocations per record: decoding, mapping, the path to Redis, serving
	go test -run '^$$' -bench . -benchmem ./pipeline/fetch ./serve
	go test -run '^$$' -bench 'Map|Path|Apply' ./bench
	go test -run '^$$' -bench 'EventInHand|Join|Earlier' -benchmem ./features/query ./pipeline/enrich ./features/record

bench-hot: ## one entity with 200,000 events of as many values: its key, traffic and questions, and its neighbours'; and a master that hangs
	go test -run '^$$' -bench 'HotEntity|Neighbours|HungMaster' -benchtime 1x ./bench

EVENTS ?= 300000
bench-compare: ## Weir beside a textbook consumer on a real Kafka and Redis; EVENTS=300000
	go test -run '^$$' -bench Comparison -benchtime 1x -timeout 30m ./bench -events $(EVENTS)

ENTITIES ?= 1000000
bench-engines: ## the same events and questions with Redis and with Ignite, on Linux; EVENTS=300000
	go test -run '^$$' -bench Engines -benchtime 1x -timeout 30m ./bench -events $(EVENTS)

bench-scale: ## what an event and a question cost as features, entities, shards and masters become more; ENTITIES=1000000; and uneven loads
	go test -run '^$$' -bench Scale -benchtime 1x -timeout 60m ./bench -entities $(ENTITIES)
	go test -run '^$$' -bench Skew -benchtime 1x -timeout 30m ./bench -events $(EVENTS)

bench-cluster: ## how evenly three and six masters of a Redis Cluster share the work of two and four processors; EVENTS=300000
	go test -run '^$$' -bench Cluster -benchtime 1x -timeout 30m ./bench -events $(EVENTS)

bench-grow: ## how fresh answers are while 4 shards become 64 and three masters of a Redis Cluster become six; EVENTS=300000
	go test -run '^$$' -bench Grow -benchtime 1x -timeout 30m ./bench -events $(EVENTS)

bench-handbook: ## training sets beside DuckDB and pandas, where WEIR_TEST_PYTHON has them and WEIR_TEST_FDH the handbook's transactions
	go test -run '^$$' -bench Handbook -benchtime 3x -timeout 30m ./bench

bench-month: ## the same with a made-up month beside DuckDB; EVENTS=300000
	go test -run '^$$' -bench Month -benchtime 1x -timeout 60m ./bench -events $(EVENTS)

profile: ## cmd/weir/default.pgo, by which go build optimizes: the CPU of training sets, of records and of questions
	for of in Replay Path Question; do \
	  go test -run '^$$' -bench "$$of$$" -benchtime 10s -cpuprofile $$of.pprof -o /dev/null ./bench -events 3000000 || exit 1; \
	done
	go tool pprof -proto Replay.pprof Path.pprof Question.pprof >cmd/weir/default.pgo && rm Replay.pprof Path.pprof Question.pprof

bench-backfill: ## new features filled from a real Kafka into a real Redis; EVENTS=300000
	go test -run '^$$' -bench Backfill -benchtime 1x -timeout 30m ./bench -events $(EVENTS)

bench-questions: ## questions over HTTP beside go-redis and, where WEIR_TEST_FEAST is set, Feast's server
	go test -run '^$$' -bench Questions -benchtime 1x -timeout 30m ./bench

DOCS_VENV ?= .cache/docs
docs: ## the documentation as a site, into site/; a broken link fails
	test -x $(DOCS_VENV)/bin/mkdocs || { python3 -m venv $(DOCS_VENV) && $(DOCS_VENV)/bin/pip install --quiet --requirement docs/requirements.txt; }
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --quiet --strict

check: ## what CI does on a fresh machine, as root on Debian
	./.ci/run

rules: ## check Prometheus' rules and run their tests, with promtool (Debian: apt-get install prometheus)
	cd deploy/prometheus && promtool check rules alerts.yml && promtool test rules alerts_test.yml

IMAGE_ARGS = --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) --build-arg DATE=$(DATE) --tag weir
image: ## the container image, for this machine
	docker build $(IMAGE_ARGS) .

PLATFORMS ?= linux/amd64,linux/arm64
images: ## the container image for PLATFORMS (linux/amd64,linux/arm64)
	docker buildx build --platform $(PLATFORMS) $(IMAGE_ARGS) .
