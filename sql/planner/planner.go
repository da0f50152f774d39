// Package planner turns a syntax tree into a physical plan: it binds names and
// types, rewrites the logical plan by the rules listed in rules.go, orders
// joins by statistics and chooses operators.
//
// A statement passes through it once:
//
//	bind_*.go     ast -> plan.LNode: scopes, types, PostgreSQL's errors
//	rule_*.go     LNode -> LNode: each rule keeps the meaning, and can be off
//	join_order.go inner joins are put in the cheapest order found
//	physical.go   LNode -> plan.Node: columns become slots, estimates are kept
//
// To see what a rule does, plan with it in Options.Disabled and compare the
// EXPLAIN; the golden transcripts in testdata do the same.
package planner

import (
	"context"
	"errors"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Resolver finds relations for the planner.
type Resolver interface {
	// Relation finds a relation through the search path; errors are pgerr 42P01
	// `relation "x" does not exist` and 3F000. The planner adds the position.
	Relation(ctx context.Context, name ast.Name, o catalog.ResolveOptions) (catalog.Relation, error)
}

// Options is what a plan depends on besides the statement.
type Options struct {
	Resolver Resolver
	Env      function.Env
	// ParamTypes are the declared types of $1..; Unknown = infer.
	ParamTypes []types.Type
	// FixedParams refuses parameters beyond ParamTypes with 42P02: the simple
	// protocol, where nobody could supply them.
	FixedParams bool
	FreshReads  bool
	// Disabled switches optimizer rules off, by the names in Rules.
	Disabled map[string]bool
	// MaxDepth bounds the nesting of expressions and queries; beyond it 54001.
	// 0 = 10,000.
	MaxDepth int
	// PseudoColumns makes the columns _FILE, _POS, _KIND and _SEQ of stored tables
	// known to the statement, outside of *: for plans that find rows to change.
	PseudoColumns bool
	// RowLocks makes Planned.RowLocks and the columns they need.
	RowLocks bool
	// Targets, when not nil, are the columns an INSERT ... SELECT or VALUES
	// feeds: the result is coerced to them by assignment, 42804 when it cannot
	// be.
	Targets []Target
}

// Target is a column that a query's result is assigned to.
type Target struct {
	Name string
	Type types.Type
	// Default stands where a VALUES list says DEFAULT; nil = NULL.
	Default ast.Expr
}

// Column is a result column. TableOID and AttNum are set for plain columns.
type Column struct {
	Name     string
	Type     types.Type
	TableOID uint32
	AttNum   int16
}

// Planned is a statement ready to run. Immutable.
type Planned struct {
	Fragment   *plan.Fragment
	Columns    []Column
	ParamTypes []types.Type
	// Volatile says that the plan contains volatile calls.
	Volatile bool
	// Locks are the relations that FOR UPDATE and its kin name, those inside
	// subqueries and views included.
	Locks []catalog.Relation
	// NoWait: one of them asks not to wait.
	NoWait bool
	// RowLocks are those of them whose rows can be told, when Options.RowLocks asks
	// for them: the result has columns behind Columns then, which whoever runs the
	// plan cuts off.
	RowLocks []RowLock
	// Relations are all relations read, views included.
	Relations []catalog.Relation
	// Needs are the privileges that it takes to run the plan.
	Needs []*Need
}

// defaultMaxDepth is above the parser's own limit for trees; a frame of the
// binder is below 2 KB, so the stack stays far from Go's limit.
const defaultMaxDepth = 10000

// planner is the state of one statement.
type planner struct {
	ctx      context.Context
	text     string
	o        Options
	maxDepth int
	depth    int

	info   []*colInfo // by ColID
	params []types.Type
	// paramNodes remembers every Param made while its type was unknown.
	paramNodes map[int][]*plan.Param
	pos        map[plan.Expr]ast.Pos // of constants and parameters

	volatile  bool
	ctes      []*plan.LCTE
	nextRec   int
	relations []catalog.Relation
	locks     []catalog.Relation
	rowLocks  []rowLock
	noWait    bool             // of a lock in locks
	rebinding bool             // a WITH item is bound again for another use
	views     int              // nesting of views being expanded
	via       catalog.Relation // the view whose owner's privileges count, nil = the user's
	needs     []*Need
	rec       *recorder // of what names mean; nil = nobody asks

	maps        map[*plan.Call]bool // MAP and MULTISET literals
	mergeAction *plan.LCol          // what merge_action() reads; nil where it has no meaning

	inlined   bool // CTEs were counted and inlined
	initPlans []*initPlanDef
	// derived are conditions that follow from others: they select nothing more.
	derived     map[plan.Expr]bool
	ests        map[plan.LNode]*est
	statsOf     map[catalog.Relation]*table.Stats
	extraParams int
}

// colInfo tells where a column comes from.
type colInfo struct {
	scope *scope // the query level whose FROM (or aggregates) it belongs to
	kind  colKind
	rel   string // range table name, for messages
	name  string
	t     types.Type
	relID catalog.Relation // base relation or nil
	att   int              // position in relID.Columns()
	item  *item
}

type colKind uint8

const (
	colInput  colKind = iota // of FROM
	colAgg                   // result of an aggregate
	colWindow                // result of a window call
	colSRF                   // result of a set-returning function
	colOther
)

func newPlanner(ctx context.Context, text string, o Options) *planner {
	p := &planner{ctx: ctx, text: text, o: o, maxDepth: o.MaxDepth,
		paramNodes: map[int][]*plan.Param{}, pos: map[plan.Expr]ast.Pos{}, derived: map[plan.Expr]bool{}, ests: map[plan.LNode]*est{}}
	if p.maxDepth <= 0 {
		p.maxDepth = defaultMaxDepth
	}
	p.params = append(p.params, o.ParamTypes...)
	return p
}

// Plan plans a SELECT, VALUES, TABLE or WITH query. text is the whole text the
// statement was parsed from: error positions count characters in it.
func Plan(ctx context.Context, stmt ast.Stmt, text string, o Options) (*Planned, error) {
	q, ok := stmt.(*ast.Query)
	if !ok {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "%s is not a query that can be planned", stmtName(stmt))
	}
	p := newPlanner(ctx, text, o)
	b, err := p.bindTop(q)
	if err != nil {
		return nil, err
	}
	if err := p.checkParams(); err != nil {
		return nil, err
	}
	root, err := p.optimize(b.root)
	if err != nil {
		return nil, err
	}
	ids := b.outIDs()
	for _, c := range b.hidden {
		ids = append(ids, c.id)
	}
	frag, err := p.physical(root, ids)
	if err != nil {
		return nil, err
	}
	out := &Planned{Fragment: frag, RowLocks: p.lockResult(len(b.cols)), ParamTypes: p.params, Volatile: p.volatile, Locks: p.locks, NoWait: p.noWait, Relations: p.relations, Needs: p.needs}
	for _, c := range b.cols {
		col := Column{Name: c.name, Type: c.t}
		if i := p.colInfo(c.id); i != nil && i.relID != nil && i.att >= 0 && !b.computed {
			col.TableOID = i.relID.OID()
			col.AttNum = i.relID.Columns()[i.att].AttNum
		}
		out.Columns = append(out.Columns, col)
	}
	return out, nil
}

