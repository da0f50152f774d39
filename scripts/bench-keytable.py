#!/usr/bin/env python3
"""Primary-key tables beside their peers, on one machine in one run. Every figure that matters is a ratio.

  lookups     point lookups of ROWS rows after upserts, prepared, beside PostgreSQL (shared/bench/lookup_bench.py, pgbench)
  merge       reading 5 sorted runs beside the compacted table, per merge engine and with deletion vectors;
              count(*) of the merge-on-read table beside pypaimon-rust
  merge-first the read that follows each upsert of 5 % or 0.1 % of the rows, and that of a server just started, beside
              the warm read and that of the compacted table, per merge engine
  compaction  full compaction of 5 runs beside Java Paimon (the java-oracle jar), MB/s of input
  changelog   upserts with changelog-producer = lookup beside none
  space       bytes after 20 rounds of 5 % upserts beside the fully compacted table

Needs psycopg; PG (dsn) for lookups, PAIMON_ORACLE_JAR for compaction, pypaimon-rust for count(*): what is absent is
left out by name.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import types

import psycopg

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.environ.get("PAIMON_SQL_SHARED", os.path.join(ROOT, "..", "shared"))


def say(*a):
    print(*a, flush=True)


class Server:
    def __init__(self, a, warehouse, *more):
        self.args = (a, warehouse, *more)
        self.port = a.port
        self.p = subprocess.Popen([a.binary or os.path.join(ROOT, "bin", "paimon-sql"), "serve", "--warehouse", warehouse, "--listen",
                                   "127.0.0.1:%d" % a.port, "--log-level", "warn", *more], stdout=subprocess.DEVNULL)
        self.dsn = "host=127.0.0.1 port=%d user=paimon dbname=paimon" % a.port
        for _ in range(200):
            try:
                self.con = psycopg.connect(self.dsn, autocommit=True)
                return
            except psycopg.OperationalError:
                time.sleep(0.05)
        raise SystemExit("the server did not start")

    def restart(self):
        self.close()
        self.__init__(*self.args)

    def sql(self, q):
        cur = self.con.execute(q)
        return cur.fetchall() if cur.description else None

    def timed(self, q):
        t = time.perf_counter()
        r = self.sql(q)
        return time.perf_counter() - t, r

    def rss(self, what="VmHWM"):
        with open("/proc/%d/status" % self.p.pid) as f:
            return next(int(l.split()[1]) // 1024 for l in f if l.startswith(what))

    def close(self):
        self.con.close()
        self.p.terminate()
        self.p.wait()


def median(s, q, n=5):
    s.sql(q)
    return statistics.median(s.timed(q)[0] for _ in range(n)) * 1000


COLS = "k bigint not null, n bigint, amount decimal(15,2), status text, note text"
ROW = "i, i * 7 %% 1000, (i %% 100000)::decimal(15,2), 'S' || i %% 5, 'note of row ' || i || ' round %d'"


def fill(s, table, rows, options, rounds, share, engine="deduplicate"):
    """One big run at the highest level and rounds of a share of the rows above it."""
    s.sql("drop table if exists %s" % table)
    s.sql("create table %s (%s, primary key (k)) with (%s)" % (table, COLS, options))
    s.sql("insert into %s select %s from generate_series(1, %d) i" % (table, ROW % 0, rows))
    s.sql("call sys.compact('default.%s', compact_strategy => 'full')" % table)
    step = int(1 / share)
    for r in range(rounds):
        s.sql("insert into %s select %s from generate_series(1, %d) i where i %% %d = %d" % (table, ROW % (r + 1), rows, step, r % step))


READ = "select count(*), sum(n), max(amount), max(status), max(note) from %s"


AGG = ", ".join("'fields.%s.aggregate-function' = '%s'" % f for f in
                [("n", "sum"), ("amount", "max"), ("status", "last_value"), ("note", "last_non_null_value")])
BASE = "'bucket' = '4', 'write-only' = 'true'"
ENGINES_OF = [("deduplicate", BASE), ("partial-update", BASE + ", 'merge-engine' = 'partial-update'"),
              ("aggregation", BASE + ", 'merge-engine' = 'aggregation', " + AGG), ("first-row", BASE + ", 'merge-engine' = 'first-row'")]


def merge_first(a, s):
    for name, opts in ENGINES_OF:
        t = "f_" + name.replace("-", "_")
        fill(s, t, a.rows, opts, 0, 0.05)
        flat = median(s, READ % t)
        first = {}
        for what, step, rounds in [("0.1 %", 1000, 5), ("5 %", 20, 4)]:
            times = []
            for r in range(rounds):
                s.sql("insert into %s select %s from generate_series(1, %d) i where i %% %d = %d" % (t, ROW % (r + 1), a.rows, step, r % step))
                times.append(s.timed(READ % t)[0] * 1000)
            first[what] = statistics.median(times)
            if what == "0.1 %":
                s.sql("alter table %s set ('write-only' = 'false')" % t)
                s.sql("call sys.compact('default.%s', compact_strategy => 'full')" % t)
                s.sql("alter table %s set ('write-only' = 'true')" % t)
        again = [s.timed(READ % t)[0] * 1000 for _ in range(5)]
        fresh = []
        for _ in range(3):
            s.restart()
            fresh.append([s.timed(READ % t)[0] * 1000 for _ in range(2)])
        new, second = (statistics.median(f[i] for f in fresh) for i in range(2))
        say("%-14s %d rows, compacted %.0f ms; after 0.1 %%: %.0f ms, %.2fx; after 5 %%: %.0f ms, %.2fx; again %.2fx, warm %.2fx; new server %.2fx, again %.2fx"
            % (name, a.rows, flat, first["0.1 %"], first["0.1 %"] / flat, first["5 %"], first["5 %"] / flat, again[0] / flat,
               statistics.median(again[2:]) / flat, new / flat, second / flat))


def merge(a, s):
    for name, opts in [*ENGINES_OF, ("deletion vectors", "'bucket' = '4', 'deletion-vectors.enabled' = 'true'")]:
        t = "m_" + name.replace("-", "_").replace(" ", "_")
        fill(s, t, a.rows, opts, 4, 0.05)
        runs = s.sql('select bucket, count(distinct level) + count(*) filter (where level = 0) from "%s$files" group by 1 order by 1 limit 1' % t)
        merged, counted = median(s, READ % t), median(s, "select count(*) from %s" % t)
        rust = ""
        if name == "deduplicate":
            rust = count_by_rust(a, t, counted)
        s.sql("alter table %s set ('write-only' = 'false')" % t)
        s.sql("call sys.compact('default.%s', compact_strategy => 'full')" % t)
        flat, flat_count = median(s, READ % t), median(s, "select count(*) from %s" % t)
        say("%-17s %d rows, read %.0f ms merged, %.0f ms compacted: %.2fx; count(*) %.1f ms merged, %.1f ms compacted%s"
            % (name, a.rows, merged, flat, merged / flat, counted, flat_count, rust))


def count_by_rust(a, table, ours):
    try:
        sys.path.insert(0, os.path.join(SHARED, "bench"))
        from engines import ENGINES
        link = tempfile.mkdtemp()
        os.symlink(a.warehouse, os.path.join(link, "sf1"))  # where the adapter looks for a warehouse
        e = ENGINES["pypaimon-rust"](types.SimpleNamespace(warehouse=link, sf="1", threads=os.cpu_count() or 2))
        e.use("default")
        q = "select count(*) from %s" % table
        e.run(q)
        ts = []
        for _ in range(5):
            t = time.perf_counter()
            e.run(q)
            ts.append((time.perf_counter() - t) * 1000)
        return "; pypaimon-rust counts in %.0f ms: ours is %.1fx as fast" % (statistics.median(ts), statistics.median(ts) / ours)
    except Exception as x:  # absent, or of another version
        return "; pypaimon-rust: %s" % str(x)[:80]


def compaction(a, s):
    """Rows of random text, so that bytes are bytes: 5 runs of about a.mb MB each."""
    s.sql("drop table if exists c_runs")
    s.sql("create table c_runs (k bigint not null, n bigint, note text, primary key (k)) with ('bucket' = '1', 'write-only' = 'true')")
    rows = a.mb * 10000
    for r in range(5):
        s.sql("insert into c_runs select (i::bigint * 7919 + %d) %% (%d * 3), i, md5(i::text || '%d') || md5(i::text || 'x%d') || md5(i::text || 'y') from generate_series(1, %d) i"
              % (r, rows, r, r, rows))
    size = int(s.sql('select sum(file_size_in_bytes) from "c_runs$files"')[0][0]) / 1e6
    jar = os.environ.get("PAIMON_ORACLE_JAR")
    java = None
    if jar:
        twin = a.warehouse + "-java"
        shutil.rmtree(twin, ignore_errors=True)
        shutil.copytree(a.warehouse + "/default.db/c_runs", twin + "/default.db/c_runs")
        p = subprocess.Popen(["java", "-Xmx4g", "-jar", jar, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for cmd in [{"cmd": "ping"}, {"cmd": "compact", "warehouse": twin, "table": "default.c_runs", "mode": "full", "options": {"write-only": "false"}}]:
            t = time.perf_counter()
            p.stdin.write(json.dumps(cmd) + "\n")
            p.stdin.flush()
            reply = json.loads(p.stdout.readline())
            java = time.perf_counter() - t
            if not reply.get("ok"):
                raise SystemExit(str(reply)[:1000])
        p.terminate()
        shutil.rmtree(twin, ignore_errors=True)
    before = s.rss("VmRSS")
    s.sql("alter table c_runs set ('write-only' = 'false')")
    ours, _ = s.timed("call sys.compact('default.c_runs', compact_strategy => 'full')")
    say("full compaction of 5 runs, %.0f MB: %.1f s, %.0f MB/s, memory %d -> %d MB%s" % (
        size, ours, size / ours, before, s.rss(), "" if java is None else "; Java %.1f s, %.0f MB/s: ours is %.2fx as fast" % (java, size / java, java / ours)))


def changelog(a, s):
    took = {}
    for name, opts in [("none", ""), ("lookup", ", 'changelog-producer' = 'lookup'")]:
        t = "l_" + name
        s.sql("drop table if exists %s" % t)
        s.sql("create table %s (%s, primary key (k)) with ('bucket' = '4'%s)" % (t, COLS, opts))
        s.sql("insert into %s select %s from generate_series(1, %d) i" % (t, ROW % 0, a.rows // 2))
        s.sql("call sys.compact('default.%s', compact_strategy => 'full')" % t)
        t0 = time.perf_counter()
        for r in range(10):
            s.sql("insert into %s select %s from generate_series(%d, %d, 7) i" % (t, ROW % r, r + 1, a.rows // 2))
        took[name] = time.perf_counter() - t0
    say("10 upserts of 1/7 of %d rows: none %.1f s, lookup changelog %.1f s: %.2fx" % (a.rows // 2, took["none"], took["lookup"], took["lookup"] / took["none"]))


def space(a, s):
    s.sql("drop table if exists s_rounds")
    s.sql("create table s_rounds (%s, primary key (k)) with ('bucket' = '4')" % COLS)
    n = a.rows // 2
    s.sql("insert into s_rounds select %s from generate_series(1, %d) i" % (ROW % 0, n))
    for r in range(20):
        s.sql("insert into s_rounds select %s from generate_series(%d, %d, 20) i" % (ROW % (r + 1), r + 1, n))
        time.sleep(0.3)  # rounds of a real load are apart, too
    size = 'select sum(file_size_in_bytes) from "s_rounds$files"'
    while True:  # until background compaction has nothing to do
        x = int(s.sql(size)[0][0])
        time.sleep(2)
        if x == int(s.sql(size)[0][0]):
            break
    s.sql("call sys.compact('default.s_rounds', compact_strategy => 'full')")
    y = int(s.sql(size)[0][0])
    say("after 20 rounds of 5 %% upserts: %.1f MB, fully compacted %.1f MB: %.2fx" % (x / 1e6, y / 1e6, x / y))


ORDERS = "o_orderkey bigint not null, o_custkey bigint, o_orderstatus text, o_totalprice decimal(15,2), o_orderdate date, o_comment text"
ORDER = ("((i >> 3) << 5) | (i & 7), i * 31 %% 150000, 'O', (i %% 500000)::decimal(15,2), date '1992-01-01' + (i %% 2400)::int, "
         "'comment of order ' || i || ' round %d'")


def lookups(a, s):
    pg = os.environ.get("PG")
    targets = [("paimon-sql", s.dsn)] + ([("postgres", pg)] if pg else [])
    for who, dsn in targets:
        with psycopg.connect(dsn, autocommit=True) as c:
            c.execute("create schema if not exists bench_lookup")
            c.execute("set search_path = bench_lookup")
            c.execute("drop table if exists orders")
            tail = " with ('bucket' = '4')" if who == "paimon-sql" else ""
            c.execute("create table orders (%s, primary key (o_orderkey))%s" % (ORDERS, tail))
            c.execute("insert into orders select %s from generate_series(1, %d) i" % (ORDER % 0, a.lookup_rows))
            for r in range(3):
                c.execute("insert into orders select %s from generate_series(%d, %d, 50) i on conflict (o_orderkey) do update set "
                          "o_totalprice = excluded.o_totalprice, o_comment = excluded.o_comment, o_custkey = excluded.o_custkey, "
                          "o_orderstatus = excluded.o_orderstatus, o_orderdate = excluded.o_orderdate" % (ORDER % (r + 1), r + 1, a.lookup_rows))
            if who == "postgres":
                c.execute("vacuum analyze orders")
    sf = "%g" % (a.lookup_rows / 1500000)
    with tempfile.TemporaryDirectory() as d:
        for _ in range(2):  # the second time everything is warm
            for who, dsn in targets:
                out = os.path.join(d, who + ".jsonl")
                subprocess.run([sys.executable, "lookup_bench.py", "--engine", who, "--dsn", dsn, "--db", "bench_lookup", "--sf", sf, "--data", d,
                                "--connections", "1,8,32", "--seconds", str(a.seconds), "--repeat", "1", "--out", out],
                               cwd=os.path.join(SHARED, "bench"), check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))
        got = {}
        for who, _ in targets:
            for l in list(open(os.path.join(d, who + ".jsonl")))[-3:]:
                r = json.loads(l)
                got[who, r["connections"]] = r
                say("%-10s %2d connections: %8.0f lookups/s, p50 %.3f ms, p99 %.3f ms" % (who, r["connections"], r["lookups_s"], r["p50_ms"], r["p99_ms"]))
        if pg:
            for n in (1, 8, 32):
                o, p = got["paimon-sql", n], got["postgres", n]
                say("%2d connections: %.2fx of PostgreSQL's rate, p99 %.1fx of its" % (n, o["lookups_s"] / p["lookups_s"], o["p99_ms"] / p["p99_ms"]))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", default=["lookups", "merge", "merge-first", "compaction", "changelog", "space"])
    p.add_argument("--rows", type=int, default=6000000)
    p.add_argument("--lookup-rows", type=int, default=5000000)
    p.add_argument("--mb", type=int, default=200, help="of each run of the compaction")
    p.add_argument("--seconds", type=int, default=10)
    p.add_argument("--port", type=int, default=55434)
    p.add_argument("--binary", help="default: bin/paimon-sql")
    p.add_argument("--warehouse", help="kept; default: a temporary one")
    a = p.parse_args()
    keep = a.warehouse
    a.warehouse = a.warehouse or tempfile.mkdtemp(prefix="bench-keytable.")
    s = Server(a, a.warehouse)
    try:
        for part in a.parts:
            say("== " + part)
            globals()[part.replace("-", "_")](a, s)
    finally:
        s.close()
        if not keep:
            shutil.rmtree(a.warehouse, ignore_errors=True)


if __name__ == "__main__":
    main()
