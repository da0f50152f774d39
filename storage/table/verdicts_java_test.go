package table

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileindex"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// indexTypes are the types that some kind of index is for, and more.
var indexTypes = []string{"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(9, 2)", "DECIMAL(18, 0)", "DECIMAL(18, 18)", "DECIMAL(30, 4)",
	"DATE", "TIME(0)", "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE",
	"CHAR(8)", "VARCHAR(20)", "STRING", "BINARY(4)", "VARBINARY(9)", "BYTES"}

// rankedDatum is the i-th value of a type in its order, around zero where it has one.
// Those of floats end in infinity and NaN.
func rankedDatum(t types.Type, i int64) types.Datum {
	switch t.Kind {
	case types.Bool:
		return i%2 == 0
	case types.TinyInt, types.Int2, types.Int4, types.Int8:
		return i - 9
	case types.Float4, types.Float8:
		switch f := float64(i-9) / 4; {
		case i == 25:
			return math.Inf(1)
		case i > 25:
			return math.NaN()
		case i == 0:
			return math.Inf(-1)
		case i == 9:
			return math.Copysign(0, -1)
		default:
			return f
		}
	case types.Numeric:
		d := &numeric.Dec{Scale: int32(t.Scale)}
		d.Coef.SetInt64((i - 9) * 104729)
		if t.Prec > 18 {
			d.Coef.Mul(&d.Coef, big.NewInt(1_000_000_007))
		}
		return d
	case types.Date:
		return i*3 - 20
	case types.Time:
		return i * 2_000_000_000
	case types.Timestamp, types.TimestampTZ:
		at := (i - 9) * 86_399_000_000 // around 1970
		switch {
		case t.IsNanos():
			return at*1000 + i%3
		case t.Prec == 6:
			return at + i%7
		case t.Prec == 3:
			return at + i%7*1000
		}
		return at
	case types.Bytea:
		b := []byte{byte(i), 0x80, 0, byte(i * 31)}
		if t.Lake == types.LakeDefault {
			b = append(b, make([]byte, i%5)...)
		}
		return b
	}
	s := []string{"", "a", "aé", "b", "b\U0001F600", "b\uFFFD", "é", "z"}[i/4%8]
	return s + strings.Repeat("0", int(i%4))
}

// randomQuestion asks for values of a column that occur, nearly occur or do not.
func randomQuestion(r *rand.Rand, s types.Schema, col int, op predicate.Op) *predicate.Leaf {
	l := leafOn(s, col, op)
	n := map[predicate.Op]int{predicate.IsNull: 0, predicate.IsNotNull: 0, predicate.In: 1 + r.IntN(5), predicate.NotIn: 1 + r.IntN(5), predicate.Between: 2}
	k, ok := n[op]
	if !ok {
		k = 1
	}
	from := r.Int64N(30)
	for i := range k {
		v := from
		if op == predicate.Between {
			v += int64(i) * r.Int64N(8)
		} else if i > 0 {
			v = r.Int64N(30)
		}
		l.Args = append(l.Args, rankedDatum(l.Type, v))
	}
	if op == predicate.StartsWith {
		rs := []rune(l.Args[0].(string))
		l.Args[0] = string(rs[:r.IntN(len(rs)+1)])
	}
	return l
}

// javaErrs says why Java 1.4.2 leaves out rows that match, or may leave out more than SQL
// allows; "" = it does not.
func javaErrs(kind string, n predicate.Node) (reason string) {
	predicate.Walk(n, func(l *predicate.Leaf) {
		switch {
		case l.Type.IsNanos() && (kind == "bitmap" || kind == "bsi"):
			reason = "these indexes hold microseconds, and Java compares as if they were all"
		case kind == "range-bitmap" && l.Op == predicate.IsNull:
			reason = "of a file without values it names the first and the last row only"
		case l.Type.Kind == types.BpChar:
			reason = "spaces at the end do not count in SQL"
		}
		for _, a := range l.Args {
			if f, ok := a.(float64); ok && f == 0 {
				reason = "to Java -0.0 is below 0.0"
			}
		}
	})
	return reason
}

// TestJavaAsksIndexes has Java ask every kind of index, over every type that it is for,
// in the manifest and in files of their own, as they are written here: it finds the same
// rows, and what it rules out is ruled out here.
func TestJavaAsksIndexes(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 9))
	oracle.Java(t, "")
	for _, kind := range []string{"bloom-filter", "bitmap", "bsi", "range-bitmap"} {
		cols, asked := []string{"k BIGINT"}, []string{}
		for i, ty := range indexTypes {
			f := fieldOfType(t, 0, "x", ty)
			cols = append(cols, fmt.Sprintf("c%d %s", i, ty))
			if fileindex.KindOf(kind).Supports(f.Type) {
				asked = append(asked, fmt.Sprintf("c%d", i))
			}
		}
		for _, inside := range []bool{true, false} {
			o := map[string]string{"file-index." + kind + ".columns": strings.Join(asked, ","), "file-index.in-manifest-threshold": "1 b", "metadata.stats-mode": "none"}
			if inside {
				o["file-index.in-manifest-threshold"], o["deletion-vectors.enabled"] = "10 mb", "true"
			}
			for _, a := range asked {
				p := "file-index." + kind + "." + a
				switch {
				case kind == "bloom-filter":
					o[p+".items"], o[p+".fpp"] = "50", "0.001"
				case kind == "bitmap" && inside:
					o[p+".version"] = "1"
				case kind == "range-bitmap" && inside:
					o[p+".chunk-size"] = "16 b"
				}
			}
			name := fmt.Sprintf("%s, in the manifest %v", kind, inside)
			t.Run(name, func(t *testing.T) { javaAsks(t, r, kind, o, cols, asked) })
		}
	}
}

