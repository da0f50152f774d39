package engine

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// explainOptions are the options of EXPLAIN with PostgreSQL's defaults.
type explainOptions struct {
	analyze, verbose, buffers, costs, timing, summary, settings bool
	format                                                      string
}

func readExplain(st *ast.Explain) (explainOptions, error) {
	o := explainOptions{costs: true, format: "text"}
	timing, summary := -1, -1
	num := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	for _, opt := range st.Options {
		on, err := optionBool(opt)
		if err != nil && opt.Name != "format" && opt.Name != "serialize" {
			return o, err
		}
		switch opt.Name {
		case "analyze", "analyse":
			o.analyze = on
		case "verbose":
			o.verbose = on
		case "costs":
			o.costs = on
		case "buffers":
			o.buffers = on
		case "settings":
			o.settings = on
		case "wal", "generic_plan", "memory", "serialize":
		case "timing":
			timing = num(on)
		case "summary":
			summary = num(on)
		case "format":
			switch f := optionText(opt); f {
			case "text", "json":
				o.format = f
			case "xml", "yaml":
				return o, pgerr.New(pgerr.FeatureNotSupported, "EXPLAIN (FORMAT %s) is not supported yet", f)
			default:
				return o, pgerr.New(pgerr.InvalidParameterValue, "unrecognized value for EXPLAIN option %q: %q", "format", f)
			}
		default:
			return o, pgerr.New(pgerr.SyntaxError, "unrecognized EXPLAIN option %q", opt.Name)
		}
	}
	o.timing, o.summary = timing == 1 || timing < 0 && o.analyze, summary == 1 || summary < 0 && o.analyze
	if timing == 1 && !o.analyze {
		return o, pgerr.New(pgerr.InvalidParameterValue, "EXPLAIN option TIMING requires ANALYZE")
	}
	return o, nil
}

func explainColumns(st *ast.Explain) []Column {
	t := types.Text
	if o, err := readExplain(st); err == nil && o.format == "json" {
		t = types.JSON
	}
	return []Column{{Name: "QUERY PLAN", Type: types.Of(t)}}
}

// runExplain is EXPLAIN [ANALYZE] of a query or a data-changing statement.
func (s *Session) runExplain(ctx, life context.Context, p *prepared, st *ast.Explain, args []types.Datum) (*running, error) {
	o, err := readExplain(st)
	if err != nil {
		return nil, err
	}
	stmt, pl := st.Stmt, p.plan
	if x, ok := st.Stmt.(*ast.Execute); ok {
		// What is explained is the statement that it names, with its parameters.
		impl, vals, ps, err := s.executed(ctx, p, x)
		if err != nil {
			return nil, err
		}
		if o.analyze && impl.stmt != nil {
			if err := s.admit(impl.stmt); err != nil {
				return nil, err
			}
		}
		if impl, err = s.refresh(ctx, impl, ps); err != nil {
			return nil, err
		}
		p, stmt, pl, args = impl, impl.stmt, impl.plan, vals
	}
	if !isQuery(stmt) && !changesData(stmt) {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "EXPLAIN of %s is not supported yet", commandName(stmt))
	}
	if pl == nil {
		if pl, err = s.plan(ctx, &prepared{stmt: stmt, text: p.text, fixed: p.fixed, declared: p.declared}, nil); err != nil {
			return nil, err
		}
	}
	if err := s.permit(ctx, pl); err != nil {
		return nil, err
	}
	explain := s.explain
	if pl.mod != nil {
		explain = s.explainModify
	}
	lines, err := explain(ctx, life, pl, args, o)
	if err != nil {
		return nil, err
	}
	rows := make([][]types.Datum, len(lines))
	for i, l := range lines {
		rows[i] = []types.Datum{l}
	}
	return rowsOf(explainColumns(st), fixedTag("EXPLAIN"), rows), nil
}