// bindTop binds the statement itself and gives unknown results type text.
func (p *planner) bindTop(q *ast.Query) (*bound, error) {
	var b *bound
	var err error
	if p.o.Targets != nil {
		b, err = p.bindForTargets(q)
	} else {
		b, err = p.bindQuery(q, nil, true)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (p *planner) newCol(name string, t types.Type, info colInfo) plan.LCol {
	id := plan.ColID(len(p.info))
	info.name, info.t = name, t
	p.info = append(p.info, &info)
	return plan.LCol{ID: id, Name: name, T: t}
}

func (p *planner) colInfo(id plan.ColID) *colInfo {
	if int(id) < 0 || int(id) >= len(p.info) {
		return nil
	}
	return p.info[id]
}

// enter counts a level of recursion over what the client sent.
func (p *planner) enter() error {
	p.depth++
	if p.depth > p.maxDepth {
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded").
			WithHint("The statement is nested more than %d levels deep.", p.maxDepth)
	}
	return nil
}

func (p *planner) leave() { p.depth-- }

// charPos turns a byte offset into a character position from 1; 0 when unknown.
func (p *planner) charPos(pos ast.Pos) int {
	if pos < 0 || p.views > 0 || int(pos) > len(p.text) {
		return 0
	}
	return utf8.RuneCountInString(p.text[:pos]) + 1
}

// errAt makes an error with a position.
func (p *planner) errAt(c pgerr.Code, pos ast.Pos, format string, args ...any) *pgerr.Error {
	return pgerr.New(c, format, args...).WithPosition(p.charPos(pos))
}

// at adds a position to an error that has none.
func (p *planner) at(err error, pos ast.Pos) error {
	var e *pgerr.Error
	if errors.As(err, &e) && e.Position == 0 {
		c := *e
		return c.WithPosition(p.charPos(pos))
	}
	return err
}

// checkParams gives every parameter its type, or 42P18.
func (p *planner) checkParams() error {
	for i, t := range p.params {
		if t.Kind == types.Unknown {
			return pgerr.New(pgerr.IndeterminateDatatype, "could not determine data type of parameter $%d", i+1)
		}
		for _, n := range p.paramNodes[i] {
			if n.T.Kind == types.Unknown {
				if pos, ok := p.pos[n]; ok {
					return p.errAt(pgerr.AmbiguousParameter, pos, "could not determine data type of parameter $%d", i+1)
				}
				n.T = t
			}
		}
	}
	return nil
}

func stmtName(s ast.Stmt) string {
	switch s.(type) {
	case *ast.Insert:
		return "INSERT"
	case *ast.Update:
		return "UPDATE"
	case *ast.Delete:
		return "DELETE"
	case *ast.Merge:
		return "MERGE"
	case *ast.Explain:
		return "EXPLAIN"
	case *ast.Call:
		return "CALL"
	}
	return "this statement"
}
