#!/bin/bash
# Queries beside peers in one run: scripts/bench-queries.sh tpch|lake SF OUT
#
# Needs ../shared/bench (or BENCH), the data that its make_data.py made
# (BENCH_DATA, BENCH_WAREHOUSE) and a Python with its requirements.txt (PY).
set -eu
cd "$(dirname "$0")/.."
set=${1:-tpch} sf=${2:-1} out=${3:-bench-out}
bench=${BENCH:-$PWD/../shared/bench}
py=${PY:-python3}
: "${BENCH_DATA:?the data folder of make_data.py}" "${BENCH_WAREHOUSE:?the warehouse folder of make_data.py}"
dbs=${DBS:-tpch_append,tpch_mor,tpch_dv}
case $set in
tpch) which=(--dbs "$dbs") one=(--dbs tpch_append) ;;
lake) which=(--lake-dbs lake) one=(--lake-dbs lake) ;;
*) echo "tpch or lake, not $set" >&2; exit 2 ;;
esac
mkdir -p "$out"
port=${PORT:-15499}
bin/paimon-sql serve --warehouse "$BENCH_WAREHOUSE/sf$sf" --listen "127.0.0.1:$port" > "$out/server.log" 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null' EXIT
for _ in $(seq 50); do grep -q listening "$out/server.log" && break; sleep 0.1; done
run() { "$py" "$bench/run_queries.py" --set "$set" --sf "$sf" --repeat "${REPEAT:-3}" --out "$out/$1.jsonl" "${@:2}"; }
run paimon-sql --engine paimon-sql --dsn "host=127.0.0.1 port=$port user=paimon dbname=paimon" --server-pids $pid "${which[@]}"
run pypaimon-rust --engine pypaimon-rust "${which[@]}"
run duckdb --engine duckdb "${one[@]}"
peers=("$out/pypaimon-rust.jsonl" "$out/duckdb.jsonl")
if [ "$set" = tpch ]; then
	run duckdb-paimon-files --engine duckdb-paimon-files "${one[@]}"
	peers+=("$out/duckdb-paimon-files.jsonl")
fi
"$py" "$bench/compare.py" "$out/paimon-sql.jsonl" "${peers[@]}" | tee "$out/compare.md"
