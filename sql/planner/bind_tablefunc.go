package planner

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

func (p *planner) bindFuncRef(s *scope, r *ast.FuncRef) (plan.LNode, []*item, error) {
	if len(r.Funcs) == 1 {
		if f, ok := r.Funcs[0].Call.(*ast.FuncCall); ok {
			if opt, ok := incremental[f.Name.Last()]; ok {
				return p.bindIncremental(s, r, f, opt)
			}
			if view, ok := catalogFunctions[f.Name.Last()]; ok && len(f.Args) == 0 && !r.Ordinality && (len(f.Name) == 1 || f.Name[0].Name == "pg_catalog") {
				return p.bindCatalogFunction(s, r, f, view)
			}
		}
	}
	old := s.lateral
	s.lateral = 1 // functions in FROM are lateral without saying so
	defer func() { s.lateral = old }()

	it := &item{}
	node := &plan.LTableFunc{Ordinality: r.Ordinality}
	var names []string
	var typs []types.Type
	scalarCols := 0
	plain := true // no set-returning function among them
	for _, f := range expandUnnest(r) {
		var defs []*ast.ColDef
		defs = append(defs, f.ColDefs...)
		if len(defs) == 0 && r.Alias != nil {
			defs = r.Alias.ColDefs
		}
		c, isSet, err := p.tableCall(s, f, defs)
		if err != nil {
			return nil, nil, err
		}
		plain = plain && !isSet
		node.Calls = append(node.Calls, c)
		scalar := len(c.T) == 1 && (c.F == nil || c.F.SetColumns == nil) && !isRow(c.T[0].Type)
		for _, fld := range c.T {
			n := fld.Name
			if scalar {
				n = funcItemName(f)
				if r.Alias != nil && !r.Alias.Name.Empty() && len(r.Funcs) == 1 && !r.RowsFrom {
					n = r.Alias.Name.Name
				}
			}
			names, typs = append(names, n), append(typs, fld.Type.WithNotNull(false))
		}
		// One OUT parameter is the result itself, a list of columns makes a record of it.
		if len(c.T) == 1 && len(defs) == 0 && !isRow(c.T[0].Type) {
			scalarCols++
		}
	}
	it.scalar = scalarCols == 1 && len(typs) == 1 && !r.Ordinality
	it.name = funcItemName(r.Funcs[0])
	if r.Ordinality {
		names, typs = append(names, "ordinality"), append(typs, types.Of(types.Int8).WithNotNull(true))
	}
	for i, t := range typs {
		col := p.newCol(names[i], t, colInfo{scope: s, item: it})
		node.Out = append(node.Out, col)
		it.cols = append(it.cols, scopeCol{name: names[i], e: col.Ref()})
	}
	if r.Alias != nil && len(r.Alias.ColDefs) > 0 {
		a := *r.Alias
		a.Columns = nil
		if err := p.applyAlias(it, &a, "table"); err != nil {
			return nil, nil, err
		}
	} else if err := p.applyAlias(it, r.Alias, "table"); err != nil {
		return nil, nil, err
	}
	p.nameCols(it)
	node.Alias = it.name
	var out plan.LNode = node
	if plain {
		row := &plan.LValues{Rows: [][]plan.Expr{nil}, Out: node.Out}
		for _, c := range node.Calls {
			row.Rows[0] = append(row.Rows[0], c.Args...)
		}
		if r.Ordinality {
			row.Rows[0] = append(row.Rows[0], &plan.Const{Value: int64(1), T: types.Of(types.Int8).WithNotNull(true)})
		}
		out = row
	}
	return out, p.addItem(s, it), nil
}

// catalogFunctions are functions that give the rows of a view of pg_catalog, column
// by column.
var catalogFunctions = map[string]string{
	"pg_show_all_settings": "pg_settings", "pg_cursor": "pg_cursors", "pg_prepared_statement": "pg_prepared_statements",
	"pg_lock_status": "pg_locks", "pg_timezone_names": "pg_timezone_names", "pg_timezone_abbrevs": "pg_timezone_abbrevs",
	"pg_show_all_file_settings": "pg_file_settings", "pg_hba_file_rules": "pg_hba_file_rules", "pg_config": "pg_config",
	"pg_get_shmem_allocations": "pg_shmem_allocations", "pg_get_backend_memory_contexts": "pg_backend_memory_contexts",
}

