package parquet

import (
	"bytes"
	"context"
	"errors"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/format/formattest"
)

// expected reports whether err is what damaged bytes may lead to. A recovered
// panic is not.
func expected(err error) bool {
	var c *fileio.CorruptionError
	var u *fileio.UnsupportedError
	if errors.As(err, &c) {
		return !strings.Contains(c.Reason, "went wrong")
	}
	return err == nil || errors.As(err, &u)
}

// smallFiles are files of every type, a few types each.
func smallFiles(t testing.TB, rng *rand.Rand) (out [][]byte) {
	for _, o := range []format.WriteOptions{
		{Compression: "none"},
		{Compression: "none", Options: map[string]string{"parquet.page.row.count.limit": "5", "parquet.bloom.filter.enabled": "true", "parquet.bloom.filter.max.bytes": "64"}},
		{Compression: "snappy", BlockSize: 1},
		{Compression: "zstd", Options: map[string]string{"parquet.page.row.count.limit": "9"}},
	} {
		for _, rows := range []int{0, 3, 20} {
			s := formattest.AllTypes()
			for at := 0; at < len(s); at += 6 {
				tab := formattest.Random(&formattest.Gen{Rand: rng, Nulls: 0.2, Distinct: 4}, s[at:min(at+6, len(s))], rows)
				b, _, err := formattest.Write(rng, Format{}, tab, o)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, b)
			}
		}
	}
	for _, v := range []int{1, 2} {
		var b bytes.Buffer
		w := pq.NewGenericWriter[foreignRow](&b, pq.DataPageVersion(v), pq.PageBufferSize(300))
		if _, err := w.Write(randomForeign(rng, 20, 5)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Bytes())
	}
	return out
}

// TestDamagedFiles changes a few bytes of small files, in the pages or in the
// metadata: whatever comes of it, it is an error with a name or some rows.
func TestDamagedFiles(t *testing.T) {
	seed := int64(random.Seed(t))
	if v, err := strconv.ParseInt(os.Getenv("DAMAGE_SEED"), 10, 64); err == nil {
		seed = v
	}
	rng := rand.New(rand.NewSource(seed))
	files := smallFiles(t, rng)
	tries := 4000
	if v, err := strconv.Atoi(os.Getenv("DAMAGE_TRIES")); err == nil {
		tries = v
	}
	var worst time.Duration
	for i := 0; i < tries; i++ {
		b := bytes.Clone(files[rng.Intn(len(files))])
		footer := len(b) - 8 - int(le32(b[len(b)-8:]))
		for k := 1 + rng.Intn(3); k > 0; k-- {
			at := rng.Intn(len(b))
			if rng.Intn(2) == 0 {
				at = footer + rng.Intn(len(b)-footer)
			}
			switch rng.Intn(3) {
			case 0:
				b[at] = byte(rng.Intn(256))
			case 1:
				b[at] ^= 1 << rng.Intn(8)
			default:
				b[at] = []byte{0, 1, 0x7f, 0x80, 0xff}[rng.Intn(5)]
			}
		}
		start := time.Now()
		fuzzFile(t, b)
		worst = max(worst, time.Since(start))
		if t.Failed() {
			t.Fatalf("try %d", i)
		}
	}
	t.Logf("%d tries, the slowest took %v", tries, worst)
}

// FuzzReader reads whole files of any bytes. Page checksums are not looked at,
// as they would keep the fuzzer out of the pages.
func FuzzReader(f *testing.F) {
	rng := rand.New(rand.NewSource(1))
	for _, b := range smallFiles(f, rng) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		fuzzFile(t, b)
	})
}

func fuzzFile(t *testing.T, b []byte) {
	ctx := context.Background()
	probe, err := open(ctx, newMemFile("f", b), nil)
	if err != nil {
		if !expected(err) {
			t.Fatalf("open: %v", err)
		}
		return
	}
	fuzzSchema(t, b, schemaOfFile(probe.root))
	if !t.Failed() {
		fuzzSchema(t, b, formattest.AllTypes()) // some columns are absent, some may differ
	}
}

