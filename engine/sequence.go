package engine

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// sequenceValues is what a session remembers of nextval. Safe for concurrent use: a
// statement may evaluate calls in several goroutines.
type sequenceValues struct {
	mu   sync.Mutex       // guards all below
	last map[uint32]int64 // by OID
	oid  uint32           // of the sequence that nextval used last; 0 = none
}

func (v *sequenceValues) given(oid uint32, value int64, next bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		v.last = map[uint32]int64{}
	}
	v.last[oid] = value
	if next {
		v.oid = oid
	}
}

func (v *sequenceValues) of(oid uint32) (int64, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n, ok := v.last[oid]
	return n, ok
}

// latest is lastval's sequence.
func (v *sequenceValues) latest() uint32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.oid
}

// forget is DISCARD SEQUENCES.
func (v *sequenceValues) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last, v.oid = nil, 0
}

// objectByOID returns a view or sequence by its OID, nil when there is none.
func (s *Session) objectByOID(ctx context.Context, oid uint32) (catalog.Relation, error) {
	states, err := s.states(ctx)
	if err != nil {
		return nil, err
	}
	for _, st := range states {
		if o := st.ByOID(oid); o != nil && (o.Kind == objects.View || o.Kind == objects.Sequence) {
			rel, err := s.catalog().Resolve(ctx, o.Schema, o.Name, catalog.ResolveOptions{})
			if missing(err) {
				return nil, nil
			}
			return rel, err
		}
	}
	return nil, nil
}

// sequence returns the sequence that an argument of nextval and its kin means. It is
// looked up once in a statement.
func (e *stmtEnv) sequence(ctx context.Context, arg types.Datum) (*catalog.SequenceRelation, error) {
	n, _ := arg.(int64)
	if v, ok := e.sequences.Load(uint32(n)); ok {
		return v.(*catalog.SequenceRelation), nil
	}
	rel, err := e.s.objectByOID(ctx, uint32(n))
	if err != nil {
		return nil, err
	}
	if rel == nil {
		if name, ok := e.RelationName(ctx, uint32(n)); ok {
			return nil, pgerr.New(pgerr.WrongObjectType, "%q is not a sequence", name)
		}
		return nil, pgerr.New(pgerr.UndefinedTable, "could not open relation with OID %d", n)
	}
	seq, ok := rel.(*catalog.SequenceRelation)
	if !ok {
		return nil, pgerr.New(pgerr.WrongObjectType, "%q is not a sequence", rel.Name())
	}
	e.sequences.Store(uint32(n), seq)
	return seq, nil
}

// sequenceCall runs nextval, currval, lastval and setval. What they do is no part of
// the transaction, as in PostgreSQL.
func (e *stmtEnv) sequenceCall(ctx context.Context, fn string, args []types.Datum) (types.Datum, error) {
	if (fn == "nextval" || fn == "setval") && e.s.readOnly() {
		return nil, errReadOnly(fn + "()")
	}
	vals := &e.s.sequences
	if fn == "lastval" {
		if oid := vals.latest(); oid != 0 {
			if rel, err := e.s.objectByOID(ctx, oid); rel != nil || err != nil {
				if err == nil {
					err = e.s.mayUse(ctx, rel, roles.Usage|roles.Select)
				}
				v, _ := vals.of(oid)
				return v, err
			}
		}
		return nil, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "lastval is not yet defined in this session")
	}
	seq, err := e.sequence(ctx, args[0])
	if err != nil {
		return nil, err
	}
	need := map[string]roles.Mode{"nextval": roles.Usage | roles.Update, "currval": roles.Usage | roles.Select, "setval": roles.Update}
	if err := e.s.mayUse(ctx, seq, need[fn]); err != nil {
		return nil, err
	}
	def := seq.Definition()
	switch fn {
	case "currval":
		v, ok := vals.of(seq.OID())
		if !ok {
			return nil, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "currval of sequence %q is not yet defined in this session", seq.Name())
		}
		return v, nil
	case "setval":
		v, _ := args[1].(int64)
		called := true
		if len(args) > 2 {
			called, _ = args[2].(bool)
		}
		if v < def.Min || v > def.Max {
			return nil, pgerr.New(pgerr.NumericValueOutOfRange, "setval: value %d is out of bounds for sequence %q (%d..%d)", v, seq.Name(), def.Min, def.Max)
		}
		if err := seq.Counter().Set(ctx, def, v, called); err != nil {
			return nil, err
		}
		if called {
			vals.given(seq.OID(), v, false)
		}
		return v, nil
	}
	v, err := seq.Counter().Next(ctx, def)
	switch {
	case errors.Is(err, objects.ErrExhausted) && def.Increment > 0:
		return nil, pgerr.New(pgerr.SequenceGeneratorLimitExceeded, "nextval: reached maximum value of sequence %q (%d)", seq.Name(), def.Max)
	case errors.Is(err, objects.ErrExhausted):
		return nil, pgerr.New(pgerr.SequenceGeneratorLimitExceeded, "nextval: reached minimum value of sequence %q (%d)", seq.Name(), def.Min)
	case err != nil:
		return nil, err
	}
	vals.given(seq.OID(), v, true)
	return v, nil
}

