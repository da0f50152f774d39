package parquet

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// memFile is a file in memory; bytesFile offers its memory as well.
type memFile struct {
	*bytes.Reader
	path  string
	reads int
}

func newMemFile(path string, b []byte) *memFile {
	return &memFile{Reader: bytes.NewReader(b), path: path}
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) { f.reads++; return f.Reader.ReadAt(p, off) }
func (f *memFile) Size() int64                             { return f.Reader.Size() }
func (f *memFile) Path() string                            { return f.path }
func (f *memFile) Close() error                            { return nil }

type bytesFile struct {
	*memFile
	b []byte
}

func (f *bytesFile) Bytes() []byte { return f.b }

// sharedDir is where the fixtures are that are not part of the repository.
func sharedDir(t testing.TB) string {
	d := os.Getenv("PAIMON_SQL_SHARED")
	if d == "" {
		d = filepath.Join("..", "..", "..", "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(d, "fixtures")); err != nil {
		t.Skip("needs ../shared/fixtures")
	}
	return d
}

func parquetFiles(t testing.TB) []string {
	root := filepath.Join(sharedDir(t), "fixtures")
	var out []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".parquet") {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Skip("needs ../shared/fixtures with Parquet files")
	}
	return out
}

// schemaOfFile guesses the Paimon types of a file's columns from annotations.
func schemaOfFile(root *snode) types.Schema {
	var s types.Schema
	for _, n := range root.children {
		s = append(s, types.Field{ID: n.el.fieldID, Name: n.el.name, Type: typeOfNode(n)})
	}
	return s
}

func typeOfNode(n *snode) types.Type {
	t := typeOfNodeNull(n)
	t.NotNull = n.el.repetition == repRequired
	return t
}

func typeOfNodeNull(n *snode) types.Type {
	e := n.el
	if n.leaf < 0 {
		if e.logical == logMap || e.converted == convMap {
			if len(n.children) == 0 || len(n.children[0].children) != 2 {
				return types.MapOf(types.Of(types.Text), types.Of(types.Int4))
			}
			kv := n.children[0]
			return types.MapOf(typeOfNode(kv.children[0]), typeOfNode(kv.children[1]))
		}
		if e.logical == logList || e.converted == convList {
			el, rep := listElement(n)
			if el == nil {
				return types.ArrayOf(types.Of(types.Int4))
			}
			if el == rep {
				c := *el.el
				c.repetition = repRequired
				m := *el
				m.el = &c
				el = &m
			}
			return types.ArrayOf(typeOfNode(el))
		}
		if len(n.children) == 2 && n.child("value") != nil && n.child("metadata") != nil {
			return types.Of(types.Variant)
		}
		t := types.Type{Kind: types.Row}
		for _, c := range n.children {
			t.Fields = append(t.Fields, types.Field{ID: c.el.fieldID, Name: c.el.name, Type: typeOfNode(c)})
		}
		return t
	}
	if (e.logical == logDecimal || e.converted == convDecimal) && e.precision >= 0 && e.precision <= 38 {
		return types.NumericOf(int(e.precision), int(e.scale))
	}
	switch e.typ {
	case pBool:
		return types.Of(types.Bool)
	case pInt32:
		switch {
		case e.logical == logInt && e.bits == 8:
			return types.Of(types.TinyInt)
		case e.logical == logInt && e.bits == 16:
			return types.Of(types.Int2)
		case e.logical == logDate:
			return types.Of(types.Date)
		case e.logical == logTime:
			return types.Type{Kind: types.Time, Prec: 3}
		}
		return types.Of(types.Int4)
	case pInt64:
		if e.logical == logTimestamp {
			t := types.Type{Kind: types.Timestamp, Prec: 6}
			if e.adjusted {
				t.Kind = types.TimestampTZ
			}
			if e.unit == unitMillis {
				t.Prec = 3
			}
			return t
		}
		return types.Of(types.Int8)
	case pInt96:
		return types.Type{Kind: types.Timestamp, Prec: 9}
	case pFloat:
		return types.Of(types.Float4)
	case pDouble:
		return types.Of(types.Float8)
	}
	if e.logical == logString || e.converted == convUTF8 {
		return types.Of(types.Text)
	}
	return types.Of(types.Bytea)
}
