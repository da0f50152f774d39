# Everything a developer types. `make help` lists the targets.
SHELL      := /bin/bash
GO         ?= go
BIN        := bin/paimon-sql
VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS    := -s -w -X main.version=$(VERSION)
# Tests that need the shared material of a full checkout skip by name without it.
SHARED     ?= $(abspath ../shared)
WAREHOUSE  ?= .demo/warehouse
LINT_VERSION := v2.15.0
VULN_VERSION := v1.9.0
export CGO_ENABLED := 0
export PAIMON_SQL_SHARED ?= $(SHARED)

.DEFAULT_GOAL := build
.PHONY: soak clients java help build run demo test lint slt wire cover race meta interop bench bench-tpch bench-lake bench-write bench-keytable bench-pruning bench-wire bench-diff keytable rewrite fuzz fmt clean vuln pgbench

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

build: ## bin/paimon-sql
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/paimon-sql

run: build ## make the demo warehouse if absent and serve it on 127.0.0.1:5432 (next free port if taken)
	@$(BIN) demo --warehouse $(WAREHOUSE)
	@exec $(BIN) serve --warehouse $(WAREHOUSE) --listen 127.0.0.1:5432 --next-free-port --hints

demo: build ## make the demo warehouse and answer five queries
	@$(BIN) demo --warehouse $(WAREHOUSE) --queries

test: ## every test that needs nothing but Go (under 5 minutes on 2 cores)
	@scripts/test.sh

lint: ## golangci-lint and the import rules
	@scripts/golangci-lint.sh $(LINT_VERSION)
	$(GO) test ./internal/archtest

vuln: ## known vulnerabilities in what is called; skips where the database cannot be reached
	@GO='$(GO)' scripts/vuln.sh $(VULN_VERSION)

slt: ## SQL tests over the wire; DIR=topic picks a folder
	$(GO) test ./tests/sqllogic -count=1 -v -run 'TestSQLLogic' -args -dir '$(DIR)'

wire: ## protocol transcripts; PG=dsn compares with a real PostgreSQL
	PAIMON_SQL_PG='$(PG)' $(GO) test ./pgwire ./tests/wire -count=1

cover: ## coverage per package
	$(GO) test -coverprofile=cover.out ./... && $(GO) tool cover -func=cover.out | tail -n 1

race: ## unit tests under the race detector, with contract checks
	CGO_ENABLED=1 $(GO) test -race -tags invariants ./internal/... ./index/... ./storage/... ./catalog/... ./sql/... ./exec/... ./engine/... ./pgwire/...

meta: ## metamorphic tests with a random seed, printed
	PAIMON_SQL_ROUNDS=20 $(GO) test ./tests/metamorphic -count=1 -v -timeout 30m

soak: ## processes killed, raced and watched, random tests for long: takes about 20 minutes; needs PAIMON_ORACLE_JAR for Java's opinion
	PAIMON_SQL_SOAK='$(or $(FACTOR),5)' $(GO) test ./tests/process -count=1 -v -timeout 90m
	PAIMON_SQL_SOAK='$(or $(FACTOR),5)' $(GO) test ./exec/vectorized ./storage/table ./storage/format/parquet -count=1 -timeout 30m

keytable: ## random histories of key tables against a model, N=500 of them, and in turns with Java where PAIMON_ORACLE_JAR is set; SEED=n repeats
	PAIMON_SQL_SEED='$(SEED)' PAIMON_SQL_SEQUENCES='$(or $(N),500)' $(GO) test ./tests/keytable -count=1 -v -timeout 60m

interop: build ## tables of Java Paimon through our SQL; skips what is absent
	PAIMON_SQL_INTEROP=1 $(GO) test ./tests/interop -count=1 -v -timeout 20m

clients: build ## real clients (psql, drivers, ORMs, dbt) and the corpus of what they send, on a server with SCRAM and TLS; CLIENTS='psql django' or all
	PAIMON_SQL_BIN='$(abspath $(BIN))' tests/clients/run.sh $(CLIENTS)

java: ## what we write, read and checked by Java Paimon; needs PAIMON_ORACLE_JAR, see scripts/java-oracle.sh
	$(GO) test -p 1 -run 'Java|TestTakingTurns' -count=1 -timeout 10m ./catalog ./engine ./storage/... ./tests/interop ./tests/keytable

bench-tpch: build ## TPC-H beside its peers: SF=1; see scripts/bench-queries.sh for what it needs
	scripts/bench-queries.sh tpch '$(or $(SF),1)' '$(or $(OUT),bench-out)'

bench-lake: build ## queries of a lake (partitions, indexes, curves, wide tables) beside their peers, likewise
	scripts/bench-queries.sh lake '$(or $(SF),1)' '$(or $(OUT),bench-out)'

bench-write: build ## writing beside PostgreSQL and pypaimon-rust; see scripts/bench-write.sh for what it needs
	scripts/bench-write.sh '$(or $(OUT),bench-out)'

pgbench: build ## TPC-B with T seconds (60) and C clients (32) of pgbench against a server of its own: the sums must agree
	scripts/pgbench.sh '$(or $(T),60)' '$(or $(C),32)'

bench-keytable: build ## lookups, merge on read, compaction, changelogs and space of key tables; see scripts/bench-keytable.py for what it needs
	$(or $(PY),python3) scripts/bench-keytable.py $(ARGS)

bench-wire: build ## SELECT 1, streamed rows, idle connections and a catalog of 10,000 tables beside PostgreSQL (PG=dsn); see scripts/bench-wire.py
	PG='$(PG)' $(or $(PY),python3) scripts/bench-wire.py $(ARGS)

bench-pruning: ## bytes and pages that selective queries read, counted where files are read, and planning of 100,000 files; DIR=where the tables go
	GO='$(GO)' scripts/bench-pruning.sh '$(DIR)'

bench: ## Go benchmarks of every hot path
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(or $(BENCHTIME),200ms) ./internal/vec ./storage/... ./index/... ./sql/... ./exec/... ./pgwire

bench-diff: ## benchstat of REF (default main) against the work tree
	scripts/bench-diff.sh '$(or $(REF),main)'

fuzz: ## every fuzz target for T each (default 60s)
	scripts/fuzz.sh '$(or $(T),60s)'

rewrite: ## regenerate transcripts; read the diff before you commit it
	$(GO) test ./... -run 'Golden|Transcript' -args -rewrite

fmt: ## gofmt
	gofmt -w $$(git ls-files '*.go')

clean: ## remove what make made
	rm -rf bin .demo cover.out bench-out
