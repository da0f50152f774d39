#!/bin/bash
# Benchmarks REF and the work tree side by side and compares them.
set -e
cd "$(dirname "$0")/.."
ref=${1:-main}
tree=$(mktemp -d); trap 'git worktree remove --force "$tree/w" 2>/dev/null; rm -rf "$tree"' EXIT
git worktree add -q "$tree/w" "$ref"
run() { (cd "$1" && go test -run '^$' -bench "${BENCH:-.}" -count 6 -benchtime 100ms ./internal/vec ./storage/... ./exec/... ./pgwire) > "$2"; }
run "$tree/w" "$tree/old.txt"
run . "$tree/new.txt"
go run golang.org/x/perf/cmd/benchstat@latest "$tree/old.txt" "$tree/new.txt"