func fuzzSchema(t *testing.T, b []byte, s types.Schema) {
	ctx := context.Background()
	r, err := open(ctx, newMemFile("f", b), s)
	if err != nil {
		if !expected(err) {
			t.Fatalf("open: %v", err)
		}
		return
	}
	r.noCRC = true
	want := make([]int, len(s))
	for i := range s {
		want[i] = i
		for _, op := range []predicate.Op{predicate.Eq, predicate.Lt, predicate.IsNull} {
			l := &predicate.Leaf{Op: op, Col: i, Type: s[i].Type}
			if formattest.Scalar(s[i].Type) {
				g := formattest.Gen{Rand: rand.New(rand.NewSource(2)), Distinct: 4}
				l.Args = []types.Datum{formattest.Datum(g.Array(s[i].Type.WithNotNull(true), 1), 0)}
			}
			if _, err := r.Prune(ctx, l, nil); !expected(err) {
				t.Fatalf("prune: %v", err)
			}
		}
	}
	r.Cuts(want)
	for try := int64(0); try < 3; try++ {
		rng := rand.New(rand.NewSource(try))
		from := int64(0)
		if try == 2 && r.Rows() > 1 {
			from = r.Rows() / 2
		}
		cr, err := r.Columns(ctx, format.RowRange{From: from, To: r.Rows()}, want)
		if err != nil {
			t.Fatalf("columns: %v", err)
		}
		for at, reads := from, 0; at < r.Rows() && reads < 20; reads++ {
			n := int(min(r.Rows()-at, 1+rng.Int63n(300)))
			var keep []uint16
			if try > 0 {
				for i := 0; i < n; i += 1 + rng.Intn(3) {
					keep = append(keep, uint16(i))
				}
			}
			cols, err := cr.Read(ctx, n, keep)
			if err != nil {
				if !expected(err) {
					t.Fatalf("read: %v", err)
				}
				break
			}
			for _, a := range cols {
				for i := 0; i < a.Len(); i++ {
					formattest.Cell(a, i)
				}
			}
			at += int64(n)
		}
		cr.Close()
	}
}

// FuzzPage decodes the values and levels of a page of any bytes, with every
// encoding, straight from the decoders.
func FuzzPage(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 3, 0xff, 1, 2, 3, 4}, uint8(0), uint8(1), uint16(9))
	f.Add([]byte{128, 1, 4, 200, 1, 2, 1, 8, 8, 8, 8, 1, 2, 3, 4, 5, 6, 7, 8}, uint8(5), uint8(2), uint16(100))
	f.Add([]byte{5, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'}, uint8(0), uint8(6), uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, enc, typ uint8, n uint16) {
		kinds := []struct {
			el element
			t  types.Type
		}{
			{element{typ: pBool}, types.Of(types.Bool)}, {element{typ: pInt32}, types.Of(types.Int4)}, {element{typ: pInt64}, types.Of(types.Int8)},
			{element{typ: pInt96}, types.Type{Kind: types.Timestamp, Prec: 9}}, {element{typ: pFloat}, types.Of(types.Float4)},
			{element{typ: pDouble}, types.Of(types.Float8)}, {element{typ: pBytes}, types.Of(types.Text)},
			{element{typ: pFixed, typeLength: 5}, types.NumericOf(10, 2)}, {element{typ: pBytes}, types.NumericOf(30, 2)},
			{element{typ: pInt64, unit: unitMillis}, types.Type{Kind: types.Timestamp, Prec: 3}}, {element{typ: pFixed, typeLength: 3}, types.Of(types.Bytea)},
		}
		k := kinds[int(typ)%len(kinds)]
		cv, err := chooseConv(&k.el, k.t)
		if err != nil {
			t.Fatal(err)
		}
		l := &leaf{node: &snode{el: &k.el}, t: k.t, conv: cv}
		s := newSink(l, k.t.Arrow(), k.t.IsTextLike())
		var v pageVals
		if enc == encPlainDict && len(b) > 0 {
			v.form = formDict
			v.idx.init(b[1:], uint(b[0]%33))
			var dv pageVals
			if setValues(&dv, b, encPlain, &k.el, cv, int(n)) != nil {
				return
			}
			d, err := s.dictionary(&dv, int(n%8))
			if err != nil {
				return
			}
			v.dict = d
		} else if setValues(&v, b, int32(enc%10), &k.el, cv, int(n)) != nil {
			return
		}
		m := int(n)
		s.begin(2*m + 3)
		if s.take(&v, 0, m/3) != nil {
			return
		}
		var sel []int32
		for i := 0; i < m/2; i += 3 {
			sel = append(sel, int32(i))
		}
		if len(sel) > 0 && s.pick(&v, m/3, sel, m/2) != nil {
			return
		}
		if v.skip(1) != nil {
			return
		}
		valid := make([]byte, m)
		for i := range valid {
			valid[i] = 0x55
		}
		at := m/3 + len(sel)
		s.spread(0, at*2, at, valid, 0)
		a := s.finish(at*2, nil)
		for i := 0; i < a.Len(); i++ {
			formattest.Cell(a, i)
		}
	})
}
