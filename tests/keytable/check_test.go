package keytable

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

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
			id := s.shadowID(strings.Split(text, "|"))
			if s.c.part == "cross" {
				id += "|" + text
			}
			out[id] = entry{row: row{"text": text}, count: 1}
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
		if s.c.part == "cross" && e.count != 1 {
			got = append(got, fmt.Sprintf("%d times", e.count))
		}
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
	if s.c.part == "cross" {
		// A key that comes back to a partition may come to another bucket: what is said
		// of the two may stand in any order. The rows have to add up.
		id += "|" + strings.Join(vals, "|")
	}
	text := strings.Join(vals, "|")
	old, ok := s.shadow[id]
	if s.c.part == "cross" {
		n := old.count
		if kind[0] == '+' {
			n++
		} else {
			n--
		}
		if s.shadow[id] = (entry{row: row{"text": text}, count: n}); n == 0 {
			delete(s.shadow, id)
		}
		return
	}
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
	stale := map[string]bool{}
	for _, p := range problems {
		// A full compaction by Java rewrites a bucket's only file without its deleted
		// rows, and leaves the file's deletion vector in the index: so it does in a
		// table that nobody else writes. Nobody reads the vector.
		if p.Kind == "dv-without-file" && (s.javaFull[p.Where] || stale[p.Object]) {
			stale[p.Object] = true
			continue
		}
		if p.Severity != "info" {
			s.fail("java check: %+v", p)
		}
	}
}
