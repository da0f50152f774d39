#!/bin/bash
# TPC-H beside its peers in one run: scripts/bench-tpch.sh SF OUT
#
# Needs ../shared/bench (or BENCH), the data that its make_data.py made
# (BENCH_DATA, BENCH_WAREHOUSE) and a Python with its requirements.txt (PY).
set -eu
cd "$(dirname "$0")/.."
sf=${1:-1} out=${2:-bench-out}
bench=${BENCH:-$PWD/../shared/bench}
py=${PY:-python3}
: "${BENCH_DATA:?the data folder of make_data.py}" "${BENCH_WAREHOUSE:?the warehouse folder of make_data.py}"
dbs=${DBS:-tpch_append,tpch_mor,tpch_dv}
mkdir -p "$out"
port=${PORT:-15499}
bin/paimon-sql serve --warehouse "$BENCH_WAREHOUSE/sf$sf" --listen "127.0.0.1:$port" > "$out/server.log" 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null' EXIT
for _ in $(seq 50); do grep -q listening "$out/server.log" && break; sleep 0.1; done
run() { "$py" "$bench/run_queries.py" --set tpch --sf "$sf" --repeat "${REPEAT:-3}" --out "$out/$1.jsonl" "${@:2}"; }
run paimon-sql --engine paimon-sql --dsn "host=127.0.0.1 port=$port user=paimon dbname=paimon" --server-pids $pid --dbs "$dbs"
run pypaimon-rust --engine pypaimon-rust --dbs "$dbs"
run duckdb --engine duckdb --dbs tpch_append
run duckdb-paimon-files --engine duckdb-paimon-files --dbs tpch_append
"$py" "$bench/compare.py" "$out/paimon-sql.jsonl" "$out/pypaimon-rust.jsonl" "$out/duckdb.jsonl" "$out/duckdb-paimon-files.jsonl" | tee "$out/compare.md"
