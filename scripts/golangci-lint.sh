#!/bin/bash
# Runs the pinned golangci-lint, building it into .cache/bin when it is absent.
set -e
cd "$(dirname "$0")/.."
want=$1
lint=$(command -v golangci-lint || true)
[ -n "$lint" ] && "$lint" version 2>/dev/null | grep -q "${want#v}" || lint=$PWD/.cache/bin/golangci-lint
if [ ! -x "$lint" ]; then
  echo "building golangci-lint $want"
  GOBIN=$PWD/.cache/bin go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$want"
fi
exec "$lint" run ./...
