// Package keytable plays random histories of a primary-key table: writes of every
// row kind, late rows, compactions, overwrites, rescales and schema changes, under
// options drawn at random, against an obvious model in memory, and with Java
// Paimon taking turns on the same table.
//
// PAIMON_SQL_SEED repeats a run, PAIMON_SQL_SEQUENCES says how many histories.
package keytable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// rows collects a result as text.
type rows struct {
	cols []engine.Column
	out  [][]string
}

func (c *rows) Columns(cols []engine.Column) error { c.cols, c.out = cols, nil; return nil }

func (c *rows) Batch(_ context.Context, b *vec.Batch) error {
	b = vec.Compact(b)
	for i := range b.N {
		r := make([]string, len(c.cols))
		for k := range r {
			switch d := vec.DatumAt(b.Cols[k], c.cols[k].Type, i).(type) {
			case nil:
				r[k] = "-"
			default:
				r[k] = fmt.Sprint(d)
			}
		}
		c.out = append(c.out, r)
	}
	return nil
}
func (c *rows) Complete(string) error       { return nil }
func (c *rows) Empty() error                { return nil }
func (c *rows) Notice(*pgerr.Error)         {}
func (c *rows) ParameterStatus(_, _ string) {}

// story is one history of one table.
type story struct {
	c     *config
	m     *model
	d     *drawer
	name  string
	e     *engine.Engine
	s     *engine.Session
	java  *oracle.Client // nil = we alone
	log   []string       // what was done
	added int            // columns that ALTER TABLE added
	wide  bool           // z is bigint by now

	changes  []string         // rows written since the changelog was last looked at
	shadow   map[string]entry // state by the changelog, by key
	shadowAt int64
}

// failure ends a story.
type failure struct{ error }

func (s *story) fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func (s *story) note(format string, args ...any) { s.log = append(s.log, fmt.Sprintf(format, args...)) }

func (s *story) sql(q string) [][]string {
	out, err := s.try(q)
	if err != nil {
		s.fail("%s: %v", q, err)
	}
	return out
}

func (s *story) try(q string) ([][]string, error) {
	c := &rows{}
	err := s.s.Query(context.Background(), q, c)
	return c.out, err
}

