#!/usr/bin/env python3
"""What clients feel of the server itself, beside PostgreSQL on one machine in one run. Every figure that matters is a ratio.

  select1  prepared SELECT 1 over 1, 8 and 64 connections (pgbench); fair: the slowest beside the fastest of 64
  stream   ROWS rows of seven columns to one client, in text and in binary, read as fast as a socket gives them
  idle     memory of 1,000 idle connections
  catalog  the query behind psql's \\d, and that behind a driver's list of one table's columns, on TABLES tables of 200
           columns, cold and warm

Needs psycopg, pgbench (PGBENCH, default: the newest below /usr/lib/postgresql) and PG, the dsn of a PostgreSQL that
needs no password; without PG only our figures are given.
"""
import argparse
import glob
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

import psycopg
from psycopg.conninfo import conninfo_to_dict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROWS_SQL = """select g::bigint as id, (g %% 1000)::int as a, date '2020-01-01' + (g %% 2000)::int as d, (g %% 100000)::numeric(12,2) / 4 as n,
 'text of row ' || (g %% 5000)::text as t, g::float8 / 7 as f, timestamp '2024-01-01' + (g %% 86400) * interval '1 second' as ts
 from generate_series(1, %d) as x(g)"""


def say(*a):
    print(*a, flush=True)


class Server:
    def __init__(self, a, warehouse):
        self.p = subprocess.Popen([os.path.join(ROOT, "bin", "paimon-sql"), "serve", "--warehouse", warehouse, "--listen", "127.0.0.1:%d" % a.port,
                                   "--log-level", "warn", "--max-connections", "2000"], stdout=subprocess.DEVNULL)
        self.dsn = "host=127.0.0.1 port=%d user=paimon dbname=paimon" % a.port
        for _ in range(200):
            try:
                psycopg.connect(self.dsn).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise SystemExit("the server did not start")

    def memory(self):
        """Resident bytes."""
        with open("/proc/%d/status" % self.p.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) << 10

    def close(self):
        self.p.terminate()
        self.p.wait()


def servers(a, s):
    return [("paimon-sql", s.dsn)] + ([("postgres", a.pg)] if a.pg else [])


def pgbench(a, dsn, clients, script):
    d = conninfo_to_dict(dsn)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as f:
        f.write(script)
        f.flush()
        with tempfile.TemporaryDirectory() as logs:
            out = subprocess.run([a.pgbench, "-n", "-M", "prepared", "-f", f.name, "-c", str(clients), "-j", "2", "-T", str(a.seconds), "-l",
                                  "--log-prefix", logs + "/l", "-h", d["host"], "-p", str(d["port"]), "-U", d["user"], d["dbname"]],
                                 capture_output=True, text=True, check=True).stdout
            per = {}
            for n in glob.glob(logs + "/l*"):
                with open(n) as log:
                    for line in log:
                        c = line.split(" ", 1)[0]
                        per[c] = per.get(c, 0) + 1
    return float(re.search(r"tps = ([\d.]+)", out).group(1)), per


def select1(a, s):
    for clients in (1, 8, 64):
        rate = {}
        for name, dsn in servers(a, s):
            rate[name], per = pgbench(a, dsn, clients, "select 1;\n")
            say("%-10s %2d connections: %8.0f statements/s, slowest connection %.2f of the fastest" % (name, clients, rate[name], min(per.values()) / max(per.values())))
        if a.pg:
            say("%2d connections: %.2fx of PostgreSQL's rate" % (clients, rate["paimon-sql"] / rate["postgres"]))


class Raw:
    """A connection that reads bytes and looks at none but the last."""

    def __init__(self, dsn):
        d = conninfo_to_dict(dsn)
        self.s = socket.create_connection((d["host"], int(d["port"])))
        body = struct.pack("!i", 196608) + b"user\0" + d["user"].encode() + b"\0database\0" + d["dbname"].encode() + b"\0\0"
        self.s.sendall(struct.pack("!i", len(body) + 4) + body)
        self.buf = bytearray(1 << 20)
        self.until_ready()

    def until_ready(self):
        total, last = 0, b""
        while True:
            n = self.s.recv_into(self.buf)
            if n == 0:
                raise SystemExit("the connection was closed")
            total += n
            last = (last + bytes(self.buf[max(0, n - 64):n]))[-64:]
            if last[-6:-1] == b"Z\0\0\0\5":
                return total, last

    def run(self, sql, binary):
        def msg(t, body):
            return t + struct.pack("!i", len(body) + 4) + body
        out = msg(b"P", b"\0" + sql.encode() + b"\0\0\0") + msg(b"B", b"\0\0\0\0\0\0" + (b"\0\1\0\1" if binary else b"\0\0"))
        self.s.sendall(out + msg(b"E", b"\0\0\0\0\0") + msg(b"S", b""))
        start = time.time()
        total, last = self.until_ready()
        m = re.search(rb"SELECT (\d+)\0", last)
        if not m:
            raise SystemExit("no answer: %r" % last)
        return time.time() - start, total, int(m.group(1))


