package index_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/indextest"
)

func shared(t testing.TB, path string) string {
	t.Helper()
	root := os.Getenv("PAIMON_SQL_SHARED")
	if root == "" {
		root = "../../shared"
	}
	root = filepath.Join(root, path)
	if _, err := os.Stat(root); err != nil {
		t.Skip("needs ../shared/" + path)
	}
	return root
}

// TestContainerHead: the head that Java writes for two bloom filters.
func TestContainerHead(t *testing.T) {
	got, err := index.WriteContainer([]index.Index{
		{Column: "s", Kind: "bloom-filter", Data: make([]byte, 10)},
		{Column: "i", Kind: "bloom-filter", Data: make([]byte, 16)},
	})
	const name = "000c626c6f6f6d2d66696c746572"
	want := "00054e4ed01a35ae000000010000005200000002" + "000173" + "00000001" + name + "000000520000000a" +
		"000169" + "00000001" + name + "0000005c00000010" + "00000000" + strings.Repeat("00", 26)
	if hex.EncodeToString(got) != want || err != nil {
		t.Errorf("got  %x, %v\nwant %s", got, err, want)
	}
}

func TestContainerRoundTrip(t *testing.T) {
	in := []index.Index{
		{Column: "plain", Kind: "bitmap", Data: []byte("bitmap bytes")},
		{Column: "plain", Kind: "from a plug-in", Data: []byte{}},
		{Column: "nul \x00 é \U0001F600 \uFFFD", Kind: "bsi", Data: nil},
		{Column: index.MapColumn("m", "k[1]"), Kind: "bloom-filter", Data: bytes.Repeat([]byte{7}, 9000)},
	}
	for i := range 300 { // a head larger than the first read
		in = append(in, index.Index{Column: "column " + strings.Repeat("x", i), Kind: "bitmap", Data: []byte{byte(i)}})
	}
	raw, err := index.WriteContainer(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []index.Source{index.BytesSource(raw), &indextest.Reader{Data: raw}} {
		c, err := index.OpenContainer(src)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Sections()) != len(in) {
			t.Fatalf("%d of %d sections", len(c.Sections()), len(in))
		}
		for i := range in {
			s := &c.Sections()[i]
			if s.Column != in[i].Column || s.Kind != in[i].Kind || s.Empty != (in[i].Data == nil) || s.Size() != int64(len(in[i].Data)) {
				t.Errorf("section %d is %+v", i, s)
			}
			sec := c.Source(s)
			if sec == nil {
				if !s.Empty {
					t.Errorf("section %d has no bytes", i)
				}
				continue
			}
			got, err := index.ReadBytes(sec, 0, sec.Size())
			if err != nil || !bytes.Equal(got, in[i].Data) {
				t.Errorf("section %d: %d bytes, %v", i, len(got), err)
			}
		}
		if got := c.Find("plain"); len(got) != 2 || got[0].Kind != "bitmap" {
			t.Errorf("Find gives %v", got)
		}
	}
	if col, key, ok := index.SplitMapColumn(in[3].Column); col != "m" || key != "k[1]" || !ok {
		t.Errorf("%q is split into %q and %q", in[3].Column, col, key)
	}
	if _, err := index.WriteContainer([]index.Index{{Column: "a"}, {Column: "b"}, {Column: "a"}}); err == nil {
		t.Error("indexes of a column apart are taken")
	}
	if _, err := index.WriteContainer([]index.Index{{Column: strings.Repeat("x", 1<<16)}}); err == nil {
		t.Error("a name of 65,536 bytes is taken")
	}
}

// TestContainersOfJava: every .index file of the fixtures, read and written again.
func TestContainersOfJava(t *testing.T) {
	n := 0
	for _, root := range []string{"fixtures/java/warehouse", "fixtures/cpp/parquet", "fixtures/cpp/orc"} {
		err := filepath.WalkDir(shared(t, root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".index") || strings.Contains(path, "global-index") {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			c, err := index.OpenContainer(index.BytesSource(raw))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return nil
			}
			var all []index.Index
			for i := range c.Sections() {
				s := &c.Sections()[i]
				x := index.Index{Column: s.Column, Kind: s.Kind}
				if !s.Empty {
					x.Data, _ = index.ReadBytes(c.Source(s), 0, s.Size())
				}
				all = append(all, x)
			}
			again, err := index.WriteContainer(all)
			if err != nil || !bytes.Equal(again, raw) {
				t.Errorf("%s: written again it differs (%v)", path, err)
			}
			n++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d containers", n); n < 20 {
		t.Errorf("only %d containers", n)
	}
}

// TestContainerDamage: every byte changed, and every length cut.
func TestContainerDamage(t *testing.T) {
	raw, err := index.WriteContainer([]index.Index{{Column: "é", Kind: "bitmap", Data: []byte("abc")}, {Column: "d", Kind: "bsi"}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range raw {
		if _, err := index.OpenContainer(index.BytesSource(raw[:n])); !errors.Is(err, index.ErrCorrupt) {
			t.Errorf("%d of %d bytes: %v", n, len(raw), err)
		}
	}
	for i := range 12 {
		bad := bytes.Clone(raw)
		bad[i] ^= 1
		if _, err := index.OpenContainer(index.BytesSource(bad)); err == nil {
			t.Errorf("byte %d changed: no error", i)
		}
	}
}

func FuzzContainer(f *testing.F) {
	raw, _ := index.WriteContainer([]index.Index{{Column: "é\x00\U0001F600", Kind: "bitmap", Data: []byte("abc")}, {Column: "d", Kind: "bsi"}})
	f.Add(raw)
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := index.OpenContainer(&indextest.Reader{Data: b})
		if err != nil {
			return
		}
		var all []index.Index
		for i := range c.Sections() {
			s := &c.Sections()[i]
			x := index.Index{Column: s.Column, Kind: s.Kind}
			if src := c.Source(s); src != nil {
				if x.Data, err = index.ReadBytes(src, 0, src.Size()); err != nil {
					t.Fatal(err)
				}
				if x.Data == nil {
					x.Data = []byte{}
				}
			}
			all = append(all, x)
		}
		again, err := index.WriteContainer(all)
		if err != nil {
			return // sections that overlap, columns that are apart
		}
		c2, err := index.OpenContainer(index.BytesSource(again))
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Sections() {
			x, y := &c.Sections()[i], &c2.Sections()[i]
			if x.Column != y.Column || x.Kind != y.Kind || x.Empty != y.Empty || x.Size() != y.Size() {
				t.Fatalf("%+v became %+v", x, y)
			}
		}
	})
}

func FuzzBitmap(f *testing.F) {
	f.Add([]byte("\x3a\x30\x00\x00\x01\x00\x00\x00\x00\x00\x01\x00\x10\x00\x00\x00\x00\x00\x02\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, rest, err := index.DecodeBitmap(b)
		if err != nil {
			return
		}
		if len(rest) > len(b) {
			t.Fatal("longer than it was")
		}
		w.Flip(0, 1000)
		_ = w.GetCardinality()
	})
}
