package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/engine/procedure"
	"github.com/paimon-sql/paimon-sql/exec/vectorized"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/parser"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// findProcedure returns the procedure that CALL names.
func findProcedure(st *ast.Call) (*procedure.Procedure, error) {
	name := st.Func.Name
	last := name[len(name)-1].Name
	inSys := len(name) > 1 && name[len(name)-2].Name == "sys"
	p, known := procedure.Find(last)
	switch {
	case inSys && p != nil:
		return p, nil
	case inSys && known:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "procedure sys.%s is not supported yet", strings.ToLower(last))
	}
	e := pgerr.New(pgerr.UndefinedFunction, "procedure %s does not exist", name.String())
	if known {
		return nil, e.WithHint("Perhaps you meant sys.%s.", strings.ToLower(last))
	}
	var names []string
	for _, p := range procedure.All() {
		names = append(names, p.Name)
	}
	return nil, e.WithHint("The procedures of schema sys are %s.", strings.Join(names, ", "))
}

func procedureColumns(p *procedure.Procedure) []Column {
	cols := make([]Column, len(p.Columns))
	for i, f := range p.Columns {
		cols[i] = Column{Name: f.Name, Type: f.Type}
	}
	return cols
}

// runCall is CALL.
func (s *Session) runCall(ctx context.Context, pr *prepared, st *ast.Call, args []types.Datum) (*running, error) {
	p, err := findProcedure(st)
	if err != nil {
		return nil, err
	}
	if err := s.outsideBlock("CALL"); err != nil {
		return nil, err
	}
	actual, err := s.callArgs(ctx, pr, st, args)
	if err != nil {
		return nil, err
	}
	v, err := p.Bind(actual, s.TextStyle())
	if err != nil {
		return nil, err
	}
	h := &procedureHost{s: s, acc: s.eng.root.Child("work_mem", s.set.use().workMem)}
	defer h.acc.Close()
	rows, err := p.Run(ctx, h, v)
	if err != nil {
		return nil, err
	}
	return rowsOf(procedureColumns(p), fixedTag("CALL"), rows), nil
}

// callArgs evaluates the arguments of a call and turns them into text.
func (s *Session) callArgs(ctx context.Context, pr *prepared, st *ast.Call, args []types.Datum) ([]procedure.Actual, error) {
	f := st.Func
	if f.Star || f.Distinct || f.Variadic || len(f.OrderBy) > 0 || f.Filter != nil || f.Over != nil {
		return nil, pgerr.New(pgerr.SyntaxError, "a procedure takes plain arguments only")
	}
	out := make([]procedure.Actual, len(f.Args))
	o := s.planOptions()
	o.ParamTypes = pr.declared
	for i, e := range f.Args {
		if n, ok := e.(*ast.NamedArg); ok {
			out[i].Name = n.Name.Name
			e = n.Value
		}
		x, err := planner.PlanExpr(ctx, e, pr.text, types.Type{}, o)
		if err != nil {
			return nil, err
		}
		d, err := vectorized.EvalConst(ctx, x, args, s.env())
		if err != nil {
			return nil, err
		}
		if d == nil {
			out[i].Null = true
			continue
		}
		out[i].Text = string(pgtext.AppendDatum(nil, x.Type(), d, &pgtext.Style{Location: s.TextStyle().Location}))
	}
	return out, nil
}

// procedureHost is the engine as procedures see it.
type procedureHost struct {
	s   *Session
	acc *mem.Account
	rel catalog.TableInfo // of the last Table
	// maintains: it has been asked whether the user may, by VACUUM or by Tables.
	maintains bool
	// shown is the compaction of the last Track.
	shown *tracked
}

var _ procedure.Host = (*procedureHost)(nil)

// Table implements procedure.Host.
func (h *procedureHost) Table(ctx context.Context, text string) (*procedure.Table, error) {
	name, err := parseName(text)
	if err != nil {
		return nil, err
	}
	rel, err := h.s.newResolver().Relation(ctx, name, resolveDefaults(h.s))
	if err != nil {
		return nil, err
	}
	t, ok := rel.(catalog.TableInfo)
	if !ok {
		return nil, pgerr.New(pgerr.WrongObjectType, "%q is not a table", rel.Name())
	}
	store, ok := t.Table().(*table.FileStore)
	if !ok {
		return nil, pgerr.New(pgerr.WrongObjectType, "%q is not a table that procedures work on", rel.Name())
	}
	if !h.maintains {
		if err := h.s.mustOwn(ctx, rel); err != nil {
			return nil, err
		}
	}
	h.rel = t
	return &procedure.Table{Name: rel.Schema() + "." + rel.Name(), Branch: t.At().Branch, Store: store}, nil
}

