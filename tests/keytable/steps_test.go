package keytable

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// base makes a big file at the highest level: what comes after it is compacted
// without it, level by level.
func (s *story) base() {
	var list []change
	for k := range int64(keys + 150) {
		if k >= keys {
			k += 1000
		}
		kind, x, ok := s.nextOf(k)
		if !ok {
			continue
		}
		if k >= keys && x["b"] != nil {
			for len(x["b"].(string)) < 300 {
				x["b"] = x["b"].(string) + string(rune('a'+s.d.r.IntN(26)))
			}
		}
		list = append(list, change{kind, x})
		s.m.apply(kind, x)
		if s.c.producer == "input" {
			s.changes = append(s.changes, kind+" "+s.c.text(x))
		}
	}
	s.note("a base of %d rows, which begins with", len(list))
	for _, c := range list[:keys] {
		s.note("  %s %s", c.kind, s.c.text(c.row))
	}
	s.writeAPI(list)
	s.compact(true)
}

func (s *story) step() {
	dedupe := s.c.engine == "deduplicate"
	switch n := s.d.r.IntN(100); {
	case n < 62:
		s.write()
	case n < 72:
		s.compact(false)
	case n < 80:
		s.compact(true)
	case n < 84:
		s.overwrite()
	case n < 88:
		s.rescale()
	case n < 92:
		s.alter()
	case n < 96 && dedupe:
		s.update()
	case dedupe && s.c.delete == "row":
		s.deleteOne()
	default:
		s.write()
	}
}

// value draws a value of a column.
func (s *story) value(f field) any {
	r := s.d.r
	if r.IntN(5) == 0 {
		return nil
	}
	if s.c.agg[f.name] == "product" {
		return []int64{-1, 1, 2}[r.IntN(3)]
	}
	switch f.typ {
	case "int", "bigint":
		return int64(r.IntN(26) - 5)
	case "text":
		return string(rune('a' + r.IntN(6)))
	case "boolean":
		return r.IntN(2) == 0
	}
	panic(f.typ)
}

const keys = 24

// next draws a row for a key and its kind; false when the key is to be left alone.
func (s *story) next() (string, row, bool) { return s.nextOf(int64(s.d.r.IntN(keys))) }

func (s *story) nextOf(k int64) (string, row, bool) {
	c, r := s.c, s.d.r
	x := row{"k": k}
	if c.part != "none" {
		x["p"] = string(rune('a' + r.IntN(2)))
	}
	e := s.m.rows[s.m.id(x)]
	if e != nil && c.part == "cross" && (e.removed || !e.live) {
		x["p"] = e.part
	}
	whole := false
	if e != nil && e.removed {
		if c.engine == "aggregation" || len(c.groups) > 0 {
			return "", nil, false
		}
		whole = true
	}
	kind := "+I"
	if e != nil && e.live && c.delete != "none" && r.IntN(5) == 0 {
		kind = "-D"
	}
	for _, f := range c.fields {
		x[f.name] = s.value(f)
		for whole && x[f.name] == nil {
			x[f.name] = s.value(f)
		}
	}
	s.order(x, e)
	if kind == "-D" {
		s.retract(x, e)
	}
	return kind, x, true
}

// order draws the sequence of a row.
func (s *story) order(x row, e *entry) {
	c, r := s.c, s.d.r
	free := c.late && (e == nil || !e.strict)
	if len(c.seq) > 0 {
		for _, f := range c.seq {
			x[f] = int64(r.IntN(10))
			if free && r.IntN(10) == 0 {
				x[f] = nil
			}
		}
		if !free && e != nil && e.floor != nil {
			step := int64(r.IntN(3))
			if c.desc {
				step = -step
			}
			if e.floor[0] == nil {
				x[c.seq[0]] = int64(5)
			} else if x[c.seq[0]] = e.floor[0].(int64) + step; step == 0 {
				for i, f := range c.seq {
					x[f] = e.floor[i]
				}
			}
		}
	}
	for i, g := range c.groups {
		if r.IntN(3) == 0 {
			for _, f := range slices.Concat(g.order, g.cols) {
				x[f] = nil
			}
			continue
		}
		for _, f := range g.order {
			x[f] = int64(r.IntN(10))
		}
		if e != nil && e.strict && e.high != nil && e.high[i] != nil {
			x[g.order[0]] = e.high[i][0].(int64) + 1
		}
	}
}

// retract makes x a row that takes something of e away.
func (s *story) retract(x row, e *entry) {
	c := s.c
	if c.part == "cross" {
		x["p"] = e.row["p"]
	}
	switch c.delete {
	case "row":
		if c.engine != "deduplicate" {
			for _, f := range c.fields {
				if !slices.Contains(c.seq, f.name) {
					x[f.name] = nil
				}
			}
		}
	case "retract":
		for _, f := range c.fields {
			if c.agg[f.name] == "" {
				x[f.name] = nil
			}
		}
	case "group":
		g := c.groups[s.d.r.IntN(len(c.groups))]
		i := slices.IndexFunc(c.groups, func(h group) bool { return h.order[0] == g.order[0] })
		for _, f := range c.fields {
			x[f.name] = nil
		}
		for k, f := range g.order {
			x[f] = int64(s.d.r.IntN(10))
			if e.high != nil && e.high[i] != nil && k == 0 {
				if v, ok := e.high[i][0].(int64); ok {
					x[f] = v + 1
				}
			}
		}
	}
}

