package vectorized

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

var (
	tInt4  = types.Of(types.Int4)
	tInt8  = types.Of(types.Int8)
	tText  = types.Of(types.Text)
	tFloat = types.Of(types.Float8)
	tDate  = types.Of(types.Date)
	tNum   = types.DecimalOf(12, 2)
)

func newRand(t testing.TB) *rand.Rand {
	return rand.New(rand.NewPCG(random.Seed(t), 7))
}

type row = []types.Datum

// memRel is a relation of batches, one split each.
type memRel struct {
	schema  types.Schema
	batches []*vec.Batch
	closed  atomic.Int64
	onRead  func()
}

func (r *memRel) Schema() string { return "public" }
func (r *memRel) Name() string   { return "t" }
func (r *memRel) OID() uint32    { return 1 }
func (r *memRel) Kind() byte     { return 'r' }
func (r *memRel) Columns() []catalog.Column {
	var out []catalog.Column
	for _, f := range r.schema {
		out = append(out, catalog.Column{Field: f})
	}
	return out
}

func (r *memRel) Plan(context.Context, table.Scan) (*table.Plan, error) {
	p := &table.Plan{Report: &table.PlanReport{}}
	for i := range r.batches {
		p.Splits = append(p.Splits, table.Split{Impl: i, Bytes: int64(r.batches[i].N)})
	}
	return p, nil
}

func (r *memRel) Read(_ context.Context, s table.Scan, p table.Split, o table.ReadOptions) (table.SplitReader, error) {
	b := r.batches[p.Impl.(int)]
	if s.Columns != nil {
		nb := &vec.Batch{N: b.N, Sel: b.Sel}
		for _, c := range s.Columns {
			nb.Schema, nb.Cols = append(nb.Schema, b.Schema[c]), append(nb.Cols, b.Cols[c])
		}
		b = nb
	}
	return &memReader{r: r, b: b, rows: o.BatchRows}, nil
}

func (r *memRel) Stats(context.Context, table.Scan) (*table.Stats, error) { return nil, nil }

type memReader struct {
	r    *memRel
	b    *vec.Batch
	at   int
	rows int
}