def stream(a, s):
    best = {}
    for name, dsn in servers(a, s):
        with psycopg.connect(dsn, autocommit=True) as c:
            c.execute("drop table if exists bench_stream")
            c.execute("create table bench_stream as " + ROWS_SQL % a.rows)
            if name == "postgres":
                c.execute("vacuum analyze bench_stream")
        con = Raw(dsn)
        for binary in (False, True):
            runs = [con.run("select * from bench_stream", binary) for _ in range(3)]
            assert all(r[2] == a.rows for r in runs), runs
            t = min(r[0] for r in runs)
            best[name, binary] = t
            say("%-10s %-6s: %5.2f million rows/s, %5.0f MB/s" % (name, "binary" if binary else "text", a.rows / t / 1e6, runs[0][1] / t / 1e6))
    if a.pg:
        for binary in (False, True):
            say("%-6s: %.2fx of PostgreSQL's rate" % ("binary" if binary else "text", best["postgres", binary] / best["paimon-sql", binary]))
    for _, dsn in servers(a, s):
        with psycopg.connect(dsn, autocommit=True) as c:
            c.execute("drop table bench_stream")


def idle(a, s):
    before = s.memory()
    cs = [psycopg.connect(s.dsn, autocommit=True) for _ in range(1000)]
    for c in cs:
        c.execute("select 1")
    say("1,000 idle connections: %.0f MB more than none (%.0f MB)" % ((s.memory() - before) / 1e6, before / 1e6))
    for c in cs:
        c.close()


D = """SELECT n.nspname as "Schema", c.relname as "Name", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'S' THEN 'sequence' END as "Type",
 pg_catalog.pg_get_userbyid(c.relowner) as "Owner" FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam WHERE c.relkind IN ('r','p','v','m','S','f','') AND n.nspname <> 'pg_catalog'
 AND n.nspname !~ '^pg_toast' AND n.nspname <> 'information_schema' AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1,2"""
COLUMNS = """SELECT n.nspname, c.relname, a.attname, a.atttypid, a.attnotnull, a.atttypmod, a.attnum, pg_catalog.pg_get_expr(def.adbin, def.adrelid)
 FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid) JOIN pg_catalog.pg_attribute a ON (a.attrelid = c.oid)
 LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid = def.adrelid AND a.attnum = def.adnum)
 WHERE c.relkind in ('r','p','v','f','m') AND a.attnum > 0 AND NOT a.attisdropped AND c.relname LIKE 't0001' AND n.nspname LIKE 'public'"""


def catalog(a, s):
    kinds = ["INT", "BIGINT", "STRING", "DOUBLE", "DATE", "TIMESTAMP(6)", "DECIMAL(12, 2)", "BOOLEAN", "VARCHAR(20)", "SMALLINT"]
    fields = [{"id": i, "name": "c%03d" % i, "type": kinds[i % 10] + (" NOT NULL" if i == 0 else "")} for i in range(200)]
    root = tempfile.mkdtemp(prefix="bench-wire.")
    try:
        for i in range(a.tables):
            d = "%s/default.db/t%04d/schema" % (root, i)
            os.makedirs(d)
            keyed = i % 2
            with open(d + "/schema-0", "w") as f:
                json.dump({"version": 3, "id": 0, "fields": fields, "highestFieldId": 199, "partitionKeys": [], "primaryKeys": ["c000"] if keyed else [],
                           "options": {"bucket": "1" if keyed else "-1"}, "timeMillis": 1700000000000}, f)
        a.port += 1
        big = Server(a, root)
        try:
            time.sleep(3)  # directories that were changed just now are looked at again
            with psycopg.connect(big.dsn, autocommit=True) as c:
                for name, q, rows in (("\\d", D, a.tables), ("columns of one table", COLUMNS, 200)):
                    ts = []
                    for _ in range(9):
                        start = time.time()
                        got = len(c.execute(q).fetchall())
                        ts.append((time.time() - start) * 1000)
                        assert got == rows, (got, rows)
                    say("%s on %d tables of 200 columns: %.0f ms cold, %.1f ms warm (median)" % (name, a.tables, ts[0], sorted(ts[1:])[4]))
            say("memory %.0f MB" % (big.memory() / 1e6))
        finally:
            big.close()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", default=["idle", "select1", "stream", "catalog"])
    p.add_argument("--rows", type=int, default=10_000_000)
    p.add_argument("--tables", type=int, default=10_000)
    p.add_argument("--seconds", type=int, default=5)
    p.add_argument("--port", type=int, default=55444)
    p.add_argument("--pg", default=os.environ.get("PG"))
    a = p.parse_args()
    a.pgbench = os.environ.get("PGBENCH") or sorted(glob.glob("/usr/lib/postgresql/*/bin/pgbench"))[-1]
    warehouse = tempfile.mkdtemp(prefix="bench-wire.")
    s = Server(a, warehouse)
    try:
        for part in a.parts:
            say("== " + part)
            globals()[part](a, s)
    finally:
        s.close()
        shutil.rmtree(warehouse, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
