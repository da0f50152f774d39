#!/bin/bash
# Runs real clients against a server of its own: SCRAM, TLS, an empty warehouse.
#
#   tests/clients/run.sh [client... | all]      default: what takes a few minutes
#
# Needs ../shared (the harness of PostgreSQL clients, and its corpus of statements), psql,
# openssl, and of Python, Node, Java, Go what the clients chosen are written in. What a client
# needs is installed once under PAIMON_SQL_CLIENT_CACHE. Every check is one line
# 'client: check: ok|FAIL why'; the last line is 'N passed, N failed'.
cd "$(dirname "$0")" || exit 2
HERE=$(pwd)
HARNESS=${PAIMON_SQL_SHARED:-$HERE/../../../shared}/clients/harness
[ -f "$HARNESS/run.sh" ] || { echo "SKIPPED: make clients: no ${PAIMON_SQL_SHARED:-../shared}/clients"; exit 0; }
for tool in psql openssl python3; do
  command -v $tool >/dev/null || { echo "SKIPPED: make clients: no $tool"; exit 0; }
done
SOME="psql psycopg3 psycopg2 asyncpg sqlalchemy pandas adbc pgcli pgjdbc pgx libpq node-pg dbt django knex drizzle sequelize corpus"
# The corpus comes last: its statements are about tables of the other clients.
ALL="psql psycopg3 psycopg2 asyncpg sqlalchemy pandas adbc pgcli pgjdbc pgx libpq node-pg dbt django alembic knex drizzle sequelize typeorm gorm dbt-lake corpus"
case "$*" in "") set -- $SOME ;; all) set -- $ALL ;; esac
export PAIMON_SQL_CLIENT_CACHE=${PAIMON_SQL_CLIENT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/paimon-sql-clients}
CACHE=$PAIMON_SQL_CLIENT_CACHE
mkdir -p "$CACHE"
export PYTHONDONTWRITEBYTECODE=1 PAIMON_SQL_TLS=1
BIN=${PAIMON_SQL_BIN:-$HERE/../../bin/paimon-sql}

# The database is called warehouse because the folder is; the corpus expects it.
T=$(mktemp -d)
mkdir "$T/warehouse"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$T/key.pem" -out "$T/cert.pem" -days 2 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null || exit 2
PAIMON_SQL_PASSWORD=paimon "$BIN" serve --warehouse "$T/warehouse" --listen 127.0.0.1:0 --tls-cert "$T/cert.pem" --tls-key "$T/key.pem" >"$T/log" 2>&1 &
SERVER=$!
trap 'kill $SERVER 2>/dev/null; wait $SERVER 2>/dev/null; rm -rf "$T"' EXIT
for _ in $(seq 100); do # a deadline, not a synchronisation: the log says when it listens
  PORT=$(sed -nE 's/.*listening on 127\.0\.0\.1:([0-9]+).*/\1/p' "$T/log")
  [ -n "$PORT" ] || ! kill -0 $SERVER 2>/dev/null && break
  sleep 0.1
done
[ -n "$PORT" ] || { echo "the server did not start:"; cat "$T/log"; exit 1; }
export PAIMON_SQL_DSN=postgresql://paimon:paimon@127.0.0.1:$PORT/warehouse

LIMIT=${PAIMON_SQL_CLIENT_SECONDS:-420}
python_client() { # python_client NAME
  local d=$CACHE/venv-own
  if [ ! -x "$d/bin/python" ] || ! cmp -s python/requirements.txt "$d/requirements.txt"; then
    python3 -m venv "$d" >&2 && "$d/bin/pip" -q install -r python/requirements.txt >&2 && cp python/requirements.txt "$d/" || return 1
  fi
  PYTHONPATH=$HARNESS/python timeout "$LIMIT" "$d/bin/python" "python/$1_checks.py"
}
node_client() {
  local d=$CACHE/node-own
  mkdir -p "$d" && cp node/*.mjs "$HARNESS/node/lib.mjs" "$d/" || return 1
  if ! cmp -s node/package.json "$d/package.json"; then
    cp node/package.json "$d/package.json" && (cd "$d" && npm install --silent --no-audit --no-fund) >&2 || { rm -f "$d/package.json"; return 1; }
  fi
  (cd "$d" && timeout "$LIMIT" node --no-deprecation "$1_checks.mjs")
}
run_one() {
  case $1 in
    django|alembic) python_client "$1" ;;
    knex|drizzle|sequelize|typeorm) node_client "$1" ;;
    gorm) (cd go && CGO_ENABLED=0 go build -o "$CACHE/goclients" .) >&2 && timeout "$LIMIT" "$CACHE/goclients" ;;
    dbt-lake)
      # The environment of the harness's own dbt project serves here, too.
      bash "$HARNESS/run.sh" dbt >/dev/null 2>&1
      DBT=$CACHE/venv-dbt/bin/dbt timeout "$LIMIT" bash dbt/checks.sh ;;
    *) bash "$HARNESS/run.sh" "$1" ;;
  esac
}
p=0; f=0
for c in "$@"; do
  begun=$SECONDS
  out=$(run_one "$c" 2> >(tail -5 >&2)); rc=$?
  ok=$(grep -cE '^[^:]+: .*: ok$' <<<"$out"); bad=$(grep -cE '^[^:]+: .*: FAIL' <<<"$out")
  grep -E '^[^:]+: .*: FAIL' <<<"$out"
  if ! grep -qE '^[0-9]+ passed, [0-9]+ failed$' <<<"$out" && [ "$bad" = 0 ]; then
    echo "$c: harness: FAIL stopped early (exit $rc)"; bad=1
  fi
  echo "$c: $ok passed, $bad failed, $((SECONDS - begun)) s"
  p=$((p + ok)); f=$((f + bad))
done
echo "$p passed, $f failed"
if [ "$f" != 0 ]; then
  [ -z "$PAIMON_SQL_CLIENT_LOG" ] || cp "$T/log" "$PAIMON_SQL_CLIENT_LOG"
  exit 1
fi
