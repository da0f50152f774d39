package pgcatalog

import (
	"context"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
)

// NameSequences shows the sequences in the text of a default by their names.
func NameSequences(ctx context.Context, src Sources, text string) string {
	const mark = "'::regclass"
	n, ok := src.(interface {
		ObjectName(ctx context.Context, oid uint32) (string, bool)
	})
	if !ok || !strings.Contains(text, mark) {
		return text
	}
	var b strings.Builder
	for {
		i := strings.Index(text, mark)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		start := strings.LastIndexByte(text[:i], '\'') + 1
		b.WriteString(text[:start])
		lit := text[start:i]
		if oid, err := strconv.ParseUint(lit, 10, 32); err == nil {
			if name, ok := n.ObjectName(ctx, uint32(oid)); ok {
				lit = strings.ReplaceAll(name, "'", "''")
			}
		}
		b.WriteString(lit + mark)
		text = text[i+len(mark):]
	}
}

// identityOf is pg_attribute.attidentity of a column.
func identityOf(rel catalog.Relation, column string) string {
	if t, ok := rel.(catalog.TableInfo); ok {
		return catalog.IdentityOf(column, t.Options())
	}
	return ""
}

// sequenceTypeOID is the OID of a sequence's type.
func sequenceTypeOID(d *objects.SequenceDef) int64 {
	switch d.Type {
	case "smallint":
		return 21
	case "integer":
		return 23
	}
	return 20
}

func eachSequence(f *Filler, fn func(seq *catalog.SequenceRelation, d *objects.SequenceDef) error) error {
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		if seq, ok := rel.(*catalog.SequenceRelation); ok {
			return fn(seq, seq.Definition())
		}
		return nil
	})
}

func fillSequence(f *Filler) error {
	return eachSequence(f, func(seq *catalog.SequenceRelation, d *objects.SequenceDef) error {
		f.Row("seqrelid", seq.OID(), "seqtypid", sequenceTypeOID(d), "seqstart", d.Start, "seqincrement", d.Increment, "seqmax", d.Max,
			"seqmin", d.Min, "seqcache", d.Cache, "seqcycle", d.Cycle)
		return nil
	})
}

func fillSequences(f *Filler) error {
	return eachSequence(f, func(seq *catalog.SequenceRelation, d *objects.SequenceDef) error {
		var last any
		k, c := relKey(seq)
		if f.Wants("last_value") && (strings.HasPrefix(seq.Schema(), "pg_temp_") || f.Src.May(k, c, roles.Select|roles.Usage)) {
			v, called, err := seq.Counter().Last(f.Ctx, d)
			if err != nil {
				return err
			}
			if called {
				last = v
			}
		}
		f.Row("schemaname", seq.Schema(), "sequencename", seq.Name(), "sequenceowner", f.roleName(f.ownerOf(seq)), "data_type", sequenceTypeOID(d),
			"start_value", d.Start, "min_value", d.Min, "max_value", d.Max, "increment_by", d.Increment, "cycle", d.Cycle,
			"cache_size", d.Cache, "last_value", last)
		return nil
	})
}

func yesNo(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// fillISSequences leaves those of identity columns out, as PostgreSQL does.
func fillISSequences(f *Filler) error {
	return eachSequence(f, func(seq *catalog.SequenceRelation, d *objects.SequenceDef) error {
		if d.Identity != "" || !f.shows(seq) {
			return nil
		}
		prec := map[string]int{"smallint": 16, "integer": 32, "bigint": 64}[d.Type]
		f.Row("sequence_catalog", f.Src.Database(), "sequence_schema", seq.Schema(), "sequence_name", seq.Name(), "data_type", d.Type,
			"numeric_precision", prec, "numeric_precision_radix", 2, "numeric_scale", 0, "start_value", strconv.FormatInt(d.Start, 10),
			"minimum_value", strconv.FormatInt(d.Min, 10), "maximum_value", strconv.FormatInt(d.Max, 10),
			"increment", strconv.FormatInt(d.Increment, 10), "cycle_option", yesNo(d.Cycle))
		return nil
	})
}

// identityColumns are the sequences of identity columns, by table and column.
func identityColumns(f *Filler) (map[[3]string]*objects.SequenceDef, error) {
	out := map[[3]string]*objects.SequenceDef{}
	err := eachSequence(f, func(seq *catalog.SequenceRelation, d *objects.SequenceDef) error {
		if d.Identity != "" {
			out[[3]string{seq.Schema(), d.Table, d.Column}] = d
		}
		return nil
	})
	return out, err
}

// dependSequences lists the columns that own sequences, and the defaults that call
// them.
func dependSequences(f *Filler) error {
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		switch r := rel.(type) {
		case *catalog.SequenceRelation:
			d := r.Definition()
			if d.Table == "" {
				return nil
			}
			on, err := f.Src.Catalog().Resolve(f.Ctx, r.Schema(), d.Table, catalog.ResolveOptions{})
			if err != nil {
				return nil //nolint:nilerr // dropped meanwhile
			}
			kind := "a"
			if d.Identity != "" {
				kind = "i"
			}
			f.Row("classid", classClass, "objid", r.OID(), "refclassid", classClass, "refobjid", on.OID(), "refobjsubid", attNum(on, d.Column),
				"deptype", kind)
		case catalog.TableInfo:
			opts := r.Options()
			if !hasDefaults(rel) {
				return nil
			}
			for _, c := range r.Columns() {
				if catalog.IdentityOf(c.Name, opts) != "" {
					continue
				}
				_, rest, ok := strings.Cut(opts[catalog.DefaultOption(c.Name)], "nextval('")
				if !ok {
					continue
				}
				lit, _, _ := strings.Cut(rest, "'")
				if oid, err := strconv.ParseUint(lit, 10, 32); err == nil {
					f.Row("classid", classAttrdef, "objid", catalog.OIDOf('d', rel.Schema(), rel.Name()+"."+c.Name), "refclassid", classClass,
						"refobjid", uint32(oid), "deptype", "n")
				}
			}
		}
		return nil
	})
}
