package datafile

import (
	"context"
	"fmt"
	"maps"
	"math/rand"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/format/formattest"
	"github.com/paimon-sql/paimon-sql/storage/format/parquet"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

func options(s *schema.Table) Options {
	return Options{IO: fileio.NewMem(), Dir: "db.db/t/bucket-0/", Format: parquet.Format{}, Schema: s, Table: s.Options}
}

// TestTruncate tables the bounds of text and bytes.
func TestTruncate(t *testing.T) {
	for _, c := range []struct {
		v, lo, hi types.Datum
		n         int
	}{
		{"", "", "", 3},
		{"abc", "abc", "abc", 3},
		{"abcd", "abc", "abd", 3},
		{"日本語文", "日本語", "日本誟", 3},
		{"ab\U0010ffff\U0010ffffx", "ab\U0010ffff\U0010ffff", "ac", 4},
		{"a\ud7ffx", "a\ud7ff", "a\ue000", 2},
		{"\U0010ffffx", "\U0010ffff", nil, 1},
		{"中文abcdefghijklmnopqrstuvwxyz", "中文abcdefghijklmn", "中文abcdefghijklmo", 16},
		{"a\xffx", "a\xff", nil, 2},
		{[]byte{1, 2, 3}, []byte{1, 2}, []byte{1, 3}, 2},
		{[]byte{1, 0xff, 3}, []byte{1, 0xff}, []byte{2}, 2},
		{[]byte{0xff, 0xff, 3}, []byte{0xff, 0xff}, nil, 2},
		{int64(7), int64(7), int64(7), 1},
	} {
		lo := truncateMin(c.v, c.n)
		hi, ok := truncateMax(c.v, c.n)
		if fmt.Sprint(lo) != fmt.Sprint(c.lo) || ok != (c.hi != nil) || ok && fmt.Sprint(hi) != fmt.Sprint(c.hi) {
			t.Errorf("%q cut to %d: %q to %q", c.v, c.n, lo, hi)
		}
	}
}

// TestModes tables which mode a column has.
func TestModes(t *testing.T) {
	s := types.Schema{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	for _, c := range []struct {
		opts  schema.Options
		key   []string
		level int32
		want  string // per column
	}{
		{nil, nil, 0, "truncate 16, truncate 16, truncate 16"},
		{schema.Options{"metadata.stats-mode": "FULL", "fields.b.stats-mode": "Counts"}, nil, 0, "full, counts, full"},
		{schema.Options{"metadata.stats-keep-first-n-columns": "2", "fields.c.stats-mode": "truncate(4)"}, nil, 0, "truncate 16, truncate 16, truncate 4"},
		{schema.Options{"metadata.stats-keep-first-n-columns": "1"}, []string{"a"}, 0, "truncate 128, truncate 16, none"},
		{schema.Options{"metadata.stats-mode.per.level": "0:none,5:full"}, nil, 0, "none, none, none"},
		{schema.Options{"metadata.stats-mode.per.level": "0:none,5:full"}, nil, 5, "full, full, full"},
		{schema.Options{"metadata.stats-mode": "truncate(0)"}, nil, 0, `option "metadata.stats-mode" is "truncate(0)", not none, counts, full or truncate(n)`},
		{schema.Options{"metadata.stats-mode.per.level": "x"}, nil, 0, `option "metadata.stats-mode.per.level" is "x", not a list such as '0:x,5:y'`},
	} {
		ms, err := statsModes(s, c.key, c.opts, c.level)
		var got []string
		for _, m := range ms {
			name := []string{"none", "counts", "truncate", "full"}[m.kind]
			if m.kind == modeTruncate {
				name += fmt.Sprint(" ", m.chars)
			}
			got = append(got, name)
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("%v level %d: %s, want %s", c.opts, c.level, g, c.want)
		}
	}
}

// TestStatistics writes random rows of every type and compares what the manifest
// will say with the values.
func TestStatistics(t *testing.T) {
	all := formattest.AllTypes()
	pk := []string{"text_req", "big_req"}
	for _, c := range []struct {
		mode  string
		chars int
		opts  map[string]string
		pk    []string
	}{
		{"truncate", 16, nil, nil},
		{"truncate", 2, map[string]string{"metadata.stats-mode": "truncate(2)"}, nil},
		{"full", 0, map[string]string{"metadata.stats-mode": "full", "metadata.stats-dense-store": "false"}, pk},
		{"counts", 0, map[string]string{"metadata.stats-mode": "counts"}, pk},
		{"none", 0, map[string]string{"metadata.stats-mode": "none"}, pk},
		{"none", 0, map[string]string{"metadata.stats-mode": "none", "metadata.stats-dense-store": "false"}, nil},
		{"truncate", 16, map[string]string{"data-file.thin-mode": "true"}, pk},
	} {
		t.Run(c.mode+fmt.Sprint(c.opts, c.pk), func(t *testing.T) {
			g := &formattest.Gen{Rand: rand.New(rand.NewSource(1)), Nulls: 0.3}
			s := &schema.Table{ID: 3, Fields: all, PrimaryKeys: c.pk, Options: maps.Clone(c.opts)}
			o := options(s)
			w, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			const n = 500
			var cols []arrow.Array
			for _, f := range all {
				cols = append(cols, g.Array(f.Type, n))
			}
			var seq []int64
			var kinds []int8
			deletes := int64(0)
			if c.pk != nil {
				for i := range n {
					seq, kinds = append(seq, int64(1000-i)), append(kinds, int8(g.Intn(4)))
					deletes += int64(kinds[i] & 1)
				}
			}
			if err := w.Write(context.Background(), cols, n, seq, kinds); err != nil {
				t.Fatal(err)
			}
			files, err := w.Close(context.Background())
			if err != nil || len(files) != 1 {
				t.Fatalf("%d files: %v", len(files), err)
			}
			m := files[0]
			if st, err := o.IO.Stat(context.Background(), o.Dir+m.Name); err != nil || st.Size != m.Size {
				t.Errorf("%s: %d bytes, the manifest says %d: %v", m.Name, st.Size, m.Size, err)
			}
			lo, hi := int64(0), int64(n-1)
			if c.pk != nil {
				lo, hi = 1000-n+1, 1000
			}
			if m.Rows != n || m.DeleteRows != deletes || m.MinSequence != lo || m.MaxSequence != hi || m.SchemaID != 3 || m.FirstRowID != -1 || m.HasWriteCols || m.CreationMillis == 0 {
				t.Errorf("%+v", m)
			}
			names := m.ValueStatsCols
			if !m.HasValueStatsCols {
				names = nil
				for _, f := range all {
					names = append(names, f.Name)
				}
			}
			dense := c.opts["metadata.stats-dense-store"] != "false"
			for i, f := range all {
				at := slices.Index(names, f.Name)
				mode, chars := c.mode, c.chars
				if c.opts["data-file.thin-mode"] != "" && slices.Contains(pk, f.Name) {
					mode, chars = "truncate", 128
				}
				nested := f.Type.Kind == types.Array || f.Type.Kind == types.Map || f.Type.Kind == types.Row || f.Type.Kind == types.Variant
				if mode == "none" || nested {
					if dense && at >= 0 {
						t.Errorf("%s has statistics", f.Name)
					}
					if !dense && m.ValueStats.NullCounts[at] != -1 {
						t.Errorf("%s: %d NULLs are known", f.Name, m.ValueStats.NullCounts[at])
					}
					continue
				}
				checkColumn(t, f, cols[i], &m.ValueStats, names, all, at, mode, chars)
			}
			if c.pk == nil {
				if m.MinKey != nil || m.KeyStats.Min != nil {
					t.Errorf("an append file has a key: %+v", m)
				}
				return
			}
			for i, k := range pk {
				f := all[all.Index(k)]
				checkColumn(t, f, cols[all.Index(k)], &m.KeyStats, pk, all, i, "truncate", 128)
			}
			kts := []types.Type{all[all.Index(pk[0])].Type, all[all.Index(pk[1])].Type}
			for _, x := range []struct {
				img []byte
				row int
			}{{m.MinKey, 0}, {m.MaxKey, n - 1}} {
				k, err := binrow.Decode(x.img, kts)
				if err != nil || fmt.Sprint(k) != fmt.Sprint([]types.Datum{formattest.Datum(cols[all.Index(pk[0])], x.row), formattest.Datum(cols[all.Index(pk[1])], x.row)}) {
					t.Errorf("key of row %d is %v: %v", x.row, k, err)
				}
			}
		})
	}
}

// checkColumn compares one column's statistics with its values.
func checkColumn(t *testing.T, f types.Field, a arrow.Array, st *manifest.Stats, names []string, all types.Schema, at int, mode string, chars int) {
	t.Helper()
	if at < 0 {
		t.Errorf("%s has no statistics", f.Name)
		return
	}
	var lo, hi types.Datum
	nulls := int64(0)
	for i := range a.Len() {
		d := formattest.Datum(a, i)
		if d == nil {
			nulls++
			continue
		}
		if c, ok := predicate.Compare(f.Type, d, lo); lo == nil || ok && c < 0 {
			lo = d
		}
		if c, ok := predicate.Compare(f.Type, d, hi); hi == nil || ok && c > 0 {
			hi = d
		}
	}
	if st.NullCounts[at] != nulls {
		t.Errorf("%s: %d NULLs, want %d", f.Name, st.NullCounts[at], nulls)
	}
	var ts []types.Type
	for _, n := range names {
		ts = append(ts, all[all.Index(n)].Type)
	}
	los, err1 := binrow.Decode(st.Min, ts)
	his, err2 := binrow.Decode(st.Max, ts)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	switch mode {
	case "counts":
		lo, hi = nil, nil
	case "truncate":
		if lo = truncateMin(lo, chars); lo != nil {
			var ok bool
			if hi, ok = truncateMax(hi, chars); !ok {
				lo, hi = nil, nil
			}
		}
	}
	same := func(a, b types.Datum) bool {
		if a == nil || b == nil {
			return a == nil && b == nil
		}
		if x, ok := a.([]byte); ok {
			return string(x) == string(b.([]byte))
		}
		c, ok := predicate.Compare(f.Type, a, b)
		return ok && c == 0
	}
	if !same(los[at], lo) || !same(his[at], hi) {
		t.Errorf("%s is from %v to %v, want %v to %v", f.Name, los[at], his[at], lo, hi)
	}
}

var fileName = regexp.MustCompile(`^data-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-(\d+)(\.zst)?\.parquet$`)

// TestRoll writes files of a bounded size and numbers their rows through, with an
// account too small for a row group.
func TestRoll(t *testing.T) {
	s := &schema.Table{Fields: types.Schema{{ID: 0, Name: "a", Type: types.Of(types.Int8)}, {ID: 1, Name: "s", Type: types.Of(types.Text)}}, Options: map[string]string{"file.suffix.include.compression": "true"}}
	o := options(s)
	o.RollBytes, o.FirstSequence, o.Account = 300_000, 40, mem.NewRoot("test", 50_000)
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	g := &formattest.Gen{Rand: rand.New(rand.NewSource(1)), Nulls: 0.1}
	const n = 60_000
	cols := []arrow.Array{g.Array(s.Fields[0].Type, n), g.Array(s.Fields[1].Type, n)}
	for at := 0; at < n; at += 5000 {
		if err := w.Write(context.Background(), []arrow.Array{vec.Slice(cols[0], at, at+5000), vec.Slice(cols[1], at, at+5000)}, 5000, nil, nil); err != nil {
			t.Fatal(err)
		}
		if o.Account.Used() > 50_000 {
			t.Errorf("%d bytes are charged", o.Account.Used())
		}
	}
	files, err := w.Close(context.Background())
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	if o.Account.Used() != 0 {
		t.Errorf("%d bytes are still charged", o.Account.Used())
	}
	next, row := int64(40), 0
	for i, m := range files {
		p := fileName.FindStringSubmatch(m.Name)
		if p == nil || p[2] != fmt.Sprint(i) || p[3] == "" {
			t.Errorf("file %d is %s", i, m.Name)
		}
		if m.MinSequence != next || m.MaxSequence != next+m.Rows-1 {
			t.Errorf("%s has sequence numbers %d to %d", m.Name, m.MinSequence, m.MaxSequence)
		}
		next += m.Rows
		f, err := o.IO.Open(context.Background(), o.Dir+m.Name)
		if err != nil {
			t.Fatal(err)
		}
		rd, err := parquet.Format{}.Open(context.Background(), f, s.Fields)
		if err != nil {
			t.Fatal(err)
		}
		cr, err := rd.Columns(context.Background(), format.RowRange{From: 0, To: rd.Rows()}, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		for left := rd.Rows(); left > 0; {
			k := int(min(left, 10_000))
			got, err := cr.Read(context.Background(), k, nil)
			if err != nil {
				t.Fatal(err)
			}
			for j := range k {
				for c := range cols {
					if x, y := formattest.Cell(got[c], j), formattest.Cell(cols[c], row); x != y {
						t.Fatalf("row %d has %s, want %s", row, x, y)
					}
				}
				row++
			}
			left -= int64(k)
		}
		_ = cr.Close()
		_ = rd.Close()
	}
	if row != n {
		t.Errorf("%d rows", row)
	}
}

// TestAbort leaves no file.
func TestAbort(t *testing.T) {
	s := &schema.Table{Fields: types.Schema{{ID: 0, Name: "a", Type: types.Of(types.Int8)}}, Options: map[string]string{}}
	o := options(s)
	o.RollBytes = 1
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Write(context.Background(), []arrow.Array{vec.Make(arrow.PrimitiveTypes.Int64, []int64{1}, nil)}, 1, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if es, _ := o.IO.List(context.Background(), "db.db/t/bucket-0"); len(es) != 3 {
		t.Fatalf("%d files", len(es))
	}
	if err := w.Abort(context.Background()); err != nil {
		t.Fatal(err)
	}
	if es, _ := o.IO.List(context.Background(), "db.db/t/bucket-0"); len(es) != 0 {
		t.Errorf("%d files are left", len(es))
	}
	if err := w.Write(context.Background(), nil, 0, nil, nil); err == nil {
		t.Error("an aborted writer writes")
	}
}
