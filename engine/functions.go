package engine

import (
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/function"
)

// Functions feeds pg_proc: everything that can be called.
func (x *sources) Functions() []pgcatalog.Function {
	var out []pgcatalog.Function
	for _, o := range function.All() {
		out = append(out, pgcatalog.Function{
			OID: o.OID, Name: o.Name, Kind: 'f', Args: o.Args, Defaults: o.Defaults, Ret: o.Ret, Set: o.Set != nil,
			Strict: o.Strict, Volatile: [...]byte{'i', 's', 'v'}[o.Volatility], Doc: o.Doc,
		})
	}
	add := func(oid uint32, name, doc string, kind byte, args []types.Type, ret types.Type) {
		out = append(out, pgcatalog.Function{OID: oid, Name: name, Kind: kind, Args: args, Ret: ret, Volatile: 'i', Doc: doc})
	}
	for _, d := range aggregate.All() {
		add(d.OID, d.Name, d.Doc, 'a', d.Args, d.Ret)
	}
	for _, d := range aggregate.AllWindows() {
		add(d.OID, d.Name, d.Doc, 'w', d.Args, d.Ret)
	}
	return out
}

// Operators feeds pg_operator.
func (x *sources) Operators() []pgcatalog.Operator {
	var out []pgcatalog.Operator
	for _, o := range function.Operators() {
		p := pgcatalog.Operator{OID: o.OID, Name: o.Name, Ret: o.Ret, Right: o.Args[len(o.Args)-1], Prefix: len(o.Args) == 1}
		if !p.Prefix {
			p.Left = o.Args[0]
		}
		out = append(out, p)
	}
	return out
}
