#!/bin/bash
# dbt-postgres: seeds, tables, views, incremental models, snapshots, tests, docs. DBT is
# the program, PAIMON_SQL_DSN the server. Prints one line per check.
cd "$(dirname "$0")" || exit 2
eval "$(python3 - <<'P'
import os, shlex, urllib.parse as u
d = u.urlsplit(os.environ["PAIMON_SQL_DSN"])
for k, v in dict(HOST=d.hostname, PORT=d.port or 5432, USER=u.unquote(d.username or ""), PASSWORD=u.unquote(d.password or ""), DBNAME=d.path.lstrip("/")).items():
    print("export DBT_%s=%s" % (k, shlex.quote(str(v))))
P
)"
export DBT_SCHEMA=${PAIMON_SQL_SCHEMA:-compat}_lake DBT_SEND_ANONYMOUS_USAGE_STATS=false
TMP=$(mktemp -d); trap 'rm -rf "$TMP"' EXIT
cp -r project "$TMP/p" && cd "$TMP/p" || exit 2
passed=0; failed=0
ok()  { passed=$((passed+1)); echo "dbt-lake: $1: ok"; }
bad() { failed=$((failed+1)); echo "dbt-lake: $1: FAIL $(tr '\n' ' ' <<<"$2" | sed 's/\x1b\[[0-9;]*m//g' | tail -c 400)"; }
# step NAME dbt-args...: dbt must exit 0
step() { local n=$1 o; shift; if o=$(timeout 120 "$DBT" --no-use-colors "$@" --profiles-dir . 2>&1); then ok "$n"; else bad "$n" "$(grep -iE 'error|fail' <<<"$o" | head -8)"; fi; }
# rows NAME EXPECTED SQL: what the query gives
rows() { local o; o=$(psql -XAtq "$PAIMON_SQL_DSN" -c "SET search_path = $DBT_SCHEMA" -c "$3" 2>&1); if [ "$o" = "$2" ]; then ok "$1"; else bad "$1" "got $o, want $2"; fi; }

psql -Xq "$PAIMON_SQL_DSN" -c "SET client_min_messages = warning" -c "DROP SCHEMA IF EXISTS $DBT_SCHEMA CASCADE" >/dev/null
step build build
rows view 'ann 10.50,bob 20.00' "SELECT string_agg(customer || ' ' || amount, ',' ORDER BY id) FROM big_payments"
rows comments "payments, 'cleaned'|number of the payment" "SELECT obj_description('payments'::regclass, 'pg_class'), col_description('payments'::regclass, 1)"
rows snapshot 3 "SELECT count(*) FROM payments_history WHERE dbt_valid_to IS NULL"
printf '2,bob,21.00,2024-01-05 09:00:00\n4,cid,7.00,2024-01-06 09:00:00\n' >> seeds/raw_payments.csv
sed -i '/^2,bob,20.00/d; /^3,/d' seeds/raw_payments.csv
step build-after-changes build
rows incremental-delete-insert '1 10.50,2 21.00,3 5.25,4 7.00' "SELECT string_agg(id || ' ' || amount, ',' ORDER BY id) FROM by_id"
rows incremental-append '1 10.50,2 20.00,3 5.25,4 7.00' "SELECT string_agg(id || ' ' || amount, ',' ORDER BY id) FROM appended"
rows snapshot-keeps-history '1 10.50 true,2 20.00 false,2 21.00 true,3 5.25 true,4 7.00 true' \
  "SELECT string_agg(id || ' ' || amount || ' ' || (dbt_valid_to IS NULL)::text, ',' ORDER BY id, dbt_valid_from) FROM payments_history"
rows snapshot-invalidates-deleted-rows 1 "SELECT count(*) FROM payments_stamped WHERE id = 3 AND dbt_valid_to IS NOT NULL"
step incremental-merge run --select by_id --vars '{strategy: merge}'
step incremental-new-column run --select by_id --vars '{wide: true}'
rows new-column 1 "SELECT count(*) FROM information_schema.columns WHERE table_schema = '$DBT_SCHEMA' AND table_name = 'by_id' AND column_name = 'extra'"
step full-refresh run --full-refresh
step docs-generate docs generate
rows docs-catalog payments "SELECT '$(python3 -c 'import json; print(json.load(open("target/catalog.json"))["nodes"]["model.lake.payments"]["metadata"]["name"])' 2>&1)'"
step source-of-data show --inline "select count(*) as n from {{ ref('payments') }}"
step run-operation run-operation cents --args '{n: 5}'
step list ls
echo "$passed passed, $failed failed"
[ $failed = 0 ]