func javaAsks(t *testing.T, r *rand.Rand, kind string, o map[string]string, cols, asked []string) {
	dir := t.TempDir()
	java := oracle.Java(t, dir)
	c := newCompactTable(t, fileio.NewLocal(dir), tableSchema(t, o, nil, cols...), EnvOptions{})
	s := c.sch.Fields
	next := int64(0)
	for f := range int64(4) {
		var rows [][]types.Datum
		for range 40 {
			row := []types.Datum{next}
			next++
			for _, x := range s[1:] {
				var d types.Datum
				if r.IntN(8) > 0 && f < 3 { // the last file has only NULL
					d = rankedDatum(x.Type, f*9+r.Int64N(6)+r.Int64N(2)*4)
				}
				row = append(row, d)
			}
			rows = append(rows, row)
		}
		c.append(rows)
	}
	if o["deletion-vectors.enabled"] == "true" {
		if err := c.deleteWhere(func(k int64) bool { return k%11 == 3 }); err != nil {
			t.Fatal(err)
		}
	}
	c.javaAgrees(java, kind)
	count := &verdictCount{}
	ops := []predicate.Op{predicate.Eq, predicate.NotEq, predicate.Lt, predicate.LtEq, predicate.Gt, predicate.GtEq, predicate.In, predicate.NotIn, predicate.IsNull, predicate.IsNotNull,
		predicate.Between, predicate.StartsWith}
	question := func(col int, op predicate.Op) predicate.Node {
		if op == predicate.StartsWith && !s[col].Type.IsTextLike() {
			op = predicate.Eq
		}
		return randomQuestion(r, s, col, op)
	}
	for _, name := range asked {
		col := s.Index(name)
		var ns []predicate.Node
		for _, op := range ops {
			if kind != "bloom-filter" || op == predicate.Eq || op == predicate.In || op == predicate.IsNull {
				ns = append(ns, question(col, op))
			}
		}
		other := s.Index(asked[r.IntN(len(asked))])
		a, b := question(col, ops[r.IntN(len(ops))]), question(other, ops[r.IntN(len(ops))])
		ns = append(ns, &predicate.And{Args: []predicate.Node{a, b}}, &predicate.Or{Args: []predicate.Node{a, b}})
		if testkit.Factor() == 1 {
			r.Shuffle(len(ns), func(i, j int) { ns[i], ns[j] = ns[j], ns[i] })
			ns = append(ns[:min(len(ns), 2)], randomQuestion(r, s, col, predicate.Eq), randomQuestion(r, s, col, predicate.In)) // others in other runs
		}
		before := count.skips + count.rows
		for _, n := range ns {
			when := fmt.Sprintf("%s over %s: %s", kind, types.PaimonString(s[col].Type), describe(n))
			reason := javaErrs(kind, n)
			plan, err := planOf(t, java, "db.t", n)
			if err != nil {
				t.Errorf("%s: %v", when, err)
				continue
			}
			count.skips += plan.skipped
			count.agree(t, when, c.s, n, plan, reason)
			var theirs []struct{ K int64 }
			if err := json.Unmarshal(java.Do(t, map[string]any{"cmd": "read", "table": "db.t", "filter": javaFilter(n), "projection": []string{"k"}})["rows"], &theirs); err != nil {
				t.Fatal(err)
			}
			read := []int{0, col, other}
			ours, _, err := readOnce(t.Context(), c.s, Scan{Filter: n, Columns: read, Limit: -1}, ReadOptions{Filter: newTreeFilter(n, read)})
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			var us, them []string
			for _, row := range ours {
				k, _, _ := strings.Cut(row, " | ")
				us = append(us, k)
			}
			for _, row := range theirs {
				them = append(them, fmt.Sprint(row.K))
			}
			slices.Sort(us)
			slices.Sort(them)
			if !slices.Equal(us, them) && reason == "" {
				t.Errorf("%s: rows %v, Java's are %v", when, us, them)
			}
		}
		if count.skips+count.rows == before {
			t.Errorf("Java has nothing to say of %s over %s", kind, types.PaimonString(s[col].Type))
		}
	}
	t.Logf("%d columns, %+v", len(asked), *count)
}
