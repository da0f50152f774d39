package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// javaVerdict is what the indexes of a data file say in Java: SKIP, REMAIN or ROWS.
type javaVerdict struct {
	Result string
	Rows   []int64
}

// javaPlan is how Java reads a table under a filter.
type javaPlan struct {
	planned []string // data files
	index   map[string]javaVerdict
	skipped int // data files that are not planned because of the filter
}

// verdictCount counts what was compared.
type verdictCount struct {
	filters, ourFiles, javaFiles int // data files that are read in the end
	skips, rows, fewer           int // verdicts SKIP and ROWS of Java, and those where we leave out more
	unsupported                  int
}

// agree compares how we read a table under n with how Java does. Nothing may be skipped
// that must be read: neither with all ways of skipping nor by indexes alone. No file is
// read that Java skips, and of a file of which Java's indexes name rows no other row,
// unless a reason is given.
func (c *verdictCount) agree(t *testing.T, name string, tb *FileStore, n predicate.Node, java javaPlan, reason string) {
	t.Helper()
	ctx := context.Background()
	all := Scan{SkipLevel0: true, Limit: -1}
	plan, err := tb.Plan(ctx, all)
	var un *fileio.UnsupportedError
	if errors.As(err, &un) {
		c.unsupported++
		return
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var cols []int // that n asks about
	predicate.Walk(n, func(l *predicate.Leaf) {
		if !slices.Contains(cols, l.Col) {
			cols = append(cols, l.Col)
		}
	})
	raw := !slices.ContainsFunc(plan.Splits, func(s Split) bool { return !s.Raw })
	if raw { // rows of merges have no position
		all.Columns = append(slices.Clone(cols), PseudoFile, PseudoPos)
	} else {
		all.Columns = cols
		for i := range plan.Schema.Fields {
			if !slices.Contains(cols, i) {
				all.Columns = append(all.Columns, i)
			}
		}
	}
	// where reads under a filter without applying it, or reads all and applies it.
	where := func(s Scan, keep func(b *vec.Batch, i int) bool) (files []string, rows map[string]bool, err error) {
		p, err := tb.Plan(ctx, s)
		if err != nil {
			return nil, nil, err
		}
		for _, sp := range p.Splits {
			for _, f := range sp.Files {
				if !slices.Contains(files, f.Meta.Name) {
					files = append(files, f.Meta.Name)
				}
			}
		}
		rows = map[string]bool{}
		for _, sp := range p.Splits {
			rd, err := tb.Read(ctx, s, sp, ReadOptions{})
			if err != nil {
				return nil, nil, err
			}
			for b, err := rd.Next(ctx); b != nil || err != nil; b, err = rd.Next(ctx) {
				if err != nil {
					_ = rd.Close()
					return nil, nil, err
				}
				for i := range b.N {
					if keep != nil && !keep(b, i) {
						continue
					}
					if raw {
						rows[fmt.Sprintf("%s#%v", filepath.Base(vec.DatumAt(b.Cols[len(cols)], b.Schema[len(cols)].Type, i).(string)), vec.DatumAt(b.Cols[len(cols)+1], b.Schema[len(cols)+1].Type, i))] = true
					} else {
						rows[rowText(b.Cols, i)] = true
					}
				}
			}
			if err := rd.Close(); err != nil {
				return nil, nil, err
			}
		}
		return files, rows, nil
	}
	f := &treeFilter{pos: make([]int, len(plan.Schema.Fields))}
	for i, c := range cols {
		f.pos[c] = i
	}
	_, match, err := where(all, func(b *vec.Batch, i int) bool { return f.eval(n, b.Cols, i) == 1 })
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	all.Filter = n
	for _, without := range []Pruning{0, PrunePages} {
		all.Without = without
		files, rows, err := where(all, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		for r := range match {
			if !rows[r] {
				t.Errorf("%s: %s matches and is skipped (without %d)", name, r, without)
			}
		}
		if without == 0 {
			continue
		}
		c.filters++
		read := map[string]int{}
		for r := range rows {
			file, pos, _ := strings.Cut(r, "#")
			read[file]++
			if v := java.index[file]; raw && v.Result == "ROWS" {
				if p, _ := strconv.ParseInt(pos, 10, 64); !slices.Contains(v.Rows, p) && reason == "" {
					t.Errorf("%s: row %s is read, Java's index leaves it out", name, r)
				}
			}
		}
		for _, f := range files {
			if !slices.Contains(java.planned, f) && reason == "" {
				t.Errorf("%s: %s is read, Java does not plan it", name, f)
			}
			if raw && read[f] > 0 || !raw {
				c.ourFiles++
			}
		}
		for _, f := range java.planned {
			v := java.index[f]
			switch {
			case v.Result == "SKIP" && raw:
				if c.skips++; read[f] > 0 && reason == "" {
					t.Errorf("%s: %s is read, Java's index skips it", name, f)
				}
			case v.Result == "ROWS" && raw:
				c.javaFiles++
				if c.rows++; read[f] < len(v.Rows) {
					c.fewer++ // deletion vectors, statistics, or an index that Java does not ask
				}
			default:
				c.javaFiles++
			}
		}
	}
}

// TestCppCandidates compares which files and rows indexes and statistics leave with what
// Java's left, for the filters of the fixtures.
func TestCppCandidates(t *testing.T) {
	dir := shared(t, "fixtures/cpp")
	raw, err := os.ReadFile(filepath.Join(dir, "cases-filters.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID, Format, Database, Table, Where string
		Planned                            []string               `json:"planned_files"`
		Index                              map[string]javaVerdict `json:"file_index"`
		Differs                            bool                   `json:"java_differs"`
		Error                              any                    `json:"java_error"`
		Note                               string
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	c := &verdictCount{}
	for _, k := range cases {
		env := NewEnv(fileio.NewLocal(filepath.Join(dir, k.Format)), EnvOptions{})
		tb := Open(env, k.Database+".db/"+k.Table)
		sch, err := tb.Schema(context.Background(), snapshot.Ref{})
		if err != nil {
			t.Errorf("%s: %v", k.ID, err)
			continue
		}
		reason := moreThanJava[k.ID]
		switch {
		case k.Error != nil:
			reason = "Java fails"
		case k.Differs:
			reason = k.Note // it loses rows
		}
		c.agree(t, k.ID+": "+k.Where, tb, parseWhere(t, sch.Fields, k.Where), javaPlan{planned: k.Planned, index: k.Index}, reason)
		env.Close()
	}
	t.Logf("%+v", *c)
	if c.skips == 0 || c.rows < 50 || c.filters < 100 {
		t.Error("too few verdicts were compared")
	}
}

// javaFilter writes a predicate as the oracle takes it.
func javaFilter(n predicate.Node) map[string]any {
	list := func(op string, args ...predicate.Node) map[string]any {
		var out []any
		for _, a := range args {
			out = append(out, javaFilter(a))
		}
		return map[string]any{"op": op, "args": out}
	}
	switch n := n.(type) {
	case *predicate.And:
		return list("and", n.Args...)
	case *predicate.Or:
		return list("or", n.Args...)
	case *predicate.Not:
		return list("not", n.Arg)
	}
	l := n.(*predicate.Leaf)
	value := func(d types.Datum) any {
		switch v := d.(type) {
		case float64:
			switch {
			case math.IsNaN(v):
				return "NaN"
			case math.IsInf(v, 0):
				return map[bool]string{true: "Infinity", false: "-Infinity"}[v > 0]
			case v == 0 && math.Signbit(v):
				return json.RawMessage("-0.0")
			}
			return v
		case []byte:
			return fmt.Sprintf("%x", v)
		case int64:
			switch l.Type.Kind {
			case types.Time:
				return text(l.Type, d)
			case types.Timestamp:
				return text(l.Type, d)
			case types.TimestampTZ:
				return text(l.Type, d) + "Z"
			}
		}
		return javaDatum(l.Type, d)
	}
	m := map[string]any{"f": l.Name, "op": map[predicate.Op]string{
		predicate.Eq: "=", predicate.NotEq: "<>", predicate.Lt: "<", predicate.LtEq: "<=", predicate.Gt: ">", predicate.GtEq: ">=", predicate.In: "in", predicate.NotIn: "notin",
		predicate.IsNull: "isnull", predicate.IsNotNull: "isnotnull", predicate.Between: "between", predicate.StartsWith: "startswith",
	}[l.Op]}
	var vs []any
	for _, a := range l.Args {
		vs = append(vs, value(a))
	}
	switch l.Op {
	case predicate.IsNull, predicate.IsNotNull:
	case predicate.In, predicate.NotIn, predicate.Between:
		m["v"] = vs
	default:
		m["v"] = vs[0]
	}
	return m
}

// planOf asks Java how it reads a table under n.
func planOf(t *testing.T, java *oracle.Client, table string, n predicate.Node) (javaPlan, error) {
	t.Helper()
	reply, err := java.Try(map[string]any{"cmd": "plan", "table": table, "filter": javaFilter(n)})
	if err != nil {
		return javaPlan{}, err
	}
	var splits []struct {
		Files []struct {
			File, Index string
			IndexRows   []int64
			IndexError  string
		}
	}
	if err := json.Unmarshal(reply["splits"], &splits); err != nil {
		t.Fatal(err)
	}
	var skipped []struct{ Reason string }
	if err := json.Unmarshal(reply["skipped"], &skipped); err != nil {
		t.Fatal(err)
	}
	out := javaPlan{index: map[string]javaVerdict{}}
	for _, s := range skipped {
		if s.Reason == "filter" {
			out.skipped++
		}
	}
	for _, s := range splits {
		for _, f := range s.Files {
			if f.IndexError != "" {
				err = errors.Join(err, fmt.Errorf("%s: %s", f.File, f.IndexError))
			}
			out.planned = append(out.planned, f.File)
			out.index[f.File] = javaVerdict{f.Index, f.IndexRows}
		}
	}
	return out, err
}

// javaFixtureFilters are the conditions of the fixtures' cases.
func javaFixtureFilters(t *testing.T, s types.Schema, where string) predicate.Node {
	switch where {
	case "n IS NOT NULL AND b":
		where = "n IS NOT NULL AND b = true"
	case "NOT (s = 'alpha')":
		return &predicate.Not{Arg: parseWhere(t, s, "s = 'alpha'")}
	case "k BETWEEN 15 AND 25 AND (v > 'c' OR v IS NULL)":
		return &predicate.And{Args: []predicate.Node{parseWhere(t, s, "k >= 15 AND k <= 25"), parseWhere(t, s, "v > 'c' OR v IS NULL")}}
	case "(v > 'c' AND n < 500) OR d IS NULL":
		where = "v > 'c' AND n < 500 OR d IS NULL"
	}
	if m := regexp.MustCompile(`^(\w+) BETWEEN (\S+) AND (\S+)$`).FindStringSubmatch(where); m != nil {
		where = fmt.Sprintf("%s >= %s AND %s <= %s", m[1], m[2], m[1], m[3])
	}
	return parseWhere(t, s, where)
}

// TestJavaPlansFixtures asks Java how it reads the tables of its fixtures, groups
// file_index, sort_compact and options, under the conditions of their cases: no file is
// read and no row tried here that Java leaves out.
func TestJavaPlansFixtures(t *testing.T) {
	dir := shared(t, "fixtures/java")
	java := oracle.Java(t, filepath.Join(dir, "warehouse"))
	raw, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		javaCase
		Group string
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	env := NewEnv(fileio.NewLocal(filepath.Join(dir, "warehouse")), EnvOptions{})
	defer env.Close()
	c := &verdictCount{}
	groups := map[string]int{}
	for _, k := range cases {
		_, where, ok := strings.Cut(k.Query, " WHERE ")
		if !ok || k.Group != "file_index" && k.Group != "sort_compact" && k.Group != "options" {
			continue
		}
		db, name, _ := strings.Cut(k.Table, ".")
		tb := Open(env, db+".db/"+name)
		sch, err := tb.Schema(context.Background(), snapshot.Ref{})
		if err != nil {
			t.Errorf("%s: %v", k.Case, err)
			continue
		}
		n := javaFixtureFilters(t, sch.Fields, where)
		plan, err := planOf(t, java, k.Table, n)
		if err != nil {
			t.Errorf("%s: %v", k.Case, err)
			continue
		}
		groups[k.Group]++
		c.agree(t, k.Case+": "+where, tb, n, plan, "")
	}
	t.Logf("%v %+v", groups, *c)
	if len(groups) != 3 || c.skips == 0 || c.rows == 0 {
		t.Error("too little was compared")
	}
}
