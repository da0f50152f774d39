package planner

import (
	"strings"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// item is one entry of a FROM clause's namespace, PostgreSQL's
// ParseNamespaceItem.
type item struct {
	name   string // alias, or the relation's name; "" for an unnamed join
	table  string // the relation's own name, "" when it is none
	schema string // set when the item may be called schema.name
	alias  bool   // name was given by an alias
	cols   []scopeCol
	rel    catalog.Relation
	get    *plan.LGet // of a stored relation
	// inner are the relations that a subquery or a view reads.
	inner  []catalog.Relation
	need   *Need      // of a relation
	within []*Need    // of inner
	hidden []scopeCol // pseudo-columns in use

	relVisible, colVisible bool
	lateralOnly, lateralOK bool
	// target marks the table that is changed while other FROM items are bound.
	target bool
	join   bool
	// scalar marks a function with one column of a scalar type: naming the item
	// alone means that column.
	scalar bool
}

// scopeCol is a column of an item: a plan.Col, or what merges the columns of a
// JOIN USING.
type scopeCol struct {
	name string
	e    plan.Expr
	base bool // a column of a stored relation
}

// scope is one query level.
type scope struct {
	parent *scope
	items  []*item // the namespace
	all    []*item // every item of the level, visible or not
	ctes   []*cteDef
	sel    *selectState
	kind   exprKind
	// lateral counts how deep inside a LATERAL item the binder is.
	lateral int
}

// cteDef is a name of WITH.
type cteDef struct {
	name string
	def  *ast.CTE
	// cte is the bound definition; nil for one that is bound anew at each use.
	cte      *plan.LCTE
	cols     []outCol
	scope    *scope // where the definition is bound
	active   bool   // being bound: a reference is recursive
	rec      *recState
	inline   *bound
	visible  bool
	useCount int
}

// recState is a WITH RECURSIVE while its step is bound.
type recState struct {
	id   int
	cols []outCol
	refs int
	name string
	// forbidden, when not "", names why a reference here is 42P19.
	forbidden string
}

// exprKind tells which clause an expression stands in, for what it may hold.
type exprKind uint8

const (
	inNone exprKind = iota
	inTarget
	inWhere
	inHaving
	inGroupBy
	inOrderBy
	inDistinctOn
	inJoinOn
	inLimit
	inOffset
	inFromFunc
	inFromSub
	inValues
	inAggArg
	inAggOrder
	inFilter
	inWindowPartition
	inWindowOrder
	inWindowFrameRange
	inWindowFrameRows
	inWindowFrameGroups
	inConst
	inCheck
	inReturning
	inOneRow // VALUES of an INSERT with one row
	inUpdate
	inMergeWhen
	inDefault
	inIndex
	inCopyWhere
)

// aggAllowed returns "" where aggregates may stand, or what PostgreSQL calls
// the place.
func (k exprKind) aggPlace() string {
	switch k {
	case inWhere:
		return "WHERE"
	case inJoinOn:
		return "JOIN conditions"
	case inGroupBy:
		return "GROUP BY"
	case inLimit:
		return "LIMIT"
	case inOffset:
		return "OFFSET"
	case inFromFunc:
		return "functions in FROM"
	case inValues:
		return "VALUES"
	case inFilter:
		return "FILTER"
	case inWindowFrameRange:
		return "window RANGE"
	case inWindowFrameRows:
		return "window ROWS"
	case inWindowFrameGroups:
		return "window GROUPS"
	case inReturning:
		return "RETURNING"
	case inCheck:
		return "check constraints"
	case inOneRow:
		return "VALUES"
	case inUpdate:
		return "UPDATE"
	case inMergeWhen:
		return "MERGE WHEN conditions"
	case inDefault:
		return "DEFAULT expressions"
	case inIndex:
		return "index expressions"
	case inCopyWhere:
		return "COPY FROM WHERE conditions"
	}
	return ""
}

// findItem looks a range name up, in this level and outwards. schema "" = any.
func (p *planner) findItem(s *scope, schema, name string, pos ast.Pos) (*item, error) {
	for ; s != nil; s = s.parent {
		var found *item
		for _, it := range s.items {
			if !it.relVisible || it.name == "" || it.name != name {
				continue
			}
			if schema != "" && (it.alias || it.schema != schema) {
				continue
			}
			if it.lateralOnly && s.lateral == 0 {
				continue
			}
			if found != nil {
				return nil, p.errAt(pgerr.AmbiguousAlias, pos, "table reference %q is ambiguous", name)
			}
			if err := p.checkLateral(it, pos); err != nil {
				return nil, err
			}
			found = it
		}
		if found != nil {
			return found, nil
		}
	}
	return nil, nil
}

func (p *planner) checkLateral(it *item, pos ast.Pos) error {
	if it.lateralOnly && !it.lateralOK && it.target {
		return p.errAt(pgerr.InvalidColumnReference, pos, "invalid reference to FROM-clause entry for table %q", it.name).
			WithHint("There is an entry for table %q, but it cannot be referenced from this part of the query.", it.name)
	}
	if it.lateralOnly && !it.lateralOK {
		return p.errAt(pgerr.InvalidColumnReference, pos, "invalid reference to FROM-clause entry for table %q", it.name).
			WithDetail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
	}
	return nil
}

// findColumn looks an unqualified column up. A nil result is "not found".
func (p *planner) findColumn(s *scope, name string, pos ast.Pos) (plan.Expr, error) {
	for ; s != nil; s = s.parent {
		var found *scopeCol
		for _, it := range s.items {
			if !it.colVisible || it.lateralOnly && s.lateral == 0 {
				continue
			}
			c, err := p.itemColumn(it, name, pos)
			if err != nil {
				return nil, err
			}
			if c == nil {
				continue
			}
			if found != nil {
				return nil, p.errAt(pgerr.AmbiguousColumn, pos, "column reference %q is ambiguous", name)
			}
			if err := p.checkLateral(it, pos); err != nil {
				return nil, err
			}
			found = c
		}
		if found != nil {
			return found.e, nil
		}
	}
	return nil, nil
}

// itemColumn finds a column of one item: exactly, or for stored columns without
// regard to case when just one fits (lake tables written elsewhere).
func (p *planner) itemColumn(it *item, name string, pos ast.Pos) (*scopeCol, error) {
	var found, folded *scopeCol
	n := 0
	for i := range it.cols {
		c := &it.cols[i]
		if c.name == name {
			if found != nil {
				return nil, p.errAt(pgerr.AmbiguousColumn, pos, "column reference %q is ambiguous", name)
			}
			found = c
		} else if c.base && len(c.name) == len(name) && strings.EqualFold(c.name, name) && name == strings.ToLower(name) {
			folded = c
			n++
		}
	}
	if found == nil && n == 1 {
		found = folded
	}
	if found == nil && it.get != nil {
		if p.o.PseudoColumns || name == "__paimon_bucket" {
			if _, stored := it.get.Rel.(catalog.TableInfo); stored {
				return p.pseudoColumn(it, name), nil
			}
		}
		if c := p.rowIDColumn(it, name); c != nil {
			return c, nil
		}
		if err := p.lakeColumn(it, name, pos); err != nil {
			return nil, err
		}
	}
	if found == nil && it.rel != nil {
		return p.systemColumn(it, name, pos)
	}
	return found, nil
}

// systemColumn is one of the columns that every table of PostgreSQL has. tableoid is
// known of all; the rows of catalogs were made by the first transaction, as they are
// after initdb. Rows of Paimon tables carry no transaction and have no place.
func (p *planner) systemColumn(it *item, name string, pos ast.Pos) (*scopeCol, error) {
	if !contains(systemColumns, name) || it.rel.Kind() == 'v' {
		return nil, nil
	}
	c := &plan.Const{}
	_, stored := it.rel.(catalog.TableInfo)
	switch {
	case name == "tableoid":
		c.Value, c.T = int64(it.rel.OID()), types.Of(types.OID).WithNotNull(true)
	case stored || name != "xmin" && name != "xmax":
		return nil, p.errAt(pgerr.FeatureNotSupported, pos, "system column %q is not supported", name)
	case name == "xmin":
		c.Value, c.T = int64(1), types.Of(types.XID).WithNotNull(true)
	default: // xmax: nobody has deleted the row
		c.Value, c.T = int64(0), types.Of(types.XID).WithNotNull(true)
	}
	return &scopeCol{name: name, e: c}, nil
}

// pseudoColumns are storage's columns about rows.
var pseudoColumns = []struct {
	name string
	att  int
	kind types.Kind
}{
	{"_FILE", table.PseudoFile, types.Text}, {"_POS", table.PseudoPos, types.Int8},
	{"_KIND", table.PseudoKind, types.Int2}, {"_SEQ", table.PseudoSequence, types.Int8},
	{"__paimon_bucket", table.PseudoBucket, types.Int4},
	{rowID, table.PseudoRowID, types.Int8}, {rowSequence, table.PseudoVersion, types.Int8},
}

// Columns that the rows of tables with row tracking have, by their Paimon names.
const (
	rowID       = "_ROW_ID"
	rowSequence = "_SEQUENCE_NUMBER"
)

// tracksRows reports whether the rows of a stored table have ids.
func tracksRows(t catalog.TableInfo) bool {
	return len(t.PrimaryKey()) == 0 && strings.EqualFold(t.Options()["row-tracking.enabled"], "true")
}

// rowIDColumn is the row's id, or its sequence number, where the table has them.
func (p *planner) rowIDColumn(it *item, name string) *scopeCol {
	t, stored := it.get.Rel.(catalog.TableInfo)
	if !stored || !tracksRows(t) {
		return nil
	}
	for _, n := range []string{rowID, rowSequence} {
		if strings.EqualFold(name, n) {
			return p.pseudoColumn(it, n)
		}
	}
	return nil
}

// lakeColumn refuses by name the metadata columns of the lake engines that are
// not there yet: 42703 would say that they never are.
func (p *planner) lakeColumn(it *item, name string, pos ast.Pos) error {
	switch strings.ToLower(name) {
	case "_row_id", "_sequence_number", "__paimon_file_path", "__paimon_row_index", "__paimon_partition":
		if _, stored := it.get.Rel.(catalog.TableInfo); stored {
			return p.errAt(pgerr.FeatureNotSupported, pos, "metadata column %q is not supported", name)
		}
	}
	return nil
}

// pseudoColumn adds a pseudo-column to a scan when it is first named.
func (p *planner) pseudoColumn(it *item, name string) *scopeCol {
	for _, pc := range pseudoColumns {
		if pc.name != name {
			continue
		}
		for i := range it.hidden {
			if it.hidden[i].name == name {
				return &it.hidden[i]
			}
		}
		owner := p.info[it.get.Out[0].ID].scope
		col := p.newCol(name, types.Of(pc.kind), colInfo{scope: owner, item: it, rel: it.name, att: pc.att})
		it.get.Out, it.get.Att = append(it.get.Out, col), append(it.get.Att, pc.att)
		it.hidden = append(it.hidden, scopeCol{name: name, e: col.Ref()})
		return &it.hidden[len(it.hidden)-1]
	}
	return nil
}

// missingItem is errorMissingRTE.
func (p *planner) missingItem(s *scope, name ast.Name, pos ast.Pos) error {
	rel := name.Last()
	for l := s; l != nil; l = l.parent {
		for _, it := range l.all {
			if it.join && it.name == "" {
				continue
			}
			if it.name != rel && it.table != rel {
				continue
			}
			e := p.errAt(pgerr.UndefinedTable, pos, "invalid reference to FROM-clause entry for table %q", rel)
			if it.alias && it.name != rel && it.relVisible {
				if v, _ := p.findItem(s, "", it.name, pos); v == it {
					return e.WithHint("Perhaps you meant to reference the table alias %q.", it.name)
				}
			}
			return e.WithHint("There is an entry for table %q, but it cannot be referenced from this part of the query.", it.name)
		}
	}
	return p.errAt(pgerr.UndefinedTable, pos, "missing FROM-clause entry for table %q", rel)
}

// maxFuzzy is PostgreSQL's MAX_FUZZY_DISTANCE.
const maxFuzzy = 3

// missingColumn is errorMissingColumn: it looks for what may have been meant.
func (p *planner) missingColumn(s *scope, rel, col string, pos ast.Pos) error {
	var e *pgerr.Error
	if rel != "" {
		e = p.errAt(pgerr.UndefinedColumn, pos, "column %s.%s does not exist", rel, col)
	} else {
		e = p.errAt(pgerr.UndefinedColumn, pos, "column %q does not exist", col)
	}
	best := maxFuzzy + 1
	var first, second [2]string
	hits := 0
	for l := s; l != nil; l = l.parent {
		for _, it := range l.all {
			if it.join {
				continue
			}
			penalty := 0
			if rel != "" {
				penalty = levenshtein(rel, it.name, maxFuzzy+1)
			}
			for i := range it.cols {
				c := it.cols[i].name
				if c == col && penalty == 0 {
					if rel == "" {
						return e.WithHint("There is a column named %q in table %q, but it cannot be referenced from this part of the query.", col, it.name)
					}
				}
				if penalty >= best+1 {
					continue
				}
				d := levenshtein(col, c, best+1-penalty)
				if d > utf8.RuneCountInString(col)/2 {
					continue
				}
				d += penalty
				switch {
				case d < best:
					best, hits = d, 1
					first = [2]string{it.name, c}
				case d == best && hits > 0:
					hits++
					second = [2]string{it.name, c}
				}
			}
		}
	}
	switch hits {
	case 1:
		return e.WithHint("Perhaps you meant to reference the column \"%s.%s\".", first[0], first[1])
	case 2:
		return e.WithHint("Perhaps you meant to reference the column \"%s.%s\" or the column \"%s.%s\".", first[0], first[1], second[0], second[1])
	}
	return e
}

// levenshtein returns the edit distance, or max when it is at least max.
func levenshtein(a, b string, max int) int {
	ra, rb := []rune(a), []rune(b)
	if len(ra) > 255 || len(rb) > 255 {
		return max
	}
	prev := make([]int, len(rb)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		diag := prev[0]
		prev[0] = i
		for j := 1; j <= len(rb); j++ {
			cost := diag
			if ra[i-1] != rb[j-1] {
				cost++
			}
			diag = prev[j]
			if v := prev[j] + 1; v < cost {
				cost = v
			}
			if v := prev[j-1] + 1; v < cost {
				cost = v
			}
			prev[j] = cost
		}
	}
	if d := prev[len(rb)]; d < max {
		return d
	}
	return max
}

// bindColumnRef binds a, t.a, s.t.a, d.s.t.a, a whole row, and r.f on columns
// of row type.
func (p *planner) bindColumnRef(s *scope, c *ast.ColumnRef) (plan.Expr, error) {
	parts := c.Parts
	switch len(parts) {
	case 1:
		name := parts[0].Name
		e, err := p.findColumn(s, name, c.Pos)
		if e != nil || err != nil {
			p.reads(e)
			p.recording().ref(s, c, e)
			return p.copyCol(e, c.Pos), err
		}
		it, err := p.findItem(s, "", name, c.Pos)
		if err != nil {
			return nil, err
		}
		if it != nil {
			p.readsRow(it)
			p.recording().row(it)
			return p.wholeRow(it), nil
		}
		return nil, p.missingColumn(s, "", name, c.Pos)
	}
	// The longest prefix that names an item wins, as in PostgreSQL: t.a before
	// a column a with field.
	it, err := p.findItem(s, "", parts[0].Name, c.Pos)
	if err != nil {
		return nil, err
	}
	rest := parts[1:]
	relName := parts[0].Name
	if it == nil && len(parts) >= 3 {
		if it, err = p.findItem(s, schemaAlias(parts[0].Name), parts[1].Name, c.Pos); err != nil {
			return nil, err
		}
		rest, relName = parts[2:], parts[1].Name
		if it == nil && len(parts) >= 4 {
			if it, err = p.findItem(s, schemaAlias(parts[1].Name), parts[2].Name, c.Pos); err != nil {
				return nil, err
			}
			rest, relName = parts[3:], parts[2].Name
		}
	}
	if it != nil {
		col, err := p.itemColumn(it, rest[0].Name, c.Pos)
		if err != nil {
			return nil, err
		}
		if col == nil {
			return nil, p.missingColumn(s, relName, rest[0].Name, c.Pos)
		}
		p.reads(col.e)
		p.recording().member(s, c, it, col, rest[1:])
		return p.fields(p.copyCol(col.e, c.Pos), rest[1:], c.Pos)
	}
	// r.f where r is a column of a row type.
	e, err := p.findColumn(s, parts[0].Name, c.Pos)
	if err != nil {
		return nil, err
	}
	if e != nil && (isRow(e.Type()) || len(parts) > 2) {
		p.reads(e)
		p.recording().whole(e)
		return p.fields(e, parts[1:], c.Pos)
	}
	n := parts[:len(parts)-1]
	if len(parts) > 3 && false {
		n = parts
	}
	return nil, p.missingItem(s, n, c.Pos)
}

// schemaAlias maps Paimon's name of the default database to its SQL schema.
func schemaAlias(s string) string {
	if s == "default" {
		return "public"
	}
	return s
}

func isRow(t types.Type) bool { return t.Kind == types.Row || t.Kind == types.Record }

// fields follows member names into a row value.
func (p *planner) fields(e plan.Expr, names []ast.Ident, pos ast.Pos) (plan.Expr, error) {
	for _, n := range names {
		f, err := p.field(e, n.Name, pos)
		if err != nil {
			return nil, err
		}
		e = f
	}
	return e, nil
}

func (p *planner) field(e plan.Expr, name string, pos ast.Pos) (plan.Expr, error) {
	t := e.Type()
	if !isRow(t) {
		return nil, p.errAt(pgerr.WrongObjectType, pos, "column notation .%s applied to type %s, which is not a composite type", name, typeName(t))
	}
	for i, f := range t.Fields {
		if f.Name == name {
			return p.pickField(e, i), nil
		}
	}
	for i, f := range t.Fields {
		if strings.EqualFold(f.Name, name) {
			return p.pickField(e, i), nil
		}
	}
	if t.Kind == types.Record {
		return nil, p.errAt(pgerr.UndefinedColumn, pos, "could not identify column %q in record data type", name)
	}
	return nil, p.errAt(pgerr.UndefinedColumn, pos, "column %q not found in data type %s", name, typeName(t))
}

func (p *planner) pickField(e plan.Expr, i int) plan.Expr {
	if r, ok := e.(*plan.MakeRow); ok && i < len(r.Elems) {
		return r.Elems[i]
	}
	return &plan.Field{Arg: e, Index: i, T: e.Type().Fields[i].Type.SQL().WithNotNull(false)}
}

// wholeRow is a reference to an item as a value.
func (p *planner) wholeRow(it *item) plan.Expr {
	if it.scalar && len(it.cols) > 0 {
		return it.cols[0].e
	}
	r := &plan.MakeRow{T: types.Type{Kind: types.Record}}
	for _, c := range it.cols {
		r.Elems = append(r.Elems, c.e)
		r.T.Fields = append(r.T.Fields, types.Field{ID: -1, Name: c.name, Type: c.e.Type()})
	}
	return r
}

// typeName is how messages name a type.
func typeName(t types.Type) string {
	switch {
	case t.Kind == types.Array && t.Elem == nil:
		return "anyarray"
	case t.Kind == types.Map, t.Kind == types.Row, t.Kind == types.Variant:
		return lakeName(t)
	}
	return t.PlainName()
}

func lakeName(t types.Type) string {
	switch t.Kind {
	case types.Map:
		if t.Multiset {
			return "multiset<" + typeName(*t.Key) + ">"
		}
		return "map<" + typeName(*t.Key) + ", " + typeName(*t.Elem) + ">"
	case types.Row:
		var sb strings.Builder
		sb.WriteString("row<")
		for i, f := range t.Fields {
			if i > 0 {
				sb.WriteString(", ")
			}
			sb.WriteString(f.Name + " " + typeName(f.Type))
		}
		return sb.String() + ">"
	}
	return "variant"
}
