package table

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

func shared(t testing.TB, sub string) string {
	dir := os.Getenv("PAIMON_SQL_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, sub)
	if _, err := os.Stat(dir); err != nil {
		t.Skip("needs ../shared/" + sub)
	}
	return dir
}

// text writes a value in the canonical form that both sides are brought to.
func text(t types.Type, d types.Datum) string {
	switch v := d.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return strconv.Quote(v)
	case []byte:
		return strconv.Quote(hex.EncodeToString(v))
	case *numeric.Dec:
		return schema.DecimalText(v)
	case float64:
		return floatText(t, v)
	case int64:
		switch t.Kind {
		case types.Date:
			return time.Unix(v*86400, 0).UTC().Format("2006-01-02")
		case types.Time:
			return trimFraction(time.Unix(0, v*1000).UTC().Format("15:04:05.000000"))
		case types.Timestamp, types.TimestampTZ:
			at := time.UnixMicro(v).UTC()
			if t.IsNanos() {
				at = time.Unix(0, v).UTC()
			}
			return trimFraction(at.Format("2006-01-02T15:04:05.000000000"))
		}
		return strconv.FormatInt(v, 10)
	case []types.KV:
		var ps []string
		for _, kv := range v {
			ps = append(ps, text(*t.Key, kv.K)+":"+text(*t.Elem, kv.V))
		}
		sort.Strings(ps)
		return "{" + strings.Join(ps, ",") + "}"
	case []types.Datum:
		var ps []string
		for i, e := range v {
			if t.Kind == types.Row {
				ps = append(ps, text(t.Fields[i].Type, e))
			} else {
				ps = append(ps, text(*t.Elem, e))
			}
		}
		return "[" + strings.Join(ps, ",") + "]"
	}
	return fmt.Sprintf("?%T", d)
}

func floatText(t types.Type, v float64) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	case v == 0:
		v = 0
	}
	bits := 64
	if t.Kind == types.Float4 {
		bits = 32
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}

func trimFraction(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// want is text for a value of an expected file.
func want(t types.Type, v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		if t.Kind == types.Float4 || t.Kind == types.Float8 {
			f, _ := v.Float64()
			if t.Kind == types.Float4 {
				f = float64(float32(f))
			}
			return floatText(t, f)
		}
		return v.String()
	case string:
		switch t.Kind {
		case types.Numeric, types.Date, types.Float4, types.Float8:
			return v
		case types.Time, types.Timestamp, types.TimestampTZ:
			return trimFraction(strings.TrimSuffix(v, "Z"))
		}
		return strconv.Quote(v)
	case []any:
		var ps []string
		for _, e := range v {
			if t.Kind == types.Map {
				kv := e.([]any)
				ps = append(ps, want(*t.Key, kv[0])+":"+want(*t.Elem, kv[1]))
			} else {
				ps = append(ps, want(*t.Elem, e))
			}
		}
		if t.Kind == types.Map {
			sort.Strings(ps)
			return "{" + strings.Join(ps, ",") + "}"
		}
		return "[" + strings.Join(ps, ",") + "]"
	case map[string]any:
		var ps []string
		for _, f := range t.Fields {
			ps = append(ps, want(f.Type, v[f.Name]))
		}
		return "[" + strings.Join(ps, ",") + "]"
	}
	return fmt.Sprintf("?%T", v)
}

// expected reads a jsonl file as canonical rows of the schema.
func expected(t testing.TB, path string, s types.Schema) []string {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, line := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var o map[string]any
		if err := d.Decode(&o); err != nil {
			t.Fatal(err)
		}
		var ps []string
		for _, f := range s {
			v, ok := o[f.Name]
			if !ok {
				ps = append(ps, "absent")
				continue
			}
			ps = append(ps, want(f.Type, v))
		}
		out = append(out, strings.Join(ps, " | "))
	}
	sort.Strings(out)
	return out
}