// Exclusive implements procedure.Host.
func (h *procedureHost) Exclusive(ctx context.Context, t *procedure.Table) error {
	_, err := h.s.lockTable(ctx, tableKey{dir: t.Store.Dir(), branch: t.Branch}, t.Name, lockExclusive, false)
	return err
}

// Style implements procedure.Host.
func (h *procedureHost) Style() *pgtext.Style { return h.s.TextStyle() }

// Account implements procedure.Host.
func (h *procedureHost) Account() *mem.Account { return h.acc }

// Track implements procedure.Host.
func (h *procedureHost) Track(t *procedure.Table) (progress func(done, total int64), end func()) {
	h.shown = h.s.eng.maint.track(h.s.pid, t.Name, h.rel.OID())
	return h.shown.progress, h.shown.end
}

// Publish implements procedure.Host.
func (h *procedureHost) Publish(ctx context.Context, t *procedure.Table) (done func(), err error) {
	done, err = h.s.eng.lockFiles(ctx, tableKey{dir: t.Store.Dir(), branch: t.Branch})
	if err != nil || h.shown == nil {
		return done, err
	}
	return h.shown.publishing(done, nil)
}

// Changed implements procedure.Host: caches go by the snapshots they find.
func (h *procedureHost) Changed(*procedure.Table) {}