// sequencesOf are the sequences that columns of a table own, or one column.
func (s *Session) sequencesOf(ctx context.Context, schemaName, table, column string) ([]*catalog.SequenceRelation, error) {
	states, err := s.states(ctx)
	if err != nil {
		return nil, err
	}
	var out []*catalog.SequenceRelation
	for _, st := range states {
		for _, o := range st.List(objects.Sequence) {
			var def objects.SequenceDef
			if o.Schema != schemaName || o.Decode(&def) != nil || def.Table != table || column != "" && def.Column != column {
				continue
			}
			rel, err := s.catalog().Resolve(ctx, o.Schema, o.Name, catalog.ResolveOptions{})
			if seq, ok := rel.(*catalog.SequenceRelation); ok && err == nil {
				out = append(out, seq)
			}
		}
	}
	return out, nil
}

// serialSequence is pg_get_serial_sequence.
func (e *stmtEnv) serialSequence(ctx context.Context, table, column string) (*string, error) {
	n, err := parseName(table)
	if err != nil {
		return nil, err
	}
	r := &resolver{s: e.s, path: e.path(), pins: map[pinKey]catalog.Relation{}}
	rel, err := r.find(ctx, n, catalog.ResolveOptions{})
	if err != nil {
		return nil, withoutPosition(err)
	}
	for _, c := range rel.Columns() {
		if c.Name != column {
			continue
		}
		seqs, err := e.s.sequencesOf(ctx, rel.Schema(), rel.Name(), column)
		if err != nil || len(seqs) == 0 {
			return nil, err
		}
		name := ast.QuoteIdent(seqs[0].Schema()) + "." + ast.QuoteIdent(seqs[0].Name())
		return &name, nil
	}
	return nil, pgerr.New(pgerr.UndefinedColumn, "column %q of relation %q does not exist", column, rel.Name())
}

// Defaults name sequences by their OIDs, so that they follow when a sequence gets
// another name: nextval('16400'::regclass).
func sequenceDefault(oid uint32) string {
	return "nextval('" + strconv.FormatUint(uint64(oid), 10) + "'::regclass)"
}

// byOID replaces the names of sequences in an expression by OIDs; ok is false when
// there are none.
func (s *Session) byOID(ctx context.Context, e ast.Expr) (x ast.Expr, ok bool, err error) {
	if !callsSequence(e) {
		return e, false, nil
	}
	if x, err = parseExpr(ast.Format(e)); err != nil {
		return nil, false, err
	}
	env := s.env()
	ast.Walk(x, func(n ast.Node) bool {
		f, isCall := n.(*ast.FuncCall)
		if !isCall || err != nil || !sequenceFunctions[f.Name.Last()] || len(f.Args) == 0 {
			return err == nil
		}
		c, cast := f.Args[0].(*ast.Cast)
		arg := f.Args[0]
		if cast {
			if c.Type.Name.Last() != "regclass" {
				return true
			}
			arg = c.Expr
		}
		lit, isLit := arg.(*ast.String)
		if !isLit || lit.Value == "" || strings.Trim(lit.Value, "0123456789") == "" {
			return true
		}
		oid, found, rerr := env.RelationOID(ctx, lit.Value)
		if rerr != nil || !found {
			err = rerr
			return err == nil
		}
		ok = true
		f.Args[0] = &ast.Cast{
			Expr: &ast.String{Value: strconv.FormatUint(uint64(oid), 10)}, Style: ast.CastColons,
			Type: &ast.TypeName{Name: ast.Name{{Name: "regclass"}}},
		}
		return true
	})
	return x, ok, err
}

var sequenceFunctions = map[string]bool{"nextval": true, "currval": true, "setval": true}

func callsSequence(e ast.Expr) bool {
	found := false
	ast.Walk(e, func(n ast.Node) bool {
		f, ok := n.(*ast.FuncCall)
		found = found || ok && sequenceFunctions[f.Name.Last()]
		return !found
	})
	return found
}
