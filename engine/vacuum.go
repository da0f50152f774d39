package engine

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/engine/procedure"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// vacuumOptions are the options of VACUUM that mean something here.
type vacuumOptions struct{ full, verbose, analyze bool }

// readVacuum reads what stands between VACUUM and the tables. What is about PostgreSQL's
// pages and indexes has no counterpart and is accepted.
func readVacuum(st *ast.Vacuum) (o vacuumOptions, err error) {
	var parallel, unskipped bool
	for _, opt := range st.Options {
		switch name := strings.ToLower(opt.Name); name {
		case "full":
			o.full, err = optionBool(opt)
		case "verbose":
			o.verbose, err = optionBool(opt)
		case "analyze", "analyse":
			o.analyze, err = optionBool(opt)
		case "disable_page_skipping":
			unskipped, err = optionBool(opt)
		case "parallel":
			if n, bad := strconv.Atoi(optionText(opt)); opt.Value == nil || bad != nil || n < 0 || n > 1024 {
				err = pgerr.New(pgerr.SyntaxError, "parallel workers for vacuum must be between 0 and 1024")
			} else {
				parallel = n > 0
			}
		case "index_cleanup":
			if !strings.EqualFold(optionText(opt), "auto") {
				_, err = optionBool(opt)
			}
		case "freeze", "skip_locked", "process_main", "process_toast", "truncate":
			_, err = optionBool(opt)
		default:
			return o, pgerr.New(pgerr.SyntaxError, "unrecognized VACUUM option \"%s\"", opt.Name)
		}
		if err != nil {
			return o, err
		}
	}
	switch {
	case o.full && parallel:
		return o, pgerr.New(pgerr.FeatureNotSupported, "VACUUM FULL cannot be performed in parallel")
	case o.full && unskipped:
		return o, pgerr.New(pgerr.FeatureNotSupported, "VACUUM option DISABLE_PAGE_SKIPPING cannot be used with FULL")
	}
	for _, t := range st.Tables {
		if len(t.Columns) > 0 && !o.analyze {
			return o, pgerr.New(pgerr.FeatureNotSupported, "ANALYZE option must be specified when a column list is provided")
		}
	}
	return o, nil
}

// runVacuum is VACUUM. What it does to a Paimon table is the compaction that is due, or
// with FULL a full one: sys.compact does the same. Old snapshots expire by the options of
// the table, not here. With ANALYZE each table is analyzed behind it.
func (s *Session) runVacuum(ctx context.Context, st *ast.Vacuum, out ResultSink) (*running, error) {
	o, err := readVacuum(st)
	if err != nil {
		return nil, err
	}
	if err := s.outsideBlock("VACUUM"); err != nil {
		return nil, err
	}
	if len(st.Tables) == 0 {
		err := s.everyTable(ctx, out, func(_ *table.FileStore, rel catalog.TableInfo) error {
			return s.vacuum(ctx, rel, o, out)
		})
		if err == nil && o.analyze {
			err = s.analyzeAll(ctx, o.verbose, out)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, t := range st.Tables {
		rel, err := s.newResolver().Relation(ctx, t.Name, resolveDefaults(s))
		if err != nil {
			return nil, err
		}
		if store, _ := analyzedTable(rel); store == nil {
			s.warn(out, pgerr.Warning, "skipping \"%s\" --- cannot vacuum non-tables or special system tables", rel.Name())
			continue
		}
		if !s.mayMaintain(ctx, rel) {
			s.warn(out, pgerr.Warning, "skipping \"%s\" --- only table or database owner can vacuum it", rel.Name())
			continue
		}
		if err := s.vacuum(ctx, rel, o, out); err != nil {
			return nil, err
		}
		if o.analyze {
			if err := s.analyzeNamed(ctx, st, t, o.verbose, out); err != nil {
				return nil, err
			}
		}
	}
	return &running{tag: fixedTag("VACUUM")}, nil
}

// vacuum compacts one table.
func (s *Session) vacuum(ctx context.Context, rel catalog.Relation, o vacuumOptions, out ResultSink) error {
	tell := func(format string, args ...any) {
		if o.verbose {
			s.notice(out, "INFO", pgerr.SuccessfulCompletion, format, args...)
		}
	}
	name := rel.Schema() + "." + rel.Name()
	tell("vacuuming \"%s\"", name)
	p, _ := procedure.Find("compact")
	strategy := "minor"
	if o.full {
		strategy = "full"
	}
	v, err := p.Bind([]procedure.Actual{
		{Text: ast.QuoteIdent(rel.Schema()) + "." + ast.QuoteIdent(rel.Name())}, {Name: "compact_strategy", Text: strategy},
	}, s.TextStyle())
	if err != nil {
		return err
	}
	h := &procedureHost{s: s, maintains: true, acc: s.eng.root.Child("work_mem", s.set.use().workMem)}
	defer h.acc.Close()
	rows, err := p.Run(ctx, h, v)
	if err != nil {
		return err
	}
	t := s.eng.counts.table(rel.OID())
	t.vacuums.Add(1)
	t.lastVacuum.Store(time.Now().UnixMicro())
	at := func(column string) any {
		for i, c := range p.Columns {
			if c.Name == column && len(rows) == 1 && i < len(rows[0]) {
				return rows[0][i]
			}
		}
		return nil
	}
	tell("\"%s\": %v files became %v, %v rows", name, at("files_before"), at("files_after"), at("rows_after"))
	return nil
}