type change struct {
	kind string
	row  row
}

// write adds some rows in one commit.
func (s *story) write() {
	r := s.d.r
	var list []change
	for range 1 + r.IntN(14) {
		kind, x, ok := s.next()
		if !ok {
			continue
		}
		id := s.m.id(x)
		if e := s.m.rows[id]; kind == "+I" && s.c.engine == "deduplicate" && e != nil && e.live && len(s.c.seq) == 0 && r.IntN(4) == 0 {
			// An update as a source of changes has it.
			old := clone(e.row)
			if s.c.part == "cross" {
				x["p"] = old["p"]
			}
			list = append(list, change{"-U", old})
			s.m.apply("-U", old)
			kind = "+U"
		}
		list = append(list, change{kind, x})
		s.m.apply(kind, x)
	}
	if len(list) == 0 {
		return
	}
	plain := !slices.ContainsFunc(list, func(c change) bool { return c.kind != "+I" })
	how := "api"
	switch n := r.IntN(10); {
	case s.java != nil && n < 5:
		how = "java"
	case plain && n < 8:
		how = "sql"
	}
	s.d.cov.note("written by", how)
	s.note("write by %s:", how)
	for _, c := range list {
		s.d.cov.note("row kind", c.kind)
		s.note("  %s %s", c.kind, s.c.text(c.row))
		if s.c.producer == "input" && !(c.kind[0] == '-' && s.c.delete == "ignore") && !(c.kind == "-U" && s.c.opts["ignore-update-before"] != "") {
			s.changes = append(s.changes, c.kind+" "+s.c.text(c.row))
		}
	}
	switch how {
	case "api":
		s.writeAPI(list)
	case "sql":
		s.writeSQL("insert into", "", list)
	case "java":
		s.writeJava(list, nil)
	}
}

func (s *story) store() (catalog.TableInfo, table.Table) {
	rel, err := s.s.Engine.Catalog().Resolve(context.Background(), "d", s.name, catalog.ResolveOptions{FreshReads: true})
	if err != nil {
		s.fail("%v", err)
	}
	t := rel.(catalog.TableInfo)
	return t, t.Table()
}

func (s *story) writeAPI(list []change) {
	ctx := context.Background()
	info, t := s.store()
	acc := mem.NewRoot("", 1<<30)
	defer acc.Close()
	sch, err := t.Schema(ctx, info.At())
	if err != nil {
		s.fail("%v", err)
	}
	b := &vec.Batch{N: len(list), Schema: sch.Fields, Cols: make([]arrow.Array, len(sch.Fields))}
	kinds := make([]uint8, len(list))
	for i, f := range sch.Fields {
		ds := make([]types.Datum, len(list))
		for k, c := range list {
			ds[k] = c.row[f.Name]
			kinds[k] = uint8(slices.Index([]string{"+I", "-U", "+U", "-D"}, c.kind))
		}
		b.Cols[i] = vec.FromDatums(f.Type, ds)
	}
	w, err := t.Write(ctx, table.WriteOptions{At: info.At(), Account: acc})
	if err != nil {
		s.fail("writer: %v", err)
	}
	if err = w.Write(ctx, b, kinds); err != nil {
		s.fail("write: %v", err)
	}
	ch, err := w.Prepare(ctx)
	if err != nil {
		s.fail("prepare: %v", err)
	}
	if _, err := t.Commit(ctx, ch); err != nil {
		s.fail("commit: %v", err)
	}
}

func literal(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case string:
		return "'" + x + "'"
	}
	return fmt.Sprint(v)
}

func (s *story) writeSQL(verb, clause string, list []change) {
	cols := s.c.columns()
	var vals []string
	for _, c := range list {
		one := make([]string, len(cols))
		for i, x := range cols {
			one[i] = literal(c.row[x])
		}
		vals = append(vals, "("+strings.Join(one, ", ")+")")
	}
	s.sql(fmt.Sprintf("%s %s%s (%s) values %s", verb, s.name, clause, strings.Join(cols, ", "), strings.Join(vals, ", ")))
}

func (s *story) writeJava(list []change, more map[string]any) {
	var rs []row
	for _, c := range list {
		x := clone(c.row)
		x["_rowkind"] = c.kind
		rs = append(rs, x)
	}
	cmd := map[string]any{"cmd": "write", "table": "d." + s.name, "rows": rs}
	for k, v := range more {
		cmd[k] = v
	}
	if _, err := s.java.Try(cmd); err != nil {
		s.fail("%v", err)
	}
}

// byJava decides who does the next thing.
func (s *story) byJava() bool { return s.java != nil && s.d.r.IntN(2) == 0 }

