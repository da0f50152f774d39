package ast

func (f *formatter) subquery(q *Query) {
	f.s("(")
	f.query(q)
	f.s(")")
}

func (f *formatter) query(q *Query) {
	f.with(q.With)
	f.body(q.Body)
	f.orderBy(q.OrderBy)
	if q.Limit != nil && !q.WithTies {
		f.s(" LIMIT ")
		f.expr(q.Limit)
	}
	if q.Offset != nil {
		f.s(" OFFSET ")
		f.operand(q.Offset)
	}
	if q.WithTies {
		f.s(" FETCH FIRST ")
		if q.Limit != nil {
			f.fetchCount(q.Limit)
		}
		f.s(" ROWS WITH TIES")
	}
	for _, l := range q.Locks {
		f.s(" FOR ", [...]string{"KEY SHARE", "SHARE", "NO KEY UPDATE", "UPDATE"}[l.Strength])
		if len(l.Of) > 0 {
			f.s(" OF ")
			each(f, l.Of, f.name)
		}
		f.s([...]string{"", " NOWAIT", " SKIP LOCKED"}[l.Wait])
	}
}

// fetchCount writes the count of FETCH FIRST, which takes a signed number bare.
func (f *formatter) fetchCount(e Expr) {
	if u, ok := e.(*Unary); ok {
		if _, num := u.Expr.(*Number); num && (u.Op.Name == "-" || u.Op.Name == "+") {
			f.expr(e)
			return
		}
	}
	f.operand(e)
}

func (f *formatter) body(b QueryBody) {
	switch b := b.(type) {
	case *Query:
		f.subquery(b)
	case *Select:
		f.selectCore(b)
	case *Values:
		f.s("VALUES ")
		each(f, b.Rows, f.parenExprs)
	case *SetOp:
		f.setOperand(b.Left)
		f.s([...]string{" UNION ", " INTERSECT ", " EXCEPT "}[b.Kind])
		f.opt(b.All, "ALL ")
		f.setOperand(b.Right)
	}
}

func (f *formatter) setOperand(b QueryBody) {
	if _, ok := b.(*SetOp); ok {
		f.s("(")
		f.body(b)
		f.s(")")
		return
	}
	f.body(b)
}

func (f *formatter) with(w *With) {
	if w == nil {
		return
	}
	f.s("WITH ")
	f.opt(w.Recursive, "RECURSIVE ")
	each(f, w.CTEs, f.cte)
	f.s(" ")
}

func (f *formatter) cte(c *CTE) {
	f.ident(c.Name)
	f.columns(c.Columns)
	f.s(" AS ", [...]string{"", "MATERIALIZED ", "NOT MATERIALIZED "}[c.Materialize], "(")
	f.stmt(c.Stmt)
	f.s(")")
	if s := c.Search; s != nil {
		f.s(" SEARCH ", map[bool]string{true: "BREADTH", false: "DEPTH"}[s.Breadth], " FIRST BY ")
		f.idents(s.By)
		f.s(" SET ")
		f.ident(s.Set)
	}
	if y := c.Cycle; y != nil {
		f.s(" CYCLE ")
		f.idents(y.Columns)
		f.s(" SET ")
		f.ident(y.Mark)
		if y.Value != nil {
			f.s(" TO ")
			f.expr(y.Value)
			f.s(" DEFAULT ")
			f.expr(y.Default)
		}
		f.s(" USING ")
		f.ident(y.Path)
	}
}

func (f *formatter) selectCore(s *Select) {
	f.s("SELECT")
	f.hints(s.Hints)
	if s.Distinct {
		f.s(" DISTINCT")
		if len(s.DistinctOn) > 0 {
			f.s(" ON ")
			f.parenExprs(s.DistinctOn)
		}
	}
	if len(s.Targets) > 0 {
		f.s(" ")
		f.targets(s.Targets)
	}
	if s.Into != nil {
		f.s(" INTO ", persistence(s.Into.Persistence), "TABLE ")
		f.name(s.Into.Name)
	}
	f.from(" FROM ", s.From)
	f.where(s.Where)
	if len(s.GroupBy) > 0 {
		f.s(" GROUP BY ")
		f.opt(s.GroupDistinct, "DISTINCT ")
		f.exprs(s.GroupBy)
	}
	if s.Having != nil {
		f.s(" HAVING ")
		f.expr(s.Having)
	}
	if len(s.Windows) > 0 {
		f.s(" WINDOW ")
		each(f, s.Windows, func(w *WindowDef) {
			f.ident(w.Name)
			f.s(" AS ")
			f.windowSpec(w.Spec)
		})
	}
}

func persistence(p Persistence) string {
	return [...]string{"", "TEMPORARY ", "UNLOGGED "}[p]
}

func (f *formatter) targets(ts []*Target) { each(f, ts, f.target) }

func (f *formatter) target(t *Target) {
	f.expr(t.Expr)
	if !t.Alias.Empty() {
		f.s(" AS ")
		f.ident(t.Alias)
	}
}

func (f *formatter) from(word string, ts []TableRef) {
	if len(ts) > 0 {
		f.s(word)
		each(f, ts, f.tableRef)
	}
}

func (f *formatter) where(e Expr) {
	if e != nil {
		f.s(" WHERE ")
		f.expr(e)
	}
}