func (m *memReader) Next(ctx context.Context) (*vec.Batch, error) {
	if m.r.onRead != nil {
		m.r.onRead()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if m.at >= m.b.N {
		return nil, nil
	}
	to := min(m.b.N, m.at+m.rows)
	out := &vec.Batch{Schema: m.b.Schema, N: to - m.at}
	for _, c := range m.b.Cols {
		out.Cols = append(out.Cols, vec.Slice(c, m.at, to))
	}
	m.at = to
	return out, nil
}

func (m *memReader) Close() error { m.r.closed.Add(1); return nil }

func schemaOf(ts ...types.Type) types.Schema {
	s := make(types.Schema, len(ts))
	for i, t := range ts {
		s[i] = types.Field{Name: fmt.Sprintf("c%d", i), Type: t, ID: int32(i)}
	}
	return s
}

// randomDatum draws from few values, so that groups and joins meet.
func randomDatum(r *rand.Rand, t types.Type, domain int, nulls bool) types.Datum {
	if nulls && r.IntN(6) == 0 {
		return nil
	}
	v := int64(r.IntN(domain))
	switch t.Kind {
	case types.Bool:
		return v&1 == 0
	case types.Int4, types.Int8, types.Date, types.Int2, types.Timestamp:
		return v - int64(domain/3)
	case types.Float8:
		return float64(v) / 2
	case types.Numeric:
		d := numeric.FromInt64(v*25 - int64(domain))
		d.Scale = 2
		return d
	case types.UUID:
		return append(bytes.Repeat([]byte{1}, 15), byte(v))
	}
	return fmt.Sprintf("s%d", v*v*v)
}

// makeRel makes a relation of random rows and returns them too.
func makeRel(r *rand.Rand, n, domain int, nulls bool, ts ...types.Type) (*memRel, []row) {
	rel := &memRel{schema: schemaOf(ts...)}
	var rows []row
	for len(rows) < n || len(rel.batches) == 0 {
		k := min(n-len(rows), 1+r.IntN(max(1, n/3+1)))
		b := &vec.Batch{Schema: rel.schema, N: k}
		part := make([]row, k)
		for i := range part {
			for _, t := range ts {
				part[i] = append(part[i], randomDatum(r, t, domain, nulls))
			}
		}
		for c, t := range ts {
			ds := make([]types.Datum, k)
			for i := range part {
				ds[i] = part[i][c]
			}
			a := vec.FromDatums(t, ds)
			if t.Kind == types.Text && r.IntN(2) == 0 {
				a = toDict(a)
			}
			b.Cols = append(b.Cols, a)
		}
		rel.batches = append(rel.batches, b)
		rows = append(rows, part...)
		if n == 0 {
			break
		}
	}
	return rel, rows
}

func toDict(a arrow.Array) arrow.Array {
	s := vec.ViewStr(a)
	codes := map[string]int32{}
	var dict []types.Datum
	idx := make([]int32, a.Len())
	for i := range idx {
		if a.IsNull(i) {
			continue
		}
		v := string(s.At(i))
		c, ok := codes[v]
		if !ok {
			c = int32(len(dict))
			codes[v] = c
			dict = append(dict, v)
		}
		idx[i] = c
	}
	if len(dict) == 0 {
		return a
	}
	return vec.MakeDict(idx, vec.ValidCopy(a), vec.FromDatums(types.Of(types.Text), dict))
}

var nextID int

func base(out types.Schema) plan.Base {
	nextID++
	return plan.Base{ID: nextID, Out: out, E: plan.Estimate{Rows: 1e6, Width: 8}}
}

func scanOf(rel *memRel) *plan.Scan { return &plan.Scan{Base: base(rel.schema), Rel: rel} }

func slot(n plan.Node, i int) *plan.Slot { return &plan.Slot{Index: i, T: n.Schema()[i].Type} }

func lit(t types.Type, v types.Datum) *plan.Const { return &plan.Const{Value: v, T: t} }

func operator_(t testing.TB, name string, a, b types.Type) *function.Overload {
	for _, o := range function.LookupOperator(name, false) {
		if len(o.Args) == 2 && o.Args[0].Kind == a.Kind && o.Args[1].Kind == b.Kind {
			return o
		}
	}
	t.Fatalf("no operator %v %s %v", a, name, b)
	return nil
}

func op(t testing.TB, name string, a, b plan.Expr) *plan.Call {
	o := operator_(t, name, a.Type(), b.Type())
	ret := o.Ret
	if o.RetFn != nil {
		ret = o.RetFn([]types.Type{a.Type(), b.Type()})
	}
	return &plan.Call{F: o, Args: []plan.Expr{a, b}, T: ret, Pos: -1}
}

func aggOf(t testing.TB, name string, args ...plan.Expr) plan.AggCall {
	for _, d := range aggregate.Lookup(name) {
		if len(d.Args) != len(args) {
			continue
		}
		ok := true
		var ts []types.Type
		for i, a := range d.Args {
			k := args[i].Type().Kind
			ok = ok && (a.Kind == k || a.Kind == types.Any || a.Kind == types.AnyElement || a.Kind == types.AnyNonArray || a.Kind == types.AnyCompatible)
			ts = append(ts, args[i].Type())
		}
		if !ok {
			continue
		}
		ret := d.Ret
		if d.RetFn != nil {
			ret = d.RetFn(ts)
		}
		return plan.AggCall{Def: d, Args: args, T: ret}
	}
	t.Fatalf("no aggregate %s/%d", name, len(args))
	return plan.AggCall{}
}

// text renders a value so that equal values look equal.
func text(d types.Datum) string {
	switch d := d.(type) {
	case nil:
		return "NULL"
	case *numeric.Dec:
		return d.TrimScale().String()
	case []types.Datum:
		var s []string
		for _, e := range d {
			s = append(s, text(e))
		}
		return "{" + strings.Join(s, ",") + "}"
	case float64:
		if d == 0 {
			return "0"
		}
	}
	return fmt.Sprint(d)
}

func rowText(r row) string {
	var s []string
	for _, d := range r {
		s = append(s, text(d))
	}
	return strings.Join(s, "|")
}

func rowsText(rows []row, ordered bool) []string {
	var out []string
	for _, r := range rows {
		out = append(out, rowText(r))
	}
	if !ordered {
		sort.Strings(out)
	}
	return out
}

type config struct{ workers, rows, groups int }

func (c config) String() string {
	return fmt.Sprintf("workers=%d rows=%d groups=%d", c.workers, c.rows, c.groups)
}

func configs(r *rand.Rand) []config {
	return []config{{1, 2048, 0}, {1, 1, 0}, {2, 3, 4}, {8, 1 + r.IntN(50), 2}, {2, 1 + r.IntN(4000), 0}}
}

// collect runs a plan and returns its rows. It checks that memory is given back.
func collect(t testing.TB, f *plan.Fragment, params []types.Datum, c config) ([]row, error) {
	t.Helper()
	acc := mem.NewRoot("max_memory", 0).Child("work_mem", 1<<30)
	slots := mem.NewSlots(2)
	q, err := Start(context.Background(), f, params, &Env{Account: acc, Slots: slots, Workers: c.workers, VectorSize: c.rows, groups: c.groups})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if acc.Used() != 0 {
			t.Errorf("%d bytes are still charged after Close", acc.Used())
		}
	}()
	var out []row
	for {
		b, err := q.Next(context.Background())
		if err != nil {
			return nil, err
		}
		if b == nil {
			return out, nil
		}
		if b.Size() == 0 {
			t.Error("empty batch")
		}
		eachRow(b, func(i int) {
			var r row
			for k, col := range b.Cols {
				r = append(r, vec.DatumAt(col, f.Root.Schema()[k].Type, i))
			}
			out = append(out, r)
		})
	}
}