// bindCatalogFunction binds such a function as the view under the function's name.
func (p *planner) bindCatalogFunction(s *scope, r *ast.FuncRef, f *ast.FuncCall, view string) (plan.LNode, []*item, error) {
	a := &ast.Alias{Name: ast.Ident{Name: f.Name.Last(), Quoted: true}}
	if r.Alias != nil {
		n := *r.Alias
		if n.Name.Empty() {
			n.Name = a.Name
		}
		a = &n
	}
	name := ast.Name{{Name: "pg_catalog", Pos: f.Pos}, {Name: view, Pos: f.Pos}}
	return p.bindTable(s, &ast.TableName{Loc: r.Loc, Name: name, Alias: a})
}

// bindIncremental binds a function that reads a table's changes as the table with the
// option that the function stands for. A last argument more is the mode
// (incremental-between-scan-mode).
func (p *planner) bindIncremental(s *scope, r *ast.FuncRef, f *ast.FuncCall, option string) (plan.LNode, []*item, error) {
	fn := f.Name.Last()
	want := 3
	if option == "incremental-to-auto-tag" {
		want = 2
	}
	most := want
	if want == 3 {
		most++
	}
	if len(f.Args) < want || len(f.Args) > most {
		return nil, nil, p.errAt(pgerr.UndefinedFunction, f.Pos, "%s takes a table name and %d more arguments", fn, want-1).
			WithHint("For example, %s('orders', 3, 5), or with a mode: %s('orders', 3, 5, 'diff').", fn, fn)
	}
	var vals []string
	for i, a := range f.Args {
		x, err := p.in(&scope{}, inConst, a)
		if err != nil {
			return nil, nil, err
		}
		time := option == "incremental-between-timestamp" && (i == 1 || i == 2) && !x.Type().IsNumber()
		if time {
			if x, err = p.mustCoerce(x, types.Of(types.TimestampTZ), function.Explicit, p.loc(a)); err != nil {
				return nil, nil, err
			}
		}
		v, err := p.evalStable(x)
		if err != nil && !errors.Is(err, errCannotEval) {
			return nil, nil, p.at(err, p.loc(a))
		}
		if err != nil || v == nil {
			return nil, nil, p.errAt(pgerr.InvalidParameterValue, p.loc(a), "arguments of %s must be constants", fn)
		}
		if us, ok := v.(int64); ok && time { // milliseconds, towards the past
			ms := us / 1000
			if us < 0 && us%1000 != 0 {
				ms--
			}
			vals = append(vals, strconv.FormatInt(ms, 10))
			continue
		}
		vals = append(vals, fmt.Sprint(v))
	}
	name, ok := nameOf(vals[0], f.Pos)
	if !ok {
		return nil, nil, p.errAt(pgerr.InvalidName, p.loc(f.Args[0]), "invalid name syntax")
	}
	opts := []*ast.Option{{Name: option, Value: &ast.String{Value: strings.Join(vals[1:want], ",")}}}
	if len(vals) > want {
		opts = append(opts, &ast.Option{Name: "incremental-between-scan-mode", Value: &ast.String{Value: vals[want]}})
	}
	t := &ast.TableName{Loc: r.Loc, Name: name, Alias: r.Alias, Hints: []*ast.Hint{{Name: "OPTIONS", Options: opts}}}
	return p.bindTable(s, t)
}

// nameOf reads a table's name from text: parts between dots, in double quotes or
// backticks where they hold a dot or are to be taken as they are.
func nameOf(s string, pos ast.Pos) (ast.Name, bool) {
	var out ast.Name
	for {
		id := ast.Ident{Pos: pos}
		if s != "" && (s[0] == '"' || s[0] == '`') {
			end := strings.IndexByte(s[1:], s[0])
			if end < 0 {
				return nil, false
			}
			id.Name, id.Quoted, s = s[1:1+end], true, s[end+2:]
			if s != "" && s[0] != '.' && s[0] != '$' {
				return nil, false
			}
		}
		rest, more := "", false
		if at := strings.IndexByte(s, '.'); at >= 0 {
			s, rest, more = s[:at], s[at+1:], true
		}
		if id.Name += s; id.Name == "" {
			return nil, false
		}
		out = append(out, id)
		if !more {
			return out, len(out) <= 3
		}
		s = rest
	}
}