// readAll reads a scan whole and returns canonical rows, sorted.
//
// It is read four times: what a merge comes to is remembered from the second on.
func readAll(ctx context.Context, tb Table, s Scan, o ReadOptions) (rows []string, sch *schema.Table, err error) {
	if rows, sch, err = readOnce(ctx, tb, s, o); err != nil {
		return nil, nil, err
	}
	for i := range 3 {
		o.Selections = i == 1
		again, _, err := readOnce(ctx, tb, s, o)
		if err != nil {
			return nil, nil, fmt.Errorf("reading once more: %w", err)
		}
		if !slices.Equal(rows, again) && s.Limit <= 0 {
			return nil, nil, fmt.Errorf("read %d differs: %d rows, had %d%s", i+2, len(again), len(rows), diff(again, rows))
		}
	}
	return rows, sch, nil
}

func readOnce(ctx context.Context, tb Table, s Scan, o ReadOptions) (rows []string, sch *schema.Table, err error) {
	plan, err := tb.Plan(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	cols := s.Columns
	if cols == nil {
		for i := range plan.Schema.Fields {
			cols = append(cols, i)
		}
	}
	for _, sp := range plan.Splits {
		rd, err := tb.Read(ctx, s, sp, o)
		if err != nil {
			return nil, nil, err
		}
		for {
			b, err := rd.Next(ctx)
			if err != nil {
				_ = rd.Close()
				return nil, nil, err
			}
			if b == nil {
				break
			}
			if b.Sel != nil && !o.Selections || b.Size() == 0 {
				return nil, nil, fmt.Errorf("batch of %d rows with a selection of %d", b.N, len(b.Sel))
			}
			b = vec.Compact(b)
			if b.N == 0 || o.BatchRows > 0 && b.N > o.BatchRows || len(b.Cols) != len(cols) {
				return nil, nil, fmt.Errorf("batch of %d rows and %d columns", b.N, len(b.Cols))
			}
			for r := range b.N {
				ps := make([]string, len(cols))
				for i := range cols {
					if b.Cols[i].Len() != b.N {
						return nil, nil, fmt.Errorf("column %d has %d of %d rows", i, b.Cols[i].Len(), b.N)
					}
					ps[i] = text(b.Schema[i].Type, vec.DatumAt(b.Cols[i], b.Schema[i].Type, r))
				}
				rows = append(rows, strings.Join(ps, " | "))
			}
		}
		if err := rd.Close(); err != nil {
			return nil, nil, err
		}
	}
	sort.Strings(rows)
	return rows, plan.Schema, nil
}

var selectStar = regexp.MustCompile(`^SELECT \* FROM (\w+)\.(\w+|"[^"]+")( FOR VERSION AS OF ('[^']+'|\d+))?$`)

// ref turns the query of a case into a table directory and a state; false when it
// asks for more than that.
func ref(query string) (dir string, at snapshot.Ref, ok bool) {
	m := selectStar.FindStringSubmatch(query)
	if m == nil {
		return "", at, false
	}
	name := strings.Trim(m[2], `"`)
	name, suffix, has := strings.Cut(name, "$")
	if has {
		if at.Branch, ok = strings.CutPrefix(suffix, "branch_"); !ok || strings.Contains(at.Branch, "$") {
			return "", at, false
		}
	}
	switch v := m[4]; {
	case strings.HasPrefix(v, "'"):
		at.Kind, at.Name = snapshot.Version, strings.Trim(v, "'")
	case v != "":
		at.Kind = snapshot.ID
		at.ID, _ = strconv.ParseInt(v, 10, 64)
	}
	return m[1] + ".db/" + name, at, true
}

type javaCase struct {
	Case, Table, Query, Expected, Loose string
	Rows                                int
}

// TestSmallFixtures reads the few tables of Java Paimon that lie in testdata.
func TestSmallFixtures(t *testing.T) { runJava(t, "testdata", "testdata") }

// TestJavaFixtures reads every table that a plain SELECT * of the cases names.
func TestJavaFixtures(t *testing.T) {
	for _, set := range []string{"fixtures/java", "fixtures/java/legacy-0.9"} {
		runJava(t, set, shared(t, set))
	}
}

func runJava(t *testing.T, set, dir string) {
	raw, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []javaCase
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	env := NewEnv(fileio.NewLocal(filepath.Join(dir, "warehouse")), EnvOptions{VerdictRows: 1})
	defer env.Close()
	c := newTally(t)
	for _, x := range cases {
		if td, at, ok := ref(x.Query); ok {
			c.run(x.Case, Open(env, td), at, func(s types.Schema) []string { return expected(t, filepath.Join(dir, x.Expected), s) }, x.Loose != "")
		}
	}
	c.done(set)
}

// TestCppFixtures does the same with the tables of another project's tests.
func TestCppFixtures(t *testing.T) {
	dir := shared(t, "fixtures/cpp")
	raw, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID, Warehouse, Query, Expected, Status string
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	c := newTally(t)
	for _, x := range cases {
		td, at, ok := ref(x.Query)
		if !ok || x.Status != "verified" && x.Status != "java+spark" {
			continue
		}
		env := NewEnv(fileio.NewLocal(filepath.Join(dir, x.Warehouse)), EnvOptions{VerdictRows: 1})
		c.run(x.ID, Open(env, td), at, func(s types.Schema) []string { return expected(t, filepath.Join(dir, x.Expected), s) }, false)
		env.Close()
	}
	c.done("fixtures/cpp")
}

// tally runs cases and counts what is not honoured yet, by name.
type tally struct {
	t           *testing.T
	r           *rand.Rand
	ok, bad     int
	unsupported map[string]int
}

func newTally(t *testing.T) *tally {
	seed := random.Seed(t)
	return &tally{t: t, r: rand.New(rand.NewPCG(seed, 5)), unsupported: map[string]int{}}
}

func (c *tally) run(name string, tb Table, at snapshot.Ref, exp func(types.Schema) []string, loose bool) {
	ctx := context.Background()
	o := ReadOptions{BatchRows: []int{1, 3, 100, 2048}[c.r.IntN(4)]}
	rows, sch, err := readAll(ctx, tb, Scan{At: at, SkipLevel0: true, Limit: -1}, o)
	var un *fileio.UnsupportedError
	if errors.As(err, &un) {
		c.unsupported[un.Feature]++
		return
	}
	if err != nil {
		c.fail("%s: %v", name, err)
		return
	}
	if slices.ContainsFunc(sch.Fields, func(f types.Field) bool { return f.Type.Kind == types.Variant }) {
		c.unsupported["(test: variant text)"]++
		return
	}
	w := exp(sch.Fields)
	if loose {
		if len(rows) != len(w) {
			c.fail("%s: %d rows, want %d", name, len(rows), len(w))
		}
		return
	}
	if !slices.Equal(rows, w) {
		c.fail("%s: %d rows, want %d%s", name, len(rows), len(w), diff(rows, w))
		return
	}
	// Some columns, in any order.
	cols := c.r.Perm(len(sch.Fields))[:c.r.IntN(len(sch.Fields)+1)]
	some, _, err := readAll(ctx, tb, Scan{At: at, Columns: cols, SkipLevel0: true, Limit: -1}, o)
	if err != nil {
		c.fail("%s columns %v: %v", name, cols, err)
		return
	}
	var fields types.Schema
	for _, i := range cols {
		fields = append(fields, sch.Fields[i])
	}
	if w := exp(fields); !slices.Equal(some, w) {
		c.fail("%s columns %v: %d rows, want %d%s", name, cols, len(some), len(w), diff(some, w))
		return
	}
	c.ok++
}

func (c *tally) fail(format string, args ...any) {
	if c.bad++; c.bad <= 25 {
		c.t.Errorf(format, args...)
	}
}

func (c *tally) done(set string) {
	c.t.Logf("%s: %d cases equal, %d not, not honoured: %v", set, c.ok, c.bad, c.unsupported)
	if c.ok == 0 {
		c.t.Errorf("%s: no case was compared", set)
	}
	if c.bad > 25 {
		c.t.Errorf("%d more differ", c.bad-25)
	}
}

func diff(got, want []string) string {
	var b strings.Builder
	seen := map[string]int{}
	for _, r := range want {
		seen[r]++
	}
	n := 0
	for _, r := range got {
		if seen[r]--; seen[r] < 0 && n < 3 {
			n++
			fmt.Fprintf(&b, "\n   got  %.300s", r)
		}
	}
	n = 0
	for _, r := range want {
		if seen[r] > 0 && n < 3 {
			seen[r]--
			n++
			fmt.Fprintf(&b, "\n   want %.300s", r)
		}
	}
	return b.String()
}
