package planner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/parser"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// memRel is a relation that is only planned, never read.
type memRel struct {
	schema, name string
	oid          uint32
	cols         []catalog.Column
	pk, parts    []string
	stats        *table.Stats
	query        string
	at           snapshot.Ref
	opts         map[string]string
}

func (r *memRel) Schema() string { return r.schema }
func (r *memRel) Name() string   { return r.name }
func (r *memRel) OID() uint32    { return r.oid }
func (r *memRel) Kind() byte {
	if r.query != "" {
		return 'v'
	}
	return 'r'
}
func (r *memRel) Columns() []catalog.Column { return r.cols }
func (r *memRel) Plan(context.Context, table.Scan) (*table.Plan, error) {
	return &table.Plan{Report: &table.PlanReport{SnapshotID: 7, Files: 10, FilesRead: 4, Skipped: map[string]int64{"stats": 6}, Level0Files: 2, RawSplits: 3, MergeSplits: 1}}, nil
}
func (r *memRel) Read(context.Context, table.Scan, table.Split, table.ReadOptions) (table.SplitReader, error) {
	return nil, nil
}
func (r *memRel) Stats(context.Context, table.Scan) (*table.Stats, error) { return r.stats, nil }
func (r *memRel) PrimaryKey() []string                                    { return r.pk }
func (r *memRel) PartitionKeys() []string                                 { return r.parts }
func (r *memRel) Options() map[string]string                              { return r.opts }
func (r *memRel) Comment() string                                         { return "" }
func (r *memRel) SchemaID() int64                                         { return 0 }
func (r *memRel) At() snapshot.Ref                                        { return r.at }
func (r *memRel) Table() table.Table                                      { return nil }
func (r *memRel) Query() string                                           { return r.query }

// memCat resolves through "public".
type memCat struct{ rels map[string]*memRel }

func (c *memCat) Relation(_ context.Context, n ast.Name, o catalog.ResolveOptions) (catalog.Relation, error) {
	schema := "public"
	if len(n) > 1 {
		schema = n[len(n)-2].Name
	}
	r, ok := c.rels[schema+"."+n.Last()]
	if !ok {
		return nil, pgerr.New(pgerr.UndefinedTable, "relation %q does not exist", n.String())
	}
	cp := *r
	cp.at = o.At
	if o.Dynamic != nil {
		cp.opts = o.Dynamic
	}
	return &cp, nil
}

// ddl makes relations of CREATE TABLE and CREATE VIEW statements.
func (c *memCat) ddl(t testing.TB, sql string) {
	t.Helper()
	stmts, err := parser.Parse(sql)
	if err != nil {
		t.Fatalf("%v in %s", err, sql)
	}
	for _, s := range stmts {
		switch s := s.(type) {
		case *ast.CreateTable:
			r := &memRel{schema: "public", name: s.Name.Last(), oid: uint32(16384 + len(c.rels))}
			if len(s.Name) > 1 {
				r.schema = s.Name[0].Name
			}
			for i, cd := range s.Columns {
				ty, err := ResolveType(cd.Type, sql)
				if err != nil {
					t.Fatal(err)
				}
				col := catalog.Column{Field: types.Field{ID: int32(i), Name: cd.Name.Name, Type: ty}, AttNum: int16(i + 1)}
				for _, k := range cd.Constraints {
					switch k.Kind {
					case ast.ConstraintNotNull:
						col.NotNull = true
					case ast.ConstraintPrimaryKey:
						col.NotNull = true
						r.pk = []string{cd.Name.Name}
					}
				}
				r.cols = append(r.cols, col)
			}
			for _, k := range s.Constraints {
				if k.Kind == ast.ConstraintPrimaryKey {
					for _, id := range k.Columns {
						r.pk = append(r.pk, id.Name)
						for i := range r.cols {
							if r.cols[i].Name == id.Name {
								r.cols[i].NotNull = true
							}
						}
					}
				}
			}
			c.rels[r.schema+"."+r.name] = r
		case *ast.CreateView:
			r := &memRel{schema: "public", name: s.Name.Last(), oid: uint32(16384 + len(c.rels))}
			if len(s.Name) > 1 {
				r.schema = s.Name[0].Name
			}
			src := s.Text
			r.query = src[strings.Index(strings.ToUpper(src), " AS ")+4:]
			p, err := planText(c, r.query, Options{})
			if err != nil {
				t.Fatalf("%v in %s", err, r.query)
			}
			for i, col := range p.Columns {
				r.cols = append(r.cols, catalog.Column{Field: types.Field{ID: -1, Name: col.Name, Type: col.Type}, AttNum: int16(i + 1)})
			}
			c.rels[r.schema+"."+r.name] = r
		}
	}
}

// testEnv is a session for tests.
type testEnv struct{}

func (testEnv) Now() time.Time                        { return time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC) }
func (testEnv) StatementTime() time.Time              { return testEnv{}.Now() }
func (testEnv) Location() *time.Location              { return time.UTC }
func (testEnv) Setting(string) (string, bool)         { return "", false }
func (testEnv) SetSetting(string, string, bool) error { return nil }
func (testEnv) User() string                          { return "tester" }
func (testEnv) Database() string                      { return "paimon" }
func (testEnv) SearchPath(bool) []string              { return []string{"public"} }
func (testEnv) BackendPID() int32                     { return 1 }
func (testEnv) Catalog() function.CatalogEnv          { return nil }