func (s *story) compact(full bool) {
	mode := "minor"
	if full {
		mode = "full"
	}
	s.d.cov.note("compaction", mode)
	// With full-compaction only a full one makes a changelog; Java's command needs a
	// written bucket for that.
	if s.byJava() {
		s.note("compact %s by java", mode)
		rep, err := s.java.Try(map[string]any{"cmd": "compact", "table": "d." + s.name, "mode": mode})
		if err != nil {
			s.fail("%v", err)
		}
		var made []int64
		if err := json.Unmarshal(rep["snapshots"], &made); err != nil {
			s.fail("%v", err)
		}
		for _, id := range made {
			if full {
				s.javaFull[fmt.Sprintf("snapshot-%d", id)] = true
			}
		}
	} else {
		s.note("compact %s", mode)
		s.sql(fmt.Sprintf("call sys.compact('d.%s', compact_strategy => '%s')", s.name, mode))
	}
	if s.c.producer == "full-compaction" && full || s.c.producer == "lookup" {
		s.checkChangelog()
	}
}

// overwrite replaces the table, or a partition.
func (s *story) overwrite() {
	s.settle()
	var list []change
	part := any(nil)
	if s.c.part != "none" {
		part = string(rune('a' + s.d.r.IntN(2)))
	}
	for id, e := range s.m.rows {
		if part == nil || e.live && e.row["p"] == part || !e.live && e.part == part {
			delete(s.m.rows, id)
		}
	}
	for range 1 + s.d.r.IntN(6) {
		kind, x, ok := s.next()
		if !ok || kind != "+I" {
			continue
		}
		if part != nil {
			if s.c.part == "key" && x["p"] != part {
				continue // its sequence was drawn for a row there
			}
			x["p"] = part
			if e := s.m.rows[s.m.id(x)]; e != nil && s.c.part == "cross" {
				continue // it lives in the other partition
			}
		}
		list = append(list, change{kind, x})
		s.m.apply(kind, x)
	}
	if len(list) == 0 {
		if part == nil {
			s.note("truncate")
			s.sql("truncate table " + s.name)
			s.skip()
			return
		}
		x := row{"k": int64(100), "p": part}
		list = append(list, change{"+I", x})
		s.m.apply("+I", x)
	}
	s.note("overwrite partition %v:", part)
	for _, c := range list {
		s.note("  %s", s.c.text(c.row))
	}
	s.writeSQL("insert overwrite", "", list)
	s.skip()
}

func (s *story) rescale() {
	if s.c.opts["bucket"] == "-1" {
		return
	}
	s.settle()
	n := s.d.pick("rescale to", "1", "2", "3", "5")
	s.note("rescale to %s", n)
	s.sql(fmt.Sprintf("alter table %s set ('bucket' = '%s')", s.name, n))
	if s.latest() == 0 {
		return // there are no files to rescale
	}
	s.sql(fmt.Sprintf("call sys.rescale('d.%s', %s)", s.name, n))
	s.skip()
}

func (s *story) alter() {
	s.settle()
	switch s.d.pick("alter", "add", "widen", "rename") {
	case "add":
		if s.c.late {
			return
		}
		s.added++
		f := field{fmt.Sprintf("x%d", s.added), "int"}
		s.note("add column %s", f.name)
		s.sql(fmt.Sprintf("alter table %s add column %s int", s.name, f.name))
		s.c.fields = append(s.c.fields, f)
	case "widen":
		if s.wide || s.c.agg["z"] != "" {
			return
		}
		s.wide = true
		s.note("widen z")
		s.sql(fmt.Sprintf("alter table %s alter column z type bigint", s.name))
	case "rename":
		if s.added == 0 {
			return
		}
		i := slices.IndexFunc(s.c.fields, func(f field) bool { return strings.HasPrefix(f.name, "x") })
		old := s.c.fields[i].name
		now := old + "r"
		s.note("rename %s to %s", old, now)
		s.sql(fmt.Sprintf("alter table %s rename column %s to %s", s.name, old, now))
		s.c.fields[i].name = now
		for _, e := range s.m.rows {
			if v, ok := e.row[old]; ok {
				delete(e.row, old)
				e.row[now] = v
			}
		}
	}
	s.skip() // rows of older schemas are shown with the new columns
}

// update is an UPDATE of some rows.
func (s *story) update() {
	n := int64(s.d.r.IntN(3))
	s.note("update where k %% 3 = %d", n)
	s.sql(fmt.Sprintf("update %s set a = coalesce(a, 0) + 1, b = 'u' where k %% 3 = %d", s.name, n))
	for _, e := range s.m.rows {
		if e.live && e.row["k"].(int64)%3 == n {
			a, _ := e.row["a"].(int64)
			e.row["a"], e.row["b"] = a+1, "u"
		}
	}
	if s.c.producer == "input" {
		s.changes = nil
		s.shadowAt = s.latest()
	}
}

func (s *story) deleteOne() {
	n := int64(s.d.r.IntN(keys))
	s.note("delete where k = %d", n)
	s.sql(fmt.Sprintf("delete from %s where k = %d", s.name, n))
	for _, e := range s.m.rows {
		if e.live && e.row["k"] == n {
			e.live, e.strict = false, true
		}
	}
	if s.c.producer == "input" {
		s.changes = nil
		s.shadowAt = s.latest()
	}
}
