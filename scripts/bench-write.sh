#!/bin/bash
# Writing beside PostgreSQL and pypaimon-rust, in one run on one disk:
#   1. COPY of 1,000,000 rows in batches of 100,000, each a commit, as upsert and as append (shared/bench/write_bench.py)
#   2. INSERT ... SELECT of the same rows from another table
#   3. single-row autocommit upserts from 32 connections (pgbench, prepared)
# Needs: PG (a dsn of PostgreSQL 15), PY (a Python with shared/bench/requirements.txt), pgbench, psql. OUT: folder of results.
set -eu
cd "$(dirname "$0")/.."
shared=${PAIMON_SQL_SHARED:-../shared}
out=${1:-bench-out}
py=${PY:-python3}
pg=${PG:?a dsn of PostgreSQL, such as "host=127.0.0.1 user=postgres dbname=postgres"}
rows=${ROWS:-1000000}
seconds=${SECONDS_EACH:-20}
mkdir -p "$out"
work=$(mktemp -d "${TMPDIR:-/tmp}/bench-write.XXXXXX")
port=${PORT:-55433}
bin/paimon-sql serve --warehouse "$work/wh" --listen 127.0.0.1:$port --log-level warn >"$out/server.log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true; rm -rf "$work"' EXIT
ours="host=127.0.0.1 port=$port user=paimon dbname=paimon"
for _ in $(seq 100); do psql "$ours" -qAtc 'select 1' >/dev/null 2>&1 && break; sleep 0.1; done
rm -f "$out/write.jsonl"
run() { (cd "$shared/bench" && PYTHONDONTWRITEBYTECODE=1 "$py" write_bench.py --sf 0 --data "$work" --warehouse "$work/peers" --rows "$rows" --batch 100000 --out "$work/write.jsonl" "$@" | tee -a "$work/log"); }
run --target postgres-copy --dsn "$pg"
run --target paimon-sql-copy --dsn "$ours" --server-pids $server --table-options "with ('bucket' = '4')"
run --target pypaimon-rust
cp "$work/write.jsonl" "$out/write.jsonl"

select_into() { # table, clause, key
  psql "$ours" -qAt <<SQL
drop table if exists $1;
create table $1 (id bigint not null, customer int, amount decimal(15,2), status varchar, note varchar, updated timestamp $3) $2;
\timing on
insert into $1 select * from write_bench_append;
SQL
}
{ echo "INSERT ... SELECT of $rows rows, append:"; select_into s_append "" "" ; echo "upsert:"; select_into s_upsert "with ('bucket' = '4')" ", primary key (id)"; } | tee "$out/insert_select.txt"

for who in postgres ours; do
  if [ $who = postgres ]; then dsn=$pg; else dsn=$ours; fi
  psql "$dsn" -q -c "drop table if exists bench_kv" -c "create table bench_kv (k int primary key, n bigint, note text)"
  cat >"$work/upsert.sql" <<'SQL'
\set k random(1, 100000)
\set n random(1, 1000000)
insert into bench_kv values (:k, :n, 'a note of some length') on conflict (k) do update set n = excluded.n, note = excluded.note;
SQL
  echo "== $who: 32 connections, single-row upserts"
  pgbench "$dsn" -n -M prepared -c 32 -j 2 -T "$seconds" -f "$work/upsert.sql" 2>&1 | grep -E 'tps|latency average|failed'
done | tee "$out/upserts.txt"
psql "$pg" -qAtc 'show synchronous_commit' | sed 's/^/PostgreSQL synchronous_commit: /' | tee -a "$out/upserts.txt"
