#!/bin/bash
# scripts/pgbench.sh [SECONDS] [CLIENTS]: TPC-B by pgbench against a server of its own,
# then the invariant: the balances of branches, tellers and accounts and the deltas of
# the history come to the same sum. PGBENCH names the program, SCALE the scale factor,
# ROWS the accounts of a branch (100,000 in TPC-B).
#
# pgbench -i speaks of heap tables (VACUUM, unlogged, fillfactor), so the tables are made
# here, with keys and Paimon's options; the transaction is pgbench's own "tpcb-like".
set -e
[ -n "$BIN" ] || cd "$(dirname "$0")/.."
seconds=${1:-60} clients=${2:-32} scale=${SCALE:-10} rows=${ROWS:-10000}
for p in "$PGBENCH" pgbench /usr/lib/postgresql/*/bin/pgbench; do
  [ -n "$p" ] && pgbench=$(command -v "$p") && break
done
[ -n "$pgbench" ] || { echo "SKIPPED: pgbench is not installed"; exit 0; }
bin=${BIN:-bin/paimon-sql}
dir=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null; rm -rf "$dir"' EXIT

"$bin" serve --warehouse "$dir/w" --listen 127.0.0.1:"${PORT:-0}" --next-free-port >"$dir/out" 2>"$dir/err" &
server=$!
for _ in $(seq 200); do
  addr=$(sed -n 's/.*listening on \([^,]*\),.*/\1/p' "$dir/out")
  [ -n "$addr" ] && break
  kill -0 "$server" || { cat "$dir/err"; exit 1; }
  sleep 0.05
done
dsn="postgres://paimon@$addr/paimon?sslmode=disable"
sql() { "$bin" sql --dsn "$dsn" --format csv -c "$1" | tail -n 1; }

sql "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88)) WITH ('bucket' = '1');
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84)) WITH ('bucket' = '1');
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84)) WITH ('bucket' = '4');
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
INSERT INTO pgbench_branches SELECT g, 0, '' FROM generate_series(1, $scale) g;
INSERT INTO pgbench_tellers SELECT g, (g - 1) / 10 + 1, 0, '' FROM generate_series(1, $scale * 10) g;
INSERT INTO pgbench_accounts SELECT g, (g - 1) / $rows + 1, 0, '' FROM generate_series(1, $scale * $rows) g" >/dev/null

# tpcb-like takes accounts up to 100,000 times the scale: this is the same with ROWS.
cat >"$dir/tpcb.sql" <<SQL
\\set aid random(1, $rows * $scale)
\\set bid random(1, $scale)
\\set tid random(1, 10 * $scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
SQL
"$pgbench" -n -f "$dir/tpcb.sql" -c "$clients" -j 2 -T "$seconds" -s "$scale" -M "${MODE:-prepared}" --max-tries=20 --failures-detailed "$dsn" | tee "$dir/bench"

got=$(sql "SELECT (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(delta) FROM pgbench_history), (SELECT count(*) FROM pgbench_history)")
echo "branches,tellers,accounts,history,transactions: $got"
IFS=, read -r b t a h n <<<"$got"
done_=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$dir/bench")
[ "$b" = "$t" ] && [ "$t" = "$a" ] && [ "$a" = "$h" ] || { echo "FAILED: the sums differ"; exit 1; }
[ -n "$done_" ] && [ "$done_" -gt 0 ] && [ "$n" = "$done_" ] || { echo "FAILED: $done_ transactions were acknowledged, $n are there"; exit 1; }
if grep -q 'msg="internal error"\|panic' "$dir/err"; then cat "$dir/err"; exit 1; fi
