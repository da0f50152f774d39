package ast

// stmt writes a statement.
func (f *formatter) stmt(s Stmt) {
	switch s := s.(type) {
	case *Query:
		f.query(s)
	case *Insert:
		f.insert(s)
	case *Update:
		f.with(s.With)
		f.s("UPDATE ")
		f.table(s.Table)
		f.s(" SET ")
		f.sets(s.Sets)
		f.from(" FROM ", s.From)
		f.whereOrCurrent(s.Where, s.CurrentOf)
		f.returning(s.Returning)
	case *Delete:
		f.with(s.With)
		f.s("DELETE FROM ")
		f.table(s.Table)
		f.from(" USING ", s.Using)
		f.whereOrCurrent(s.Where, s.CurrentOf)
		f.returning(s.Returning)
	case *Merge:
		f.merge(s)
	case *Truncate:
		f.s("TRUNCATE TABLE ")
		f.tables(s.Tables)
		f.opt(s.Restart, " RESTART IDENTITY")
		f.opt(s.Cascade, " CASCADE")
	case *Copy:
		f.copy(s)
	default:
		f.ddl(s)
	}
}

func (f *formatter) tables(ts []*TableName) { each(f, ts, f.table) }

func (f *formatter) whereOrCurrent(w Expr, cursor Ident) {
	f.where(w)
	if !cursor.Empty() {
		f.s(" WHERE CURRENT OF ")
		f.ident(cursor)
	}
}

func (f *formatter) returning(ts []*Target) {
	if len(ts) > 0 {
		f.s(" RETURNING ")
		f.targets(ts)
	}
}

func (f *formatter) insert(s *Insert) {
	f.with(s.With)
	switch {
	case s.Upsert:
		f.s("UPSERT INTO ")
	case s.Overwrite:
		f.s("INSERT OVERWRITE ")
	default:
		f.s("INSERT INTO ")
	}
	f.table(s.Table)
	if s.Partition != nil {
		f.s(" PARTITION ")
		f.partition(s.Partition)
	}
	if len(s.Columns) > 0 {
		f.s(" (")
		each(f, s.Columns, f.assignTarget)
		f.s(")")
	}
	f.opt(s.ByName, " BY NAME")
	f.overriding(s.Overriding)
	if s.Query == nil {
		f.s(" DEFAULT VALUES")
	} else {
		f.s(" ")
		f.query(s.Query)
	}
	if c := s.OnConflict; c != nil {
		f.onConflict(c)
	}
	f.returning(s.Returning)
}

func (f *formatter) overriding(o Overriding) {
	f.s([...]string{"", " OVERRIDING USER VALUE", " OVERRIDING SYSTEM VALUE"}[o])
}

func (f *formatter) partition(vs []*PartitionValue) {
	f.s("(")
	each(f, vs, func(v *PartitionValue) {
		f.ident(v.Column)
		if v.Value != nil {
			f.s(" = ")
			f.expr(v.Value)
		}
	})
	f.s(")")
}

func (f *formatter) assignTarget(a *AssignTarget) {
	f.ident(a.Column)
	for _, st := range a.Path {
		switch {
		case st.Star:
			f.s(".*")
		case !st.Field.Empty():
			f.s(".")
			f.ident(st.Field)
		default:
			f.subscript(st.Index, st.Slice, st.Low, st.High)
		}
	}
}

func (f *formatter) sets(ss []*SetClause) {
	each(f, ss, func(s *SetClause) {
		f.opt(s.Multi, "(")
		each(f, s.Targets, f.assignTarget)
		f.opt(s.Multi, ")")
		f.s(" = ")
		f.expr(s.Value)
	})
}