// expandUnnest turns unnest(a, b) into ROWS FROM (unnest(a), unnest(b)).
func expandUnnest(r *ast.FuncRef) []*ast.FuncItem {
	var out []*ast.FuncItem
	for _, f := range r.Funcs {
		c, ok := f.Call.(*ast.FuncCall)
		if !ok || c.Name.Last() != "unnest" || len(c.Args) < 2 {
			out = append(out, f)
			continue
		}
		for _, a := range c.Args {
			one := *c
			one.Args = []ast.Expr{a}
			out = append(out, &ast.FuncItem{Loc: f.Loc, Call: &one})
		}
	}
	return out
}

func funcItemName(f *ast.FuncItem) string { return figureName(f.Call) }

// tableCall binds one function of FROM. A function that returns no set is a row
// of constants: F is nil and Args are the values.
func (p *planner) tableCall(s *scope, f *ast.FuncItem, defs []*ast.ColDef) (plan.LSetCall, bool, error) {
	var call plan.LSetCall
	old := s.kind
	s.kind = inFromFunc
	defer func() { s.kind = old }()
	fc, ok := f.Call.(*ast.FuncCall)
	if ok && fc.Over == nil && !fc.Distinct {
		args, locs, names, err := p.callArgs(s, fc)
		if err != nil {
			return call, false, err
		}
		c, castTo, args, err := p.resolveCall(fc.Name.Last(), fc, args, locs, names)
		if err != nil {
			return call, false, err
		}
		if castTo == nil && c.ov != nil && c.ov.Set != nil {
			o := c.ov
			args, t, err := p.finishArgs(c, args, locs, o.ExactArgs, o.RetFn, o.Ret, "function "+o.Name, fc.Pos)
			if err != nil {
				return call, false, err
			}
			if c.order != nil {
				args = reorder(args, c.order, len(o.Args)-c.ndefault, o.Args)
			}
			if o.Volatility == function.Volatile {
				p.volatile = true
			}
			sch, _ := setResult(o, argTypes(args), t)
			if isRow(t) && o.SetColumns == nil && len(t.Fields) > 0 {
				sch = types.Schema(t.Fields)
			}
			if len(defs) > 0 {
				if o.SetColumns != nil || t.Kind != types.Record {
					if t.Kind != types.Record {
						return call, false, p.errAt(pgerr.SyntaxError, fc.Pos, "a column definition list is only allowed for functions returning \"record\"")
					}
				}
				sch = nil
				for _, d := range defs {
					dt, err := p.sqlType(d.Type)
					if err != nil {
						return call, false, err
					}
					sch = append(sch, types.Field{ID: -1, Name: d.Name.Name, Type: dt})
				}
			} else if t.Kind == types.Record && o.SetColumns == nil && len(t.Fields) == 0 {
				return call, false, p.errAt(pgerr.SyntaxError, fc.Pos, "a column definition list is required for functions returning \"record\"")
			}
			return plan.LSetCall{F: o, Args: args, T: sch, Pos: int32(fc.Pos)}, true, nil
		}
	}
	x, err := p.expr(s, f.Call)
	if err != nil {
		return call, false, err
	}
	if x, err = p.resolveUnknown(x, f.Pos); err != nil {
		return call, false, err
	}
	call.Args = []plan.Expr{x}
	call.T = types.Schema{{ID: -1, Name: figureName(f.Call), Type: x.Type()}}
	if isRow(x.Type()) && len(x.Type().Fields) > 0 {
		call.Args, call.T = p.rowElems(x), types.Schema(x.Type().Fields)
	}
	return call, false, nil
}

// callArgs binds the plain arguments of a call.
func (p *planner) callArgs(s *scope, e *ast.FuncCall) (args []plan.Expr, locs []ast.Pos, names []string, err error) {
	for _, a := range e.Args {
		if n, ok := a.(*ast.NamedArg); ok {
			names = append(names, n.Name.Name)
		}
		x, err := p.expr(s, a)
		if err != nil {
			return nil, nil, nil, err
		}
		args, locs = append(args, x), append(locs, p.loc(a))
	}
	return args, locs, names, nil
}
