-- What Lay makes, in this order. A table whose name is taken is left alone.

-- table public.all_types
BEGIN;
CREATE TABLE public.all_types (
  id integer, c_bool boolean, c_tiny tinyint, c_small smallint, c_int integer, c_big bigint, c_float real, c_double double precision,
  c_dec5 numeric(5,2), c_dec18 numeric(18,4), c_dec38 numeric(38,10), c_char char(8), c_varchar varchar(20), c_str text, c_bin bytea,
  c_date date, c_ltz timestamptz, c_ntz timestamp, a_int integer[], a_str text[], m_si map<text, integer>, m_is map<integer, text>,
  r row<x integer, y text, z row<p double precision, q integer[]>>, ar array<row<k bigint, v numeric(10,3)>>, mar map<text, integer[]>,
  aa array<text[]>, md map<date, row<t timestamptz, b bytea>>
) COMMENT 'a column of nearly every type';
COPY public.all_types FROM STDIN;
COMMIT;

-- table public.part_date
BEGIN;
CREATE TABLE public.part_date (id integer, v text, p date) PARTITIONED BY (p);
COPY public.part_date FROM STDIN;
COMMIT;

-- table tpch_append.region
BEGIN;
CREATE SCHEMA IF NOT EXISTS tpch_append;
CREATE TABLE tpch_append.region (r_regionkey bigint, r_name text, r_comment text);
COPY tpch_append.region FROM STDIN;
COMMIT;

-- table tpch_append.nation
BEGIN;
CREATE TABLE tpch_append.nation (n_nationkey bigint, n_name text, n_regionkey bigint, n_comment text);
COPY tpch_append.nation FROM STDIN;
COMMIT;

-- table tpch_append.supplier
BEGIN;
CREATE TABLE tpch_append.supplier (
  s_suppkey bigint, s_name text, s_address text, s_nationkey bigint, s_phone text, s_acctbal numeric(15,2), s_comment text);
COPY tpch_append.supplier FROM STDIN;
COMMIT;

-- table tpch_append.customer
BEGIN;
CREATE TABLE tpch_append.customer (
  c_custkey bigint, c_name text, c_address text, c_nationkey bigint, c_phone text, c_acctbal numeric(15,2), c_mktsegment text, c_comment text);
COPY tpch_append.customer FROM STDIN;
COMMIT;

-- table tpch_append.part
BEGIN;
CREATE TABLE tpch_append.part (
  p_partkey bigint, p_name text, p_mfgr text, p_brand text, p_type text, p_size integer, p_container text, p_retailprice numeric(15,2),
  p_comment text);
COPY tpch_append.part FROM STDIN;
COMMIT;

-- table tpch_append.partsupp
BEGIN;
CREATE TABLE tpch_append.partsupp (
  ps_partkey bigint, ps_suppkey bigint, ps_availqty integer, ps_supplycost numeric(15,2), ps_comment text);
COPY tpch_append.partsupp FROM STDIN;
COMMIT;

-- table tpch_append.orders
BEGIN;
CREATE TABLE tpch_append.orders (
  o_orderkey bigint, o_custkey bigint, o_orderstatus text, o_totalprice numeric(15,2), o_orderdate date, o_orderpriority text, o_clerk text,
  o_shippriority integer, o_comment text);
COPY tpch_append.orders FROM STDIN;
COMMIT;

-- table tpch_append.lineitem
BEGIN;
CREATE TABLE tpch_append.lineitem (
  l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber integer, l_quantity numeric(15,2), l_extendedprice numeric(15,2),
  l_discount numeric(15,2), l_tax numeric(15,2), l_returnflag text, l_linestatus text, l_shipdate date, l_commitdate date, l_receiptdate date,
  l_shipinstruct text, l_shipmode text, l_comment text);
COPY tpch_append.lineitem FROM STDIN;
COMMIT;

-- table public.orders
BEGIN;
CREATE TABLE public.orders (
  o_orderkey bigint, o_custkey bigint, o_orderstatus text, o_totalprice numeric(15,2), o_orderdate date, o_orderpriority text, o_clerk text,
  o_shippriority integer, o_comment text, PRIMARY KEY (o_orderkey, o_orderpriority)
) PARTITIONED BY (o_orderpriority) COMMENT 'orders of a shop, with their past';
INSERT INTO public.orders SELECT * FROM tpch_append.orders;
COMMIT;
CALL sys.create_tag('public.orders', 'release-1');
UPDATE public.orders SET o_totalprice = o_totalprice * 2 WHERE o_orderkey % 50 = 3;
DELETE FROM public.orders WHERE o_orderkey % 101 = 5;
