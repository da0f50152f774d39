package pruning

import (
	"fmt"
	"strings"
)

// predicate draws a condition over the table's columns.
func (t *tab) predicate(depth int) string {
	if depth > 0 && t.r.IntN(3) > 0 {
		switch t.r.IntN(5) {
		case 0, 1:
			return "(" + t.predicate(depth-1) + " and " + t.predicate(depth-1) + ")"
		case 2, 3:
			return "(" + t.predicate(depth-1) + " or " + t.predicate(depth-1) + ")"
		default:
			return "not (" + t.predicate(depth-1) + ")"
		}
	}
	c := &t.cols[t.r.IntN(len(t.cols))]
	if len(c.under) > 0 {
		if t.r.IntN(8) == 0 {
			return c.name + t.pick(" is null", " is not null")
		}
		v := kinds[c.elem]
		c = &column{fmt.Sprintf("%s['%s']", c.name, t.pick(c.under...)), v}
	}
	v := func() string { return c.values[t.r.IntN(len(c.values))] }
	cast := func(s string) string { return "(" + s + ")::" + plain(c.typ) }
	switch n := t.r.IntN(12); {
	case n < 4:
		return fmt.Sprintf("%s %s %s", c.name, t.pick("=", "=", "<", "<=", ">", ">=", "<>"), cast(v()))
	case n < 6:
		var l []string
		for range 1 + t.r.IntN(4) {
			l = append(l, cast(v()))
		}
		return fmt.Sprintf("%s %s (%s)", c.name, t.pick("in", "in", "not in"), strings.Join(l, ", "))
	case n < 7:
		return c.name + t.pick(" is null", " is not null")
	case n < 9:
		return fmt.Sprintf("%s between %s and %s", c.name, cast(v()), cast(v()))
	case n < 10 && len(c.like) > 0:
		return c.name + " like " + c.like[t.r.IntN(len(c.like))]
	case c.typ == "boolean":
		return t.pick("", "not ") + c.name
	}
	return fmt.Sprintf("%s = %s", c.name, cast(v()))
}

// plain is a type without a length that a cast would cut values to.
func plain(typ string) string {
	if typ == "tinyint" {
		return "smallint"
	}
	return typ
}

// question is a query; whole says that its rows are determined, but for their order.
type question struct {
	sql   string
	whole bool
}

// ask draws a query with a predicate.
func (t *tab) ask() question {
	p := t.predicate(2)
	switch t.r.IntN(6) {
	case 0, 1:
		return t.metadata(p)
	case 2:
		if q := t.join(p); q.sql != "" {
			return q
		}
	}
	c := &t.cols[t.r.IntN(len(t.cols))]
	ordered := c.typ != "boolean" && c.typ != "bytea" && c.typ != "uuid" && len(c.under) == 0
	switch n := t.r.IntN(10); {
	case n < 5:
		return question{fmt.Sprintf("select * from %s where %s", t.name, p), true}
	case n < 6:
		return question{fmt.Sprintf("select count(*) from %s where %s", t.name, p), true}
	case n < 7 && ordered:
		return question{fmt.Sprintf("select min(%[1]s), max(%[1]s), count(*), count(%[1]s) from %[2]s where %[3]s", c.name, t.name, p), true}
	case n < 8 && ordered:
		where := t.pick("", " where "+p)
		return question{fmt.Sprintf("select min(%[1]s), max(%[1]s) from %[2]s%[3]s", c.name, t.name, where), true}
	case n < 9 && len(c.under) == 0:
		// Which of equal rows come is open: what they are ordered by is not.
		where := t.pick("", " where "+p)
		list, then := c.name, ""
		if d := &t.cols[t.r.IntN(len(t.cols))]; len(d.under) == 0 && t.r.IntN(2) == 0 {
			list, then = list+", "+d.name, ", "+d.name
		}
		return question{fmt.Sprintf("select %s from %s%s order by %s %s%s limit %d", list, t.name, where, c.name,
			t.pick("", "desc", "nulls first", "desc nulls last"), then, 1+t.r.IntN(5)), true}
	}
	return question{fmt.Sprintf("select * from %s where %s limit %d", t.name, p, 1+t.r.IntN(8)), false}
}

// join asks for rows whose values of a column are among a few, which are only known when
// the question runs: those of another part of the table, of a list, or of both.
func (t *tab) join(p string) question {
	var keys []*column
	for i := range t.cols {
		if len(t.cols[i].under) == 0 {
			keys = append(keys, &t.cols[i])
		}
	}
	if len(keys) == 0 {
		return question{}
	}
	c := keys[t.r.IntN(len(keys))]
	v := func() string { return fmt.Sprintf("(%s)::%s", c.values[t.r.IntN(len(c.values))], plain(c.typ)) }
	few := fmt.Sprintf("(values (%s), (%s)) b (bk)", v(), t.pick(v(), v(), "null"))
	part := fmt.Sprintf("(select distinct %s bk from %s where %s) b", c.name, t.name, p)
	// More values than a filter names one by one.
	many := ""
	switch c.typ {
	case "integer", "bigint":
		many = fmt.Sprintf("(select i * %s bk from generate_series(-3, %d) i) b", t.pick("1", "1", "7::bigint", "1000003::bigint"), 70+t.r.IntN(200))
	case "date":
		many = "(select date '1960-01-01' + i bk from generate_series(0, 5000) i) b"
	case "text":
		many = "(select chr(97 + i % 26) || repeat('b', i % 5) bk from generate_series(1, 400) i) b"
	case "varchar(40)":
		many = "(select (chr(97 + i % 26) || repeat('b', i % 5))::varchar(40) bk from generate_series(1, 400) i) b"
	case "numeric(9,2)":
		many = "(select i / 100.0 bk from generate_series(-200, 200) i) b"
	case "double precision", "real":
		many = "(select i / 4.0::float8 bk from generate_series(-200, 200) i) b"
	}
	b := t.pick(few, few, part, part)
	if many != "" && t.r.IntN(2) == 0 {
		b = many
	}
	where := t.pick("", "", " where "+p)
	and := t.pick("", "", " and "+p)
	var sql string
	switch t.r.IntN(8) {
	case 0, 1:
		sql = fmt.Sprintf("select a.* from %s a join %s on a.%s = b.bk%s", t.name, b, c.name, where)
	case 2, 3:
		sql = fmt.Sprintf("select * from %s where %s in (select bk from %s)%s", t.name, c.name, b, and)
	case 4:
		sql = fmt.Sprintf("select * from %s a where exists (select 1 from %s where b.bk = a.%s)", t.name, b, c.name)
	case 5:
		sql = fmt.Sprintf("select * from %s a where not exists (select 1 from %s where b.bk = a.%s)", t.name, b, c.name)
	case 6:
		sql = fmt.Sprintf("select a.*, b.bk from %s %s join %s a on a.%s = b.bk", b, t.pick("left", "right", "full"), t.name, c.name)
	default:
		sql = fmt.Sprintf("select b.bk from %s where b.bk %s (select %s from %s%s)", b, t.pick("in", "in", "not in"), c.name, t.name, where)
	}
	return question{sql, true}
}