// play runs a story; the error says what went wrong and how it came to that.
func (s *story) play(steps int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("%w\n%s\n%s", f.error, s.c.create(s.name), strings.Join(s.log, "\n"))
		}
	}()
	s.sql(s.c.create(s.name))
	if s.c.base {
		s.base()
	}
	for i := range steps {
		s.step()
		if i%2 == 1 || i == steps-1 {
			s.check()
		}
	}
	s.compact(s.d.r.IntN(2) == 0)
	s.check()
	s.checkJava()
	s.sql("drop table " + s.name)
	return nil
}

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
	rel, err := s.e.Catalog().Resolve(context.Background(), "d", s.name, catalog.ResolveOptions{FreshReads: true})
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
		if _, err := s.java.Try(map[string]any{"cmd": "compact", "table": "d." + s.name, "mode": mode}); err != nil {
			s.fail("%v", err)
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

// settle looks at the changelog before something that has none.
func (s *story) settle() {
	switch s.c.producer {
	case "lookup", "full-compaction":
		s.compact(true)
	case "input":
		s.checkChangelog()
	}
}

// skip goes on with the changelog behind what has none.
func (s *story) skip() {
	s.changes = nil
	s.shadow = s.state()
	s.shadowAt = s.latest()
}

func (s *story) state() map[string]entry {
	out := map[string]entry{}
	for _, e := range s.m.rows {
		if e.live {
			text := s.c.text(e.row)
			out[s.shadowID(strings.Split(text, "|"))] = entry{row: row{"text": text}}
		}
	}
	return out
}

// shadowID is the key of a row of a changelog. A move to another partition is a
// delete there and an insert here.
func (s *story) shadowID(vals []string) string {
	if s.c.part == "none" {
		return vals[0]
	}
	return vals[1] + "|" + vals[0]
}

func (s *story) latest() int64 {
	out := s.sql(`select coalesce(max(snapshot_id), 0) from "` + s.name + `$snapshots"`)
	n, _ := strconv.ParseInt(out[0][0], 10, 64)
	return n
}

func (s *story) rescale() {
	if s.c.opts["bucket"] == "-1" || s.c.opts["bucket"] == "" && s.c.part == "cross" {
		return
	}
	s.settle()
	n := s.d.pick("rescale to", "1", "2", "3", "5")
	s.note("rescale to %s", n)
	if s.latest() == 0 {
		s.sql(fmt.Sprintf("alter table %s set ('bucket' = '%s')", s.name, n))
		return
	}
	s.sql(fmt.Sprintf("alter table %s set ('bucket' = '%s')", s.name, n))
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

func texts(out [][]string) []string {
	l := make([]string, len(out))
	for i, r := range out {
		l[i] = strings.Join(r, "|")
	}
	sort.Strings(l)
	return l
}

func (s *story) same(what string, got, want []string) {
	if slices.Equal(got, want) {
		return
	}
	var b strings.Builder
	for _, g := range got {
		if !slices.Contains(want, g) {
			fmt.Fprintf(&b, "  unexpected %s\n", g)
		}
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			fmt.Fprintf(&b, "  missing    %s\n", w)
		}
	}
	s.fail("%s: %d rows, want %d (%s)\n%s", what, len(got), len(want), strings.Join(s.c.columns(), "|"), b.String())
}

// check compares the table with the model, by scans and by lookups.
func (s *story) check() {
	cols := strings.Join(s.c.columns(), ", ")
	s.same("scan", texts(s.sql("select "+cols+" from "+s.name)), s.m.live())
	var where []string
	keep := func(cond string, f func(r row) bool) {
		var want []string
		for _, e := range s.m.rows {
			if e.live && f(e.row) {
				want = append(want, s.c.text(e.row))
			}
		}
		sort.Strings(want)
		where = append(where, cond)
		s.same("where "+cond, texts(s.sql(fmt.Sprintf("select %s from %s where %s", cols, s.name, cond))), want)
	}
	r := s.d.r
	key := func(k int64) string {
		if s.c.part == "key" {
			return fmt.Sprintf("p = 'a' and k = %d", k)
		}
		return fmt.Sprintf("k = %d", k)
	}
	inA := func(x row) bool { return s.c.part != "key" || x["p"] == "a" }
	for range 3 {
		k := int64(r.IntN(keys))
		keep(key(k), func(x row) bool { return inA(x) && x["k"] == k })
	}
	lo := int64(r.IntN(20))
	keep(fmt.Sprintf("a > %d", lo), func(x row) bool { return x["a"] != nil && x["a"].(int64) > lo })
	keep(fmt.Sprintf("k between %d and %d and b is not null", lo, lo+4), func(x row) bool {
		return x["k"].(int64) >= lo && x["k"].(int64) <= lo+4 && x["b"] != nil
	})
	if n := s.sql("select count(*) from " + s.name)[0][0]; n != fmt.Sprint(len(s.m.live())) {
		s.fail("count(*) is %s, want %d", n, len(s.m.live()))
	}
	if s.c.producer == "input" {
		s.checkChangelog()
	}
}

// checkChangelog reads what the changelog says since it was last looked at.
func (s *story) checkChangelog() {
	now := s.latest()
	if s.shadow == nil {
		s.shadow = map[string]entry{}
	}
	cols := s.c.columns()
	var all []string
	for at := s.shadowAt; at < now; at++ {
		got := s.sql(fmt.Sprintf("select rowkind, %s from paimon_incremental_query('%s$audit_log', %d, %d, 'changelog')",
			strings.Join(cols, ", "), s.name, at, at+1))
		sort.SliceStable(got, func(i, j int) bool { return got[i][0][0] == '-' && got[j][0][0] == '+' })
		for _, g := range got {
			all = append(all, g[0]+" "+strings.Join(g[1:], "|"))
			if s.c.producer != "input" {
				s.follow(g[0], g[1:])
			}
		}
	}
	s.shadowAt = now
	if s.c.producer == "input" {
		if s.c.part == "cross" { // rows are logged in the partition that they go to
			s.changes = nil
			return
		}
		sort.Strings(all)
		sort.Strings(s.changes)
		s.same("changelog", all, s.changes)
		s.changes = nil
		return
	}
	var got []string
	for _, e := range s.shadow {
		got = append(got, e.row["text"].(string))
	}
	sort.Strings(got)
	if s.level0() {
		return // what is there has no changelog yet
	}
	s.same("changelog applied", got, s.m.live())
}

// level0 reports whether rows wait for a compaction: for one that looks up, or
// for a full one.
func (s *story) level0() bool {
	cond := "level = 0"
	if s.c.producer == "full-compaction" {
		cond = "level <> (select max(level) from \"" + s.name + "$files\") or level = 0"
	}
	return s.sql(`select count(*) from "` + s.name + `$files" where ` + cond)[0][0] != "0"
}

// follow applies one row of a changelog to the shadow.
func (s *story) follow(kind string, vals []string) {
	id := s.shadowID(vals)
	text := strings.Join(vals, "|")
	old, ok := s.shadow[id]
	switch kind {
	case "+I", "+U":
		if kind == "+I" && ok {
			s.fail("changelog: +I %s, but there is %v", text, old.row["text"])
		}
		s.shadow[id] = entry{row: row{"text": text}}
	case "-U", "-D":
		if !ok || old.row["text"] != text {
			s.fail("changelog: %s %s, but there is %v", kind, text, old.row["text"])
		}
		delete(s.shadow, id)
	default:
		s.fail("row kind %q", kind)
	}
}

// checkJava has Java read the table and examine it.
func (s *story) checkJava() {
	if s.java == nil {
		return
	}
	if s.c.lookup {
		// Java's reads leave level 0 out; a gentle compaction does, too.
		s.sql(fmt.Sprintf("call sys.compact('d.%s', compact_strategy => 'minor')", s.name))
		if s.level0() {
			s.sql(fmt.Sprintf("call sys.compact('d.%s', compact_strategy => 'full')", s.name))
		}
	}
	rep, err := s.java.Try(map[string]any{"cmd": "read", "table": "d." + s.name})
	if err != nil {
		s.fail("%v", err)
	}
	var list []map[string]any
	if err := json.Unmarshal(rep["rows"], &list); err != nil {
		s.fail("%v", err)
	}
	var got []string
	for _, x := range list {
		for k, v := range x {
			if f, ok := v.(float64); ok {
				x[k] = int64(f)
			}
		}
		got = append(got, s.c.text(x))
	}
	sort.Strings(got)
	s.same("java", got, s.m.live())
	rep, err = s.java.Try(map[string]any{"cmd": "check", "table": "d." + s.name, "deep": true, "read": true})
	if err != nil {
		s.fail("%v", err)
	}
	var problems []struct{ Severity, Kind, Where, Object, Detail string }
	if err := json.Unmarshal(rep["problems"], &problems); err != nil {
		s.fail("%v", err)
	}
	for _, p := range problems {
		if p.Severity != "info" {
			s.fail("java check: %+v", p)
		}
	}
}

// player opens an engine for stories.
func player(t *testing.T, io fileio.FileIO, dir string) (*engine.Engine, *engine.Session) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{Warehouse: dir, FileIO: io, AnyDatabase: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.OpenSession(t.Context(), engine.Startup{User: "tester", Database: "paimon"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		e.Close() //nolint:errcheck // the test is over
	})
	for _, q := range []string{"create schema d", "set search_path = d"} {
		if err := s.Query(t.Context(), q, &rows{}); err != nil {
			t.Fatal(err)
		}
	}
	return e, s
}

func seed(t *testing.T) uint64 {
	n := rand.Uint64()
	if v := os.Getenv("PAIMON_SQL_SEED"); v != "" {
		n, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Logf("PAIMON_SQL_SEED=%d", n)
	return n
}

func sequences(def int) int {
	if n, err := strconv.Atoi(os.Getenv("PAIMON_SQL_SEQUENCES")); err == nil {
		return n
	}
	return def
}

// one plays story number i of a seed. PAIMON_SQL_STORY plays one only.
func one(seed uint64, i int, cov coverage, e *engine.Engine, s *engine.Session, java *oracle.Client) error {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	c := draw(r, cov, java != nil)
	st := &story{c: c, m: newModel(c), d: &drawer{r, cov}, name: fmt.Sprintf("t%d", i), e: e, s: s, java: java}
	if err := st.play(6 + r.IntN(9)); err != nil {
		return fmt.Errorf("story %d of seed %d: %w", i, seed, err)
	}
	return nil
}

const maxFailures = 5

// TestAgainstModel plays stories on both cores.
func TestAgainstModel(t *testing.T) {
	seed, n := seed(t), sequences(150)
	from := 0
	if v, err := strconv.Atoi(os.Getenv("PAIMON_SQL_STORY")); err == nil {
		from, n = v, v+1
	}
	workers := runtime.GOMAXPROCS(0)
	covs := make([]coverage, workers)
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for w := range workers {
		covs[w] = coverage{}
		e, s := player(t, fileio.NewMem(), "mem")
		wg.Go(func() {
			for i := from + w; i < n; i += workers {
				err := one(seed, i, covs[w], e, s, nil)
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
				}
				stop := len(errs) >= maxFailures
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	all := coverage{}
	for _, c := range covs {
		for name, vs := range c {
			for v, k := range vs {
				for range k {
					all.note(name, v)
				}
			}
		}
	}
	t.Logf("%d stories; values drawn:\n%s", n-from, all)
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// TestTurnsWithJava plays stories in which Java Paimon writes and compacts the same
// tables.
func TestTurnsWithJava(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "warehouse")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	java := oracle.Java(t, dir)
	seed, n := seed(t), sequences(12)
	from := 0
	if v, err := strconv.Atoi(os.Getenv("PAIMON_SQL_STORY")); err == nil {
		from, n = v, v+1
	}
	e, s := player(t, nil, dir)
	cov := coverage{}
	failures := 0
	for i := from; i < n && failures < maxFailures; i++ {
		if err := one(seed, i, cov, e, s, java); err != nil {
			failures++
			t.Error(err)
		}
	}
	t.Logf("%d stories; values drawn:\n%s", n-from, cov)
}
