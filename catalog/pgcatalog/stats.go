package pgcatalog

import (
	"math"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// histogramKind is STATISTIC_KIND_HISTOGRAM.
const histogramKind = 2

// columnStat is what pg_statistic says of a column.
type columnStat struct {
	nullFrac, distinct float64
	width              int64
	bounds             types.Datum // of a histogram of one bucket, nil = none
}

// analyzedColumns calls fn for every column that an ANALYZE has looked at.
func analyzedColumns(f *Filler, fn func(rel catalog.Relation, c catalog.Column, s columnStat)) error {
	each := func(fn func(catalog.Relation) error) error { return f.eachNamed("schemaname", "tablename", fn) }
	if _, ok := f.index["starelid"]; ok {
		each = func(fn func(catalog.Relation) error) error { return f.eachOf("starelid", fn) }
	}
	return each(func(rel catalog.Relation) error {
		st, err := rel.Stats(f.Ctx, table.Scan{Limit: -1})
		if err != nil || st == nil {
			return nil //nolint:nilerr // a broken table is left out, as everywhere here
		}
		for _, c := range rel.Columns() {
			if x, ok := st.Columns[c.ID]; ok && x.Analyzed {
				fn(rel, c, statOf(c.Type, &x, st.Rows))
			}
		}
		return nil
	})
}

// statOf puts what is known of a column in PostgreSQL's terms: the number of distinct
// values is negative, a share of the rows, where it grows with them.
func statOf(t types.Type, x *table.ColumnStats, rows int64) columnStat {
	s := columnStat{distinct: float64(x.Distinct), width: int64(math.Round(x.AverageBytes))}
	if s.width == 0 {
		if s.width = int64(t.Info().Len); s.width <= 0 {
			s.width = 0
		}
		if t.Kind == types.Numeric {
			if s.width = 8; t.Prec > 18 {
				s.width = 16
			}
		}
	}
	if rows <= 0 {
		return s
	}
	s.nullFrac = math.Min(1, float64(x.NullCount)/float64(rows))
	if share := s.distinct / float64(rows); share > 0.1 {
		s.distinct = -math.Min(1, share)
	}
	if x.Min != nil && x.Max != nil && x.Distinct > 1 {
		style := &pgtext.Style{}
		s.bounds = []types.Datum{string(pgtext.AppendDatum(nil, t, x.Min, style)), string(pgtext.AppendDatum(nil, t, x.Max, style))}
	}
	return s
}

// fillStats shows only columns that the user may read: bounds are values of rows.
func fillStats(f *Filler) error {
	return analyzedColumns(f, func(rel catalog.Relation, c catalog.Column, s columnStat) {
		if !f.reads(rel, c.Name) {
			return
		}
		f.Row("schemaname", rel.Schema(), "tablename", rel.Name(), "attname", c.Name, "inherited", false,
			"null_frac", s.nullFrac, "avg_width", s.width, "n_distinct", s.distinct, "histogram_bounds", s.bounds)
	})
}

func fillStatistic(f *Filler) error {
	return analyzedColumns(f, func(rel catalog.Relation, c catalog.Column, s columnStat) {
		kind := 0
		if s.bounds != nil {
			kind = histogramKind
		}
		f.Row("starelid", rel.OID(), "staattnum", c.AttNum, "stainherit", false, "stanullfrac", s.nullFrac, "stawidth", s.width,
			"stadistinct", s.distinct, "stakind1", kind, "stavalues1", s.bounds)
	})
}
