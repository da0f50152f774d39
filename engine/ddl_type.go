package engine

import (
	"strings"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// columnType is what the type of a column definition means.
type columnType struct {
	// stored is the Paimon type; sql is the type of the column's values.
	stored, sql types.Type
	// pg is the value of option pg-type.<column>; "" where Paimon has the type.
	pg string
	// note is a notice for the client; "" = none.
	note string
}

// pgTypeOption is the option that keeps a column's PostgreSQL type.
func pgTypeOption(column string) string { return "pg-type." + column }

// refusedTypes are types of PostgreSQL 15 that have no place in a Paimon table.
var refusedTypes = map[string]bool{
	"money": true, "xml": true, "bit": true, "varbit": true, "inet": true, "cidr": true, "macaddr": true, "macaddr8": true,
	"point": true, "line": true, "lseg": true, "box": true, "path": true, "polygon": true, "circle": true, "tsvector": true,
	"tsquery": true, "int4range": true, "int8range": true, "numrange": true, "tsrange": true, "tstzrange": true, "daterange": true,
	"int4multirange": true, "int8multirange": true, "nummultirange": true, "tsmultirange": true, "tstzmultirange": true,
	"datemultirange": true, "jsonpath": true, "pg_lsn": true, "pg_snapshot": true, "txid_snapshot": true, "xid8": true, "cid": true,
	"tid": true, "aclitem": true, "refcursor": true, "regconfig": true, "regdictionary": true, "regcollation": true, "citext": true,
	"hstore": true, "geometry": true, "geography": true,
}

// serialTypes are no types: PostgreSQL's shorthand for a column with a sequence.
var serialTypes = map[string]bool{
	"serial": true, "serial2": true, "serial4": true, "serial8": true, "smallserial": true, "bigserial": true,
}

// isSerial reports whether a type is such a shorthand.
func isSerial(tn *ast.TypeName) bool {
	return tn != nil && len(tn.Args) == 0 && len(tn.Fields) == 0 && len(tn.Name) == 1 && !tn.System && serialTypes[strings.ToLower(tn.Name.Last())]
}

// definedColumnType is resolveColumnType of a new column, which may be a serial one.
func definedColumnType(text, column string, tn *ast.TypeName) (columnType, error) {
	if !isSerial(tn) {
		return resolveColumnType(text, column, tn)
	}
	if len(tn.Bounds) > 0 {
		return columnType{}, pgerr.New(pgerr.FeatureNotSupported, "array of serial is not implemented")
	}
	t := types.Of(types.Int4)
	switch strings.ToLower(tn.Name.Last()) {
	case "smallserial", "serial2":
		t = types.Of(types.Int2)
	case "bigserial", "serial8":
		t = types.Of(types.Int8)
	}
	return storedType(column, t, 0)
}

// resolveColumnType finds the type of a column. text is the statement's.
func resolveColumnType(text, column string, tn *ast.TypeName) (columnType, error) {
	name := strings.ToLower(tn.Name.Last())
	if len(tn.Args) == 0 && len(tn.Fields) == 0 && (len(tn.Name) == 1 || tn.Name[0].Name == "pg_catalog") {
		if serialTypes[name] && !tn.System {
			return columnType{}, errAt(text, tn.Pos, pgerr.UndefinedObject, "type %q does not exist", tn.Name.Last())
		}
		if refusedTypes[name] {
			return columnType{}, errAt(text, tn.Pos, pgerr.FeatureNotSupported, "columns of type %s are not supported", name).
				WithHint("Paimon has no such type. Store it as text.")
		}
	}
	t, err := planner.ResolveType(tn, text)
	if err != nil {
		return columnType{}, err
	}
	ct, err := storedType(column, t, 0)
	if err != nil {
		return ct, atPosition(err, text, tn.Pos)
	}
	if ct.stored.Kind == types.Time && ct.stored.Prec == 3 && !(t.Mod > 0 && t.Prec <= 3) {
		ct.note = "type time keeps milliseconds"
	}
	return ct, nil
}

// storedType maps an SQL type to Paimon's. depth counts nesting: only a column's
// own type may be one that Paimon lacks.
func storedType(column string, t types.Type, depth int) (columnType, error) {
	out := columnType{stored: t, sql: t.SQL()}
	asText := func(pg string) (columnType, error) {
		if depth > 0 {
			return out, pgerr.New(pgerr.FeatureNotSupported, "type %s is not supported inside another type", pg).
				WithHint("Paimon has no such type. Use text.")
		}
		if t.Mod != 0 {
			return out, pgerr.New(pgerr.FeatureNotSupported, "type %s with a precision is not supported for columns", pg)
		}
		out.stored = types.Of(types.Text).WithNotNull(t.NotNull)
		out.pg = pg
		return out, nil
	}
	switch t.Kind {
	case types.Bool, types.TinyInt, types.Int2, types.Int4, types.Int8, types.Float4, types.Float8, types.Date, types.Text, types.Variant,
		types.Timestamp, types.TimestampTZ:
		return out, nil
	case types.Varchar:
		if t.Len == 0 {
			out.stored = types.Of(types.Text).WithNotNull(t.NotNull)
			if depth == 0 {
				out.pg = "varchar"
			} else {
				out.sql = out.stored
			}
		}
		return out, nil
	case types.BpChar:
		if t.Len == 0 {
			return out, pgerr.New(pgerr.FeatureNotSupported, "type bpchar without a length is not supported for columns").
				WithHint("Use char(n) or text.")
		}
		return out, nil
	case types.Bytea:
		if t.Len == 0 && (t.Lake == types.LakeBinary || t.Lake == types.LakeVarbinary) {
			// Spark's BINARY without a length holds bytes of any length.
			out.stored = types.Of(types.Bytea).WithNotNull(t.NotNull)
			out.sql = out.stored
		}
		return out, nil
	case types.Time:
		if t.Mod == 0 || t.Prec > 3 {
			out.stored.Prec, out.stored.Mod = 3, 4
			out.sql = out.stored
		}
		if t.Mod == 0 && depth == 0 {
			out.pg, out.sql = "time", t.SQL()
		}
		return out, nil
	case types.Numeric:
		switch {
		case t.Mod == 0:
			out.stored = types.NumericOf(38, 18).WithNotNull(t.NotNull)
			if depth == 0 {
				out.pg = "numeric"
			} else {
				out.sql = out.stored
			}
		case t.Prec == 0:
			return out, pgerr.New(pgerr.FeatureNotSupported, "type %s is not supported for columns", t.WithNotNull(false)).
				WithHint("A precision of at most 38 digits and a scale from 0 to the precision are supported.")
		}
		return out, nil
	case types.Name:
		return asText("name")
	case types.UUID:
		return asText("uuid")
	case types.JSON:
		return asText("json")
	case types.JSONB:
		return asText("jsonb")
	case types.Interval:
		return asText("interval")
	case types.TimeTZ:
		return asText("timetz")
	case types.Array, types.Map:
		return containerType(column, t, depth)
	case types.Row:
		out.stored.Fields = append([]types.Field(nil), t.Fields...)
		seen := map[string]bool{}
		for i := range out.stored.Fields {
			f := &out.stored.Fields[i]
			if seen[f.Name] {
				return out, pgerr.New(pgerr.DuplicateColumn, "field %q of column %q specified more than once", f.Name, column)
			}
			seen[f.Name] = true
			m, err := storedType(column, f.Type, depth+1)
			if err != nil {
				return out, err
			}
			f.Type = m.stored
		}
		out.sql = out.stored.SQL()
		return out, nil
	case types.Record, types.Unknown, types.Void, types.Any, types.AnyElement, types.AnyArray, types.AnyNonArray, types.AnyCompatible,
		types.AnyCompatibleArray, types.Internal:
		return out, pgerr.New(pgerr.InvalidTableDefinition, "column %q has pseudo-type %s", column, t.WithNotNull(false))
	}
	return out, pgerr.New(pgerr.FeatureNotSupported, "columns of type %s are not supported", t.WithNotNull(false)).
		WithHint("Paimon has no such type.")
}

// containerType is storedType of arrays, maps and multisets.
func containerType(column string, t types.Type, depth int) (columnType, error) {
	out := columnType{stored: t}
	if t.Elem != nil {
		e, err := storedType(column, *t.Elem, depth+1)
		if err != nil {
			return out, err
		}
		out.stored.Elem = &e.stored
	}
	if t.Key != nil {
		k, err := storedType(column, *t.Key, depth+1)
		if err != nil {
			return out, err
		}
		out.stored.Key = &k.stored
	}
	out.sql = out.stored.SQL()
	return out, nil
}

// checkCollation accepts the collations that compare as bytes do.
func checkCollation(text string, name ast.Name) error {
	if len(name) == 0 {
		return nil
	}
	switch name.Last() {
	case "C", "POSIX", "default", "ucs_basic":
		return nil
	}
	return errAt(text, name.Pos(), pgerr.UndefinedObject, "collation %q for encoding \"UTF8\" does not exist", name.Last()).
		WithHint("Text is compared by its bytes, as collation \"C\" does.")
}

// errAt makes an error that points into the statement.
func errAt(text string, pos ast.Pos, c pgerr.Code, format string, args ...any) *pgerr.Error {
	return pgerr.New(c, format, args...).WithPosition(charPosition(text, pos))
}

// charPosition turns a byte offset into PostgreSQL's count of characters from 1.
func charPosition(text string, pos ast.Pos) int {
	if pos < 0 || int(pos) > len(text) {
		return 0
	}
	return utf8.RuneCountInString(text[:pos]) + 1
}

// atPosition adds a position to an error that has none.
func atPosition(err error, text string, pos ast.Pos) error {
	if e, ok := err.(*pgerr.Error); ok && e.Position == 0 { //nolint:errorlint // made by the caller
		return e.WithPosition(charPosition(text, pos))
	}
	return err
}