// expect runs n under c and compares.
func expect(t *testing.T, c config, n plan.Node, want []row, ordered bool, what string) {
	t.Helper()
	got, err := collect(t, &plan.Fragment{Root: n}, nil, c)
	if err != nil {
		t.Fatalf("%s (%v): %v", what, c, err)
	}
	same(t, c, got, want, ordered, what)
}

func same(t *testing.T, c config, got, want []row, ordered bool, what string) {
	t.Helper()
	g, w := rowsText(got, ordered), rowsText(want, ordered)
	if slices.Equal(g, w) {
		return
	}
	for i := range max(len(g), len(w)) {
		a, b := "(none)", "(none)"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Fatalf("%s (%v): %d rows, want %d; row %d is %s, want %s", what, c, len(g), len(w), i, a, b)
		}
	}
}

// less orders datums as SQL does, NULL last.
func less(a, b types.Datum) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	switch x := a.(type) {
	case int64:
		y := b.(int64)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	case float64:
		y := b.(float64)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	case bool:
		return less(b2i(x), b2i(b.(bool)))
	case *numeric.Dec:
		return numeric.Cmp(x, b.(*numeric.Dec))
	case []byte:
		return bytes.Compare(x, b.([]byte))
	}
	return strings.Compare(a.(string), b.(string))
}

func b2i(b bool) types.Datum {
	if b {
		return int64(1)
	}
	return int64(0)
}

// noLeaks fails when goroutines outlive the test.
func noLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 200 {
			if runtime.NumGoroutine() <= before {
				return
			}
			runtime.Gosched()
			time.Sleep(time.Millisecond)
		}
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
	})
}

func batchOf(s types.Schema, rows []row) *vec.Batch {
	b := &vec.Batch{Schema: s, N: len(rows)}
	for c, f := range s {
		ds := make([]types.Datum, len(rows))
		for i := range rows {
			ds[i] = rows[i][c]
		}
		b.Cols = append(b.Cols, vec.FromDatums(f.Type, ds))
	}
	return b
}
