#!/bin/bash
# Runs every test that needs nothing but Go and prints what was skipped and why.
# Fuzz targets run their seeds.
set -o pipefail
cd "$(dirname "$0")/.." || exit 2
go vet ./... || exit 1
go build -o .cache/bin/testsum ./internal/testkit/testsum || exit 1
go test -json -timeout 560s "$@" ./... | .cache/bin/testsum