func planText(c *memCat, sql string, o Options) (*Planned, error) {
	stmts, err := parser.Parse(sql)
	if err != nil {
		return nil, err
	}
	if len(stmts) != 1 {
		return nil, fmt.Errorf("%d statements", len(stmts))
	}
	o.Resolver, o.Env = c, testEnv{}
	return Plan(context.Background(), stmts[0], sql, o)
}

// shared finds the folder of shared test material, or skips.
func shared(t testing.TB, sub string) string {
	t.Helper()
	dir := os.Getenv("PAIMON_SQL_SHARED")
	if dir == "" {
		_, file, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(file), "..", "..", "..", "shared")
	}
	p := filepath.Join(dir, sub)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("needs ../shared/%s", sub)
	}
	return p
}

const tpchDDL = `
CREATE TABLE region (r_regionkey int PRIMARY KEY, r_name char(25) NOT NULL, r_comment varchar(152));
CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name char(25) NOT NULL, n_regionkey int NOT NULL, n_comment varchar(152));
CREATE TABLE supplier (s_suppkey int PRIMARY KEY, s_name char(25) NOT NULL, s_address varchar(40) NOT NULL, s_nationkey int NOT NULL, s_phone char(15) NOT NULL, s_acctbal decimal(15,2) NOT NULL, s_comment varchar(101) NOT NULL);
CREATE TABLE part (p_partkey int PRIMARY KEY, p_name varchar(55) NOT NULL, p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size int NOT NULL, p_container char(10) NOT NULL, p_retailprice decimal(15,2) NOT NULL, p_comment varchar(23) NOT NULL);
CREATE TABLE partsupp (ps_partkey int, ps_suppkey int, ps_availqty int NOT NULL, ps_supplycost decimal(15,2) NOT NULL, ps_comment varchar(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (c_custkey int PRIMARY KEY, c_name varchar(25) NOT NULL, c_address varchar(40) NOT NULL, c_nationkey int NOT NULL, c_phone char(15) NOT NULL, c_acctbal decimal(15,2) NOT NULL, c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL);
CREATE TABLE orders (o_orderkey int PRIMARY KEY, o_custkey int NOT NULL, o_orderstatus char(1) NOT NULL, o_totalprice decimal(15,2) NOT NULL, o_orderdate date NOT NULL, o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL, o_shippriority int NOT NULL, o_comment varchar(79) NOT NULL);
CREATE TABLE lineitem (l_orderkey int, l_partkey int NOT NULL, l_suppkey int NOT NULL, l_linenumber int, l_quantity decimal(15,2) NOT NULL, l_extendedprice decimal(15,2) NOT NULL, l_discount decimal(15,2) NOT NULL, l_tax decimal(15,2) NOT NULL, l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber));
`

// tpchStats are the statistics of scale factor 1, as manifests have them: rows
// and the range of numbers and dates.
var tpchStats = map[string]struct {
	rows   int64
	ranges map[string][2]int64
}{
	"region":   {5, map[string][2]int64{"r_regionkey": {0, 4}}},
	"nation":   {25, map[string][2]int64{"n_nationkey": {0, 24}, "n_regionkey": {0, 4}}},
	"supplier": {10000, map[string][2]int64{"s_suppkey": {1, 10000}, "s_nationkey": {0, 24}}},
	"part":     {200000, map[string][2]int64{"p_partkey": {1, 200000}, "p_size": {1, 50}}},
	"partsupp": {800000, map[string][2]int64{"ps_partkey": {1, 200000}, "ps_suppkey": {1, 10000}, "ps_availqty": {1, 9999}}},
	"customer": {150000, map[string][2]int64{"c_custkey": {1, 150000}, "c_nationkey": {0, 24}}},
	"orders":   {1500000, map[string][2]int64{"o_orderkey": {1, 6000000}, "o_custkey": {1, 149999}, "o_orderdate": {8035, 10440}}},
	"lineitem": {6001215, map[string][2]int64{"l_orderkey": {1, 6000000}, "l_partkey": {1, 200000}, "l_suppkey": {1, 10000}, "l_linenumber": {1, 7}, "l_shipdate": {8036, 10561}, "l_commitdate": {8064, 10530}, "l_receiptdate": {8037, 10591}}},
}

func tpchCat(t testing.TB) *memCat {
	c := &memCat{rels: map[string]*memRel{}}
	c.ddl(t, tpchDDL)
	for name, s := range tpchStats {
		r := c.rels["public."+name]
		r.stats = &table.Stats{Rows: s.rows, Columns: map[int32]table.ColumnStats{}}
		for col, mm := range s.ranges {
			for _, cc := range r.cols {
				if cc.Name == col {
					r.stats.Columns[cc.ID] = table.ColumnStats{Min: mm[0], Max: mm[1]}
				}
			}
		}
	}
	return c
}

// addResult makes a relation of a query's result columns.
func (c *memCat) addResult(name string, p *Planned) {
	r := &memRel{schema: "public", name: name, oid: uint32(16384 + len(c.rels))}
	for i, col := range p.Columns {
		r.cols = append(r.cols, catalog.Column{Field: types.Field{ID: int32(i), Name: col.Name, Type: col.Type.WithNotNull(false)}, AttNum: int16(i + 1)})
	}
	c.rels["public."+name] = r
}