// Tables implements procedure.Host.
func (h *procedureHost) Tables(ctx context.Context, keep func(schema, name string) bool) ([]string, error) {
	if err := h.s.mustOwnDatabase(ctx); err != nil {
		return nil, err
	}
	h.maintains = true
	cat := h.s.eng.cat
	schemas, err := cat.Schemas(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, sc := range schemas {
		if systemSchema(sc) {
			continue
		}
		tables, err := cat.Tables(ctx, sc)
		if err != nil {
			return nil, err
		}
		for _, t := range tables {
			if !keep(sc, t) {
				continue
			}
			rel, err := cat.Resolve(ctx, sc, t, catalog.ResolveOptions{})
			if err == nil && rel.Kind() == 'v' {
				continue
			}
			out = append(out, ast.QuoteIdent(sc)+"."+ast.QuoteIdent(t))
		}
	}
	return out, nil
}

// partition is one of a table's partitions.
type partition struct {
	vals []types.Datum
	// newest is when a file was added to it last, in milliseconds since 1970.
	newest int64
}

// Partitions implements procedure.Host.
func (h *procedureHost) Partitions(ctx context.Context, t *procedure.Table, ch procedure.Choice) ([][]byte, error) {
	sch, err := t.Store.Schema(ctx, t.At())
	if err != nil {
		return nil, err
	}
	if len(sch.PartitionKeys) == 0 {
		return nil, pgerr.New(pgerr.WrongObjectType, "table %q is not partitioned", h.rel.Name())
	}
	fields := make(types.Schema, len(sch.PartitionKeys))
	for i, k := range sch.PartitionKeys {
		fields[i] = sch.Fields[sch.Fields.Index(k)]
	}
	parts, err := h.partitionsOf(ctx, t, fields)
	if err != nil {
		return nil, err
	}
	n := len(parts)
	b := &vec.Batch{Schema: fields, N: n, Cols: make([]arrow.Array, len(fields))}
	for c := range fields {
		col := make([]types.Datum, n)
		for i := range parts {
			col[i] = parts[i].vals[c]
		}
		b.Cols[c] = vec.FromDatums(fields[c].Type, col)
	}
	keep := make([]bool, n)
	switch {
	case ch.Where != "":
		err = h.where(ctx, ch.Where, fields, b, keep)
	case ch.Specs != nil:
		err = h.named(ch.Specs, fields, parts, keep)
	default:
		for i := range keep {
			keep[i] = true
		}
	}
	if err != nil {
		return nil, err
	}
	busy := time.Now().Add(-ch.Idle).UnixMilli()
	enc := binrow.NewArrowEncoder(fields.Types(), b.Cols)
	out := [][]byte{}
	for i, k := range keep {
		if !k || ch.Idle > 0 && parts[i].newest > busy {
			continue
		}
		img, err := enc.Row(i)
		if err != nil {
			return nil, err
		}
		out = append(out, slices.Clone(img))
	}
	return out, nil
}

// partitionsOf returns the table's partitions.
func (h *procedureHost) partitionsOf(ctx context.Context, t *procedure.Table, fields types.Schema) ([]partition, error) {
	p, err := t.Store.Plan(ctx, table.Scan{At: t.At(), Limit: -1})
	if err != nil {
		return nil, err
	}
	var out []partition
	seen := map[string]int{}
	for _, sp := range p.Splits {
		if len(sp.Partition) != len(fields) {
			continue
		}
		var key strings.Builder
		for i, d := range sp.Partition {
			if d != nil {
				key.Write(pgtext.AppendDatum(nil, fields[i].Type, d, nil))
				key.WriteByte(1)
			}
			key.WriteByte(0)
		}
		n, ok := seen[key.String()]
		if !ok {
			n = len(out)
			seen[key.String()] = n
			out = append(out, partition{vals: sp.Partition})
		}
		for _, f := range sp.Files {
			out[n].newest = max(out[n].newest, f.Meta.CreationMillis)
		}
		for _, sec := range sp.Sections {
			for _, run := range sec {
				for _, f := range run {
					out[n].newest = max(out[n].newest, f.Meta.CreationMillis)
				}
			}
		}
	}
	return out, nil
}

// where marks the partitions that a condition chooses.
func (h *procedureHost) where(ctx context.Context, text string, fields types.Schema, b *vec.Batch, keep []bool) error {
	e, err := parser.ParseExpr(text)
	if err != nil {
		return unplaced(err)
	}
	x, err := planner.PlanExprOver(ctx, e, text, fields, h.rel.Name(), types.Of(types.Bool), h.s.planOptions())
	if err != nil {
		var pe *pgerr.Error
		if errors.As(err, &pe) && pe.Code == pgerr.UndefinedColumn {
			pe.WithDetail("The condition may name partition columns only: %s.", strings.Join(names(fields), ", "))
		}
		return unplaced(err)
	}
	es, err := vectorized.NewExprs([]plan.Expr{x}, nil, h.s.env(), h.acc)
	if err != nil {
		return err
	}
	if b.N == 0 {
		return nil
	}
	for from := 0; from < b.N; from += vec.MaxRows / 2 {
		part := b
		if b.N > vec.MaxRows/2 {
			to := min(from+vec.MaxRows/2, b.N)
			part = &vec.Batch{Schema: fields, N: to - from}
			for _, a := range b.Cols {
				part.Cols = append(part.Cols, vec.Slice(a, from, to))
			}
		}
		sel, err := es.Select(ctx, 0, part)
		if err != nil {
			return err
		}
		for _, i := range sel {
			keep[from+int(i)] = true
		}
	}
	return nil
}

// named marks the partitions that have the values of a specification.
func (h *procedureHost) named(specs []map[string]string, fields types.Schema, parts []partition, keep []bool) error {
	for _, spec := range specs {
		want := make([]types.Datum, len(fields))
		given := make([]bool, len(fields))
		for k, text := range spec {
			i := fields.Index(k)
			if i < 0 {
				return pgerr.New(pgerr.UndefinedColumn, "table %q has no partition column %q", h.rel.Name(), k)
			}
			given[i] = true
			if text == table.DefaultPartitionName {
				continue // NULL
			}
			v, err := pgtext.Parse(fields[i].Type.SQL(), text, h.Style())
			if err != nil {
				return err
			}
			want[i] = v
		}
		for r := range parts {
			ok := true
			for i, d := range parts[r].vals {
				switch {
				case !given[i]:
				case d == nil || want[i] == nil:
					ok = ok && d == nil && want[i] == nil
				default:
					c, comparable := predicate.Compare(fields[i].Type, d, want[i])
					ok = ok && comparable && c == 0
				}
			}
			keep[r] = keep[r] || ok
		}
	}
	return nil
}

func names(s types.Schema) []string {
	out := make([]string, len(s))
	for i, f := range s {
		out[i] = f.Name
	}
	return out
}

// unplaced drops the position of an error: it points into an argument, not into
// the statement.
func unplaced(err error) error {
	var pe *pgerr.Error
	if errors.As(err, &pe) {
		return pe.WithPosition(0)
	}
	return err
}
