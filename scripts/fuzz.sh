#!/bin/bash
# Runs every fuzz target for a while each: scripts/fuzz.sh 60s
cd "$(dirname "$0")/.." || exit 2
rc=0
while IFS=: read -r file name; do
  pkg=./$(dirname "$file")
  echo "== $pkg $name"
  go test "$pkg" -run '^$' -fuzz "^$name\$" -fuzztime "${1:-60s}" || rc=1
done < <(git grep -E '^func Fuzz[A-Za-z0-9_]+\(' -- '*_test.go' | sed -E 's/^([^:]+):func (Fuzz[A-Za-z0-9_]+).*/\1:\2/')
exit $rc
