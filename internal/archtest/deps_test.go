// Package archtest holds the house's import rules as data and fails on an edge
// that breaks them. docs/architecture.md says why they are as they are.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/paimon-sql/paimon-sql/"

// layers, from the bottom up. A package may import its own layer and lower ones.
// The longest matching prefix decides; a package that none matches fails.
var layers = []struct {
	prefix string
	layer  int
}{
	{"internal", 0},
	{"index", 1},
	{"storage", 2},
	{"catalog", 3},
	{"sql/ast", 4}, {"sql/parser", 4}, {"sql/plan", 4}, {"sql/planner", 4}, {"sql/function", 4}, {"sql/aggregate", 4},
	{"exec/vectorized", 5},
	{"engine", 6},
	{"pgwire", 7}, {"cdc", 7},
	{"cmd/paimon-sql", 8}, {"internal/demo", 8},
	{"tests", 9},
}

// order ranks packages of one layer that have an order among themselves: a
// package may not import one with a higher rank in the same list.
var order = [][]string{
	// storage: table -> commit, cluster -> compact -> mergetree -> format, manifest, snapshot, schema -> fileio, binrow
	{"storage/fileio", "storage/binrow", "storage/mergetree/aggregate", "storage/schema", "storage/fileindex", "storage/snapshot", "storage/manifest", "storage/format", "storage/datafile", "storage/commit", "storage/mergetree", "storage/compact", "storage/cluster", "storage/table"},
	{"index/predicate", "index", "index/bitslice", "index/bloom", "index/bitmap", "index/bsi", "index/rangebitmap"},
	// planner -> plan -> function, aggregate; parser -> ast
	{"sql/function", "sql/aggregate", "sql/plan", "sql/planner"},
	{"sql/ast", "sql/parser"},
	{"catalog/systable", "catalog", "catalog/pgcatalog"},
	{"engine/procedure", "engine"},
	{"internal/types", "internal/mem", "internal/vec"},
}

// never are edges that the layers would allow.
var never = []struct{ from, to, why string }{
	{"exec/vectorized", "sql/planner", "the executor runs plans, it does not make them"},
	{"exec/vectorized", "sql/parser", "the executor knows no text"},
	{"exec/vectorized", "sql/ast", "the executor knows no text"},
	{"sql/function", "sql/ast", "functions see values, not syntax"},
	{"storage", "internal/pgerr", "storage could be lifted out as a Paimon library"},
	{"index", "internal/pgerr", "indexes could be lifted out as a Paimon library"},
	{"index", "storage", "an index sees bytes and predicates, not tables"},
}

// doors: the packages through which a third-party module may enter.
var doors = map[string][]string{
	"github.com/jackc/pgx/v5/pgproto3":         {"pgwire", "tests"},
	"github.com/jackc/pgx/v5":                  {"pgwire", "tests", "cmd/paimon-sql"},
	"github.com/pingcap/tidb/pkg/parser":       {"sql/parser/mysql"},
	"github.com/parquet-go/parquet-go":         {"storage/format/parquet", "storage/format/formattest"},
	"gocloud.dev":                              {"storage/fileio"},
	"github.com/aws":                           {"storage/fileio"},
	"github.com/RoaringBitmap/roaring":         {"index", "storage"},
	"github.com/bits-and-blooms/bloom":         {"exec/vectorized", "storage/lookup", "index/bloom"},
	"github.com/cockroachdb/pebble":            {"storage/table"},
	"github.com/hamba/avro":                    {"storage/manifest", "storage/format/avro", "tests"},
	"github.com/apache/arrow/go/v15/arrow/ipc": {"exec/vectorized", "storage/format/parquet", "storage/cluster"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	// Test imports are free: a test may look at anything.
}

func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	var ps []pkg
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return ps
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
}

func under(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

func layerOf(path string) int {
	best, layer := -1, -1
	for _, l := range layers {
		if under(path, l.prefix) && len(l.prefix) > best {
			best, layer = len(l.prefix), l.layer
		}
	}
	return layer
}

// rank is the position of the longest entry of a list that path is under.
func rank(list []string, path string) int {
	best, at := -1, -1
	for i, p := range list {
		if under(path, p) && len(p) > best {
			best, at = len(p), i
		}
	}
	return at
}

func TestImports(t *testing.T) {
	for _, p := range list(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		fl := layerOf(from)
		if fl < 0 {
			t.Errorf("%s is in no layer: give it one in internal/archtest", from)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module) {
				for mod, may := range doors {
					if !under(imp, mod) {
						continue
					}
					ok := false
					for _, d := range may {
						ok = ok || under(from, d)
					}
					if !ok {
						t.Errorf("%s imports %s: its door is %v", from, imp, may)
					}
				}
				continue
			}
			to := strings.TrimPrefix(imp, module)
			if tl := layerOf(to); tl > fl {
				t.Errorf("%s (layer %d) imports %s (layer %d): imports go down", from, fl, to, tl)
			}
			if fl == 0 && layerOf(to) != 0 {
				t.Errorf("%s imports %s: internal imports no room", from, to)
			}
			for _, l := range order {
				if a, b := rank(l, from), rank(l, to); a >= 0 && b > a {
					t.Errorf("%s imports %s: the order is %v", from, to, l)
				}
			}
			for _, n := range never {
				if under(from, n.from) && under(to, n.to) {
					t.Errorf("%s imports %s: %s", from, to, n.why)
				}
			}
		}
	}
}

// TestRulesBite proves that the checks can fail: an edge that must be refused is.
func TestRulesBite(t *testing.T) {
	if layerOf("storage/table") >= layerOf("engine") || layerOf("internal/demo") != 8 {
		t.Error("layers are mixed up")
	}
	if rank(order[0], "storage/format/parquet") >= rank(order[0], "storage/table") {
		t.Error("storage order is mixed up")
	}
}
