# Everything a contributor runs. Only Go, git, make and (for what is not installed yet) apt are needed.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GOFUMPT_VERSION := v0.12.0
STATICCHECK_VERSION := v0.8.2
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
FUZZTIME ?= 10s
SEQUENCES ?= 10000
SERVER ?= .
SCENARIO ?= .
SCHEDULES ?= 100000
ROUNDS ?= 3

# Tools are built once for each version, theirs and Go's.
TOOLS := .cache/bin/$(shell go env GOVERSION)
GOFUMPT := $(TOOLS)/$(GOFUMPT_VERSION)/gofumpt
STATICCHECK := $(TOOLS)/$(STATICCHECK_VERSION)/staticcheck

GO_FILES = $$(find . -name '*.go' -not -path './.*/*')
# The packages whose tests are quick.
UNIT = $$(go list ./... | grep -v /internal/)

.PHONY: help demo bench test services check simulate faults mutations records matrix model build lint format fuzz clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## a plain consumer and rabbitonce side by side under failures (RABBITMQ_URL, REDIS_URL: use these servers)
	@[[ -n "$${RABBITMQ_URL:-}" ]] || .ci/install rabbitmq
	@[[ -n "$${REDIS_URL:-}" ]] || .ci/install redis
	@echo "==> building" >&2
	@mkdir -p .cache
	@go build -o .cache/demo ./proxy/internal/demo
	@exec .cache/demo

bench: ## CPU, speed, memory and latency beside a baseline and a floor, under 5 minutes (SCENARIO='dups|growth-.*' chooses, ROUNDS=3, BENCH_RECORD=1 writes docs/benchmarks.md, BENCH_STRICT=1 fails on a missed bound, RABBITMQ_URL, REDIS_URL: use these servers)
	@[[ -n "$${RABBITMQ_URL:-}" ]] || .ci/install rabbitmq
	@[[ -n "$${REDIS_URL:-}" ]] || .ci/install redis
	@mkdir -p .cache
	@go build -o .cache/bench ./proxy/internal/bench
	@exec .cache/bench -rounds $(ROUNDS) $(if $(filter file,$(origin SCENARIO)),,-scenario '$(SCENARIO)') \
		$(if $(filter 1,$(BENCH_RECORD)),-record) $(if $(filter 1,$(BENCH_STRICT)),-strict)

test: ## all tests but those of a broker cluster (make matrix), of HTTP servers (make services) and under random faults (make faults), against real servers that they start themselves, with the race detector
	@.ci/install
	go test -race -count=1 -p 2 -timeout 11m $$(go list ./... | grep -vE '/internal/(cluster|services|faults)$$') # -count=1: the cache does not see the binaries that tests build

services: ## tests with the HTTP servers that services run on: php, php-fpm, gunicorn, Node, Java, nginx, Apache (SERVER=nginx, SCENARIO=reload: only these)
	@.ci/install
	@.ci/install services
	go test -race -count=1 -timeout 20m -v -run 'TestServers/$(SERVER)/$(SCENARIO)' ./proxy/internal/services

check: lint ## the quick loop: format, vet, lint, unit tests
	go test -short $(UNIT)

simulate: ## the long simulation: SCHEDULES (100000) random schedules of messages and faults
	go test -count=1 -timeout 5h -run TestSimulation -v ./proxy -simulation.schedules=$(SCHEDULES)

faults: ## random failures of everything at once for FAULTS_SECONDS (300), from FAULTS_SEED on; see docs/guarantees.md (RABBITONCE_TEST_BROKER_ROOT, RABBITONCE_TEST_QUEUES=classic: other servers)
	@.ci/install
	FAULTS_SECONDS=$${FAULTS_SECONDS:-300} go test -race -count=1 -timeout 12h -v -run 'TestFaults|TestFailOver' ./proxy/internal/faults

mutations: ## take the rules out of the program one by one: the faults have to notice each; and run those faults on the program as it is
	@.ci/install
	go test -race -count=1 -timeout 60m -v -run Mutations ./proxy/internal/faults

records: ## SEQUENCES (10000) random histories of a record, on Redis and in memory
	@.ci/install redis
	go test -count=1 -timeout 60m -run 'TestRedisAndMemoryAgree|TestTheProtocolKeepsItsPromises' -v ./dedup -rapid.checks=$(SEQUENCES)

matrix: ## the server tests on every supported version, as root (MATRIX_ONLY="4.3 quorum", MATRIX_RECORD=1: see .ci/matrix)
	@.ci/matrix

model: ## check the model of the claim protocol (docs/model) with spin, under two minutes
	@.ci/model

build: ## a static binary, ./rabbitonce
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$(VERSION)" -o rabbitonce .

lint: $(GOFUMPT) $(STATICCHECK) ## format (checked, not changed), vet, staticcheck
	@unformatted=$$($(GOFUMPT) -l $(GO_FILES)); \
	if [[ -n "$$unformatted" ]]; then printf 'not formatted (make format):\n%s\n' "$$unformatted" >&2; exit 1; fi
	go vet ./...
	$(STATICCHECK) ./...

format: $(GOFUMPT) ## write every file as gofumpt has it
	$(GOFUMPT) -w $(GO_FILES)

fuzz: ## each fuzz test for FUZZTIME (10s)
	@grep -roH --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/:func /:/' | while IFS=: read -r file name; do \
		echo "$$(dirname "$$file") $$name"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null; \
	done

clean: ## remove what was built
	rm -rf --one-file-system .cache dist rabbitonce

$(GOFUMPT):
	@echo "==> building gofumpt $(GOFUMPT_VERSION)" >&2
	@GOBIN=$(CURDIR)/$(@D) go install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)

$(STATICCHECK):
	@echo "==> building staticcheck $(STATICCHECK_VERSION)" >&2
	@GOBIN=$(CURDIR)/$(@D) go install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
