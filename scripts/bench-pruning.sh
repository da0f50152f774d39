#!/bin/bash
# What selective queries read and how long planning takes, measured where files are
# read, as one table: scripts/bench-pruning.sh [DIR]
#
# Tables of 10 and 20 million rows are made in DIR (default: the temporary directory),
# which takes about 1 GB at a time and is removed, and some minutes on two cores.
cd "$(dirname "$0")/.." || exit 2
go=${GO:-go}
in=${1:-${TMPDIR:-/tmp}}
mkdir -p "$in" && dir=$(mktemp -d "$in/bench-pruning.XXXXXX") || exit 2
trap 'rm -rf "$dir"' EXIT
export PAIMON_SQL_BENCH_PRUNING=1 PAIMON_SQL_BENCH_DIR=$dir PAIMON_SQL_PROOFS=$dir/table
printf '%s\t' 'asked' 'read' 'of' 'share' 'time' 'limit' 'kept' > "$dir/table"
echo >> "$dir/table"
rc=0
$go test ./tests/pruning -count=1 -v -run Bytes -timeout 60m || rc=1
$go test ./storage/table -count=1 -v -run TestPlanScaleWall -timeout 20m || rc=1
echo
column -t -s $'\t' "$dir/table"
exit $rc