func (f *formatter) orderBy(items []*OrderItem) {
	if len(items) > 0 {
		f.s(" ")
		f.sortList(items)
	}
}

func (f *formatter) sortList(items []*OrderItem) {
	f.s("ORDER BY ")
	each(f, items, f.orderItem)
}

func (f *formatter) orderItem(o *OrderItem) {
	f.expr(o.Expr)
	if o.Using != nil {
		f.s(" USING ")
		f.operator(*o.Using)
	}
	f.opt(o.Desc, " DESC")
	f.nulls(o.Nulls)
}

func (f *formatter) nulls(n NullsOrder) {
	f.s([...]string{"", " NULLS FIRST", " NULLS LAST"}[n])
}

// hints writes a hint comment. The comment belongs to the token before which
// it stands, so it follows what it is about at once.
func (f *formatter) hints(hs []*Hint) {
	if len(hs) == 0 {
		return
	}
	f.s(" /*+ ")
	each(f, hs, func(h *Hint) {
		f.s(h.Name)
		if h.Name == "OPTIONS" {
			f.options("", h.Options)
		} else {
			f.s("(", h.Text, ")")
		}
	})
	f.s(" */")
}

func (f *formatter) tableRef(t TableRef) {
	switch t := t.(type) {
	case *TableName:
		f.table(t)
	case *SubqueryRef:
		f.opt(t.Lateral, "LATERAL ")
		f.subquery(t.Query)
		f.alias(t.Alias)
	case *FuncRef:
		f.funcRef(t)
	case *Join:
		f.join(t)
	case *XMLTable:
		f.xmlTable(t)
	}
}

func (f *formatter) table(t *TableName) {
	f.opt(t.Only, "ONLY ")
	f.name(t.Name)
	f.hints(t.Hints)
	if t.AsOf != nil {
		f.s([...]string{" FOR VERSION AS OF ", " FOR TIMESTAMP AS OF "}[t.AsOf.Kind])
		f.operand(t.AsOf.Value)
	}
	f.alias(t.Alias)
	if t.Sample != nil {
		f.s(" TABLESAMPLE ")
		f.name(t.Sample.Method)
		f.parenExprs(t.Sample.Args)
		if t.Sample.Repeatable != nil {
			f.s(" REPEATABLE (")
			f.expr(t.Sample.Repeatable)
			f.s(")")
		}
	}
}

func (f *formatter) alias(a *Alias) {
	if a == nil {
		return
	}
	f.s(" AS ")
	if !a.Name.Empty() {
		f.ident(a.Name)
	}
	f.columns(a.Columns)
	if a.ColDefs != nil {
		f.s(" ")
		f.colDefs(a.ColDefs)
	}
}

func (f *formatter) funcRef(t *FuncRef) {
	f.opt(t.Lateral, "LATERAL ")
	item := func(i *FuncItem) {
		f.expr(i.Call)
		if i.ColDefs != nil {
			f.s(" AS ")
			f.colDefs(i.ColDefs)
		}
	}
	if t.RowsFrom {
		f.s("ROWS FROM (")
		each(f, t.Funcs, item)
		f.s(")")
	} else {
		item(t.Funcs[0])
	}
	f.opt(t.Ordinality, " WITH ORDINALITY")
	f.alias(t.Alias)
}

// join writes joins in parentheses where they are nested on the right or have
// an alias.
func (f *formatter) join(j *Join) {
	f.opt(j.Alias != nil, "(")
	f.tableRef(j.Left)
	f.opt(j.Natural, " NATURAL")
	f.s([...]string{" JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ", " CROSS JOIN "}[j.Kind])
	right, nested := j.Right.(*Join)
	nested = nested && right.Alias == nil
	f.opt(nested, "(")
	f.tableRef(j.Right)
	f.opt(nested, ")")
	if j.On != nil {
		f.s(" ON ")
		f.expr(j.On)
	}
	if len(j.Using) > 0 {
		f.s(" USING")
		f.columns(j.Using)
		if !j.UsingAlias.Empty() {
			f.s(" AS ")
			f.ident(j.UsingAlias)
		}
	}
	if j.Alias != nil {
		f.s(")")
		f.alias(j.Alias)
	}
}

func (f *formatter) xmlTable(x *XMLTable) {
	f.opt(x.Lateral, "LATERAL ")
	f.s("XMLTABLE(")
	if len(x.Namespaces) > 0 {
		f.s("XMLNAMESPACES(")
		each(f, x.Namespaces, func(a *XMLAttr) {
			f.opt(a.Name.Empty(), "DEFAULT ")
			f.operand(a.Expr)
			if !a.Name.Empty() {
				f.s(" AS ")
				f.ident(a.Name)
			}
		})
		f.s("), ")
	}
	f.operand(x.Row)
	f.s(" PASSING ")
	f.operand(x.Document)
	f.s(" COLUMNS ")
	each(f, x.Columns, func(c *XMLColumn) {
		f.ident(c.Name)
		f.s(" ")
		if c.Type == nil {
			f.s("FOR ORDINALITY")
			return
		}
		f.typeName(c.Type)
		for _, o := range c.Options {
			f.s(" ", o.Name)
			if o.Value != nil {
				f.s(" ")
				f.operand(o.Value)
			}
		}
	})
	f.s(")")
	f.alias(x.Alias)
}