func (f *formatter) onConflict(c *OnConflict) {
	f.s(" ON CONFLICT")
	if len(c.Target) > 0 {
		f.s(" (")
		each(f, c.Target, f.indexElem)
		f.s(")")
		f.where(c.TargetWhere)
	}
	if !c.Constraint.Empty() {
		f.s(" ON CONSTRAINT ")
		f.ident(c.Constraint)
	}
	if !c.DoUpdate {
		f.s(" DO NOTHING")
		return
	}
	f.s(" DO UPDATE SET ")
	f.sets(c.Sets)
	f.where(c.Where)
}

func (f *formatter) merge(s *Merge) {
	f.with(s.With)
	f.s("MERGE INTO ")
	f.table(s.Table)
	f.s(" USING ")
	f.tableRef(s.Source)
	f.s(" ON ")
	f.expr(s.On)
	for _, w := range s.Whens {
		f.s(" WHEN", [...]string{" MATCHED", " NOT MATCHED", " NOT MATCHED BY SOURCE"}[w.Match])
		if w.Cond != nil {
			f.s(" AND ")
			f.expr(w.Cond)
		}
		f.s(" THEN ")
		f.mergeAction(w)
	}
	f.returning(s.Returning)
}

func (f *formatter) mergeAction(w *MergeWhen) {
	switch w.Action {
	case MergeNothing:
		f.s("DO NOTHING")
	case MergeDelete:
		f.s("DELETE")
	case MergeUpdate:
		f.s("UPDATE SET ")
		f.opt(w.Star, "*")
		f.sets(w.Sets)
	case MergeInsert:
		f.s("INSERT")
		f.opt(w.Star, " *")
		if len(w.Columns) > 0 {
			f.s(" (")
			each(f, w.Columns, f.assignTarget)
			f.s(")")
		}
		f.overriding(w.Overriding)
		switch {
		case len(w.Values) > 0:
			f.s(" VALUES ")
			f.parenExprs(w.Values)
		case !w.Star:
			f.s(" DEFAULT VALUES")
		}
	}
}

func (f *formatter) copy(s *Copy) {
	f.s("COPY ")
	if s.Query != nil {
		f.s("(")
		f.stmt(s.Query)
		f.s(")")
	} else {
		f.name(s.Table)
		f.columns(s.Columns)
	}
	f.s(map[bool]string{true: " FROM ", false: " TO "}[s.From])
	f.opt(s.Program, "PROGRAM ")
	switch {
	case !s.Std:
		f.str(s.File)
	case s.From:
		f.s("STDIN")
	default:
		f.s("STDOUT")
	}
	if len(s.Options) > 0 {
		f.s(" WITH (")
		each(f, s.Options, func(o *Option) {
			f.s(QuoteIdent(o.Name))
			if o.Value != nil {
				f.s(" ")
				f.optionValue(o.Value)
			}
		})
		f.s(")")
	}
	f.where(s.Where)
}

// options writes word and (name = value, ...), if there are any.
func (f *formatter) options(word string, os []*Option) {
	if len(os) > 0 {
		f.s(word, "(")
		each(f, os, f.option)
		f.s(")")
	}
}

// option writes name = value. A name that is no plain word is a string, which
// every option list takes.
func (f *formatter) option(o *Option) {
	if plainWord(o.Name) {
		f.s(QuoteIdent(o.Name))
	} else {
		f.str(o.Name)
	}
	if o.Value != nil {
		f.s(" = ")
		f.optionValue(o.Value)
	}
}

func (f *formatter) optionValue(v OptionValue) {
	switch v := v.(type) {
	case *OptionWord:
		f.s(v.Text)
	case *OptionType:
		f.typeName(v.Type)
	case *OptionList:
		f.s("(")
		each(f, v.Items, f.optionValue)
		f.s(")")
	case Expr:
		f.expr(v)
	}
}

// utilityOptions writes (name value, ...).
func (f *formatter) utilityOptions(os []*Option) {
	if len(os) == 0 {
		return
	}
	f.s(" (")
	each(f, os, func(o *Option) {
		f.s(QuoteIdent(o.Name))
		if o.Value != nil {
			f.s(" ")
			f.optionValue(o.Value)
		}
	})
	f.s(")")
}
