package interop

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// kase is one case of any of the lists.
type kase struct {
	name      string
	group     string
	table     string // db.table
	query     string
	warehouse string // key of the warehouse it runs in
	expected  []json.RawMessage
	ordered   bool
	loose     string
	javaTypes []string // as Java or Spark names the columns' types; may be nil
	must      bool
}

// javaCases reads a list in the format of fixtures/java.
func javaCases(t *testing.T, dir, warehouse string) []kase {
	t.Helper()
	var in []struct {
		Case, Group, Table, Query, Expected, Loose string
		Rows                                       int
		Ordered                                    bool
		ResultTypes                                [][2]string `json:"result_types"`
	}
	readJSON(t, filepath.Join(dir, "cases.json"), &in)
	var out []kase
	for _, c := range in {
		k := kase{name: c.Case, group: c.Group, table: c.Table, query: c.Query, warehouse: warehouse, ordered: c.Ordered, loose: c.Loose}
		for _, r := range c.ResultTypes {
			k.javaTypes = append(k.javaTypes, strings.ToLower(r[1]))
		}
		k.expected = readRows(t, filepath.Join(dir, c.Expected))
		if len(k.expected) != c.Rows {
			t.Fatalf("%s: %d rows in the file, %d announced", c.Case, len(k.expected), c.Rows)
		}
		k.must = true
		for _, table := range tablesOf(filepath.Join(dir, "warehouse"), c.Table+" "+c.Query) {
			k.must = k.must && mustPass(t, table, c.Query)
		}
		out = append(out, k)
	}
	return out
}

// cppCases reads fixtures/cpp: whole tables, and filters over them.
func cppCases(t *testing.T, dir string) []kase {
	t.Helper()
	var in []struct {
		ID, Database, Table, Warehouse, Query, Expected, Status string
		Rows                                                    int
	}
	readJSON(t, filepath.Join(dir, "cases.json"), &in)
	var out []kase
	for _, c := range in {
		if c.Status != "verified" && c.Status != "java+spark" {
			continue // Java cannot, or readers disagree
		}
		k := kase{name: c.ID, group: "cpp " + c.Warehouse, table: c.Database + "." + c.Table, query: c.Query, warehouse: "cpp/" + c.Warehouse}
		k.expected = readRows(t, filepath.Join(dir, c.Expected))
		k.must = mustPass(t, filepath.Join(dir, c.Warehouse, c.Database+".db", c.Table), c.Query)
		out = append(out, k)
	}
	var filters []struct {
		ID, Format, Database, Table, Query string
		Rows                               []json.RawMessage `json:"expected_rows"`
	}
	readJSON(t, filepath.Join(dir, "cases-filters.json"), &filters)
	for _, c := range filters {
		out = append(out, kase{
			name: c.ID, group: "cpp filters " + c.Format, table: c.Database + "." + c.Table, query: c.Query,
			warehouse: "cpp/" + c.Format, expected: c.Rows,
		})
	}
	return out
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(path, ": ", err)
	}
}

func readRows(t *testing.T, path string) []json.RawMessage {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []json.RawMessage
	for _, l := range bytes.Split(b, []byte{'\n'}) {
		if len(bytes.TrimSpace(l)) > 0 {
			out = append(out, l)
		}
	}
	return out
}

var tableName = regexp.MustCompile(`\b([a-z_]\w*)\."?(\w+)`)

// tablesOf returns the folders of the tables that a text names.
func tablesOf(warehouse, text string) []string {
	var out []string
	for _, m := range tableName.FindAllStringSubmatch(text, -1) {
		dir := filepath.Join(warehouse, m[1]+".db", m[2])
		if _, err := os.Stat(dir); err == nil {
			out = append(out, dir)
		}
	}
	return out
}

// readable are the system tables that a reader must have.
var readable = map[string]bool{
	"snapshots": true, "files": true, "schemas": true, "options": true, "manifests": true, "partitions": true, "buckets": true, "tags": true,
	"branches": true, "consumers": true, "file_key_ranges": true, "statistics": true, "aggregation_fields": true, "table_indexes": true,
	"audit_log": true, "binlog": true, "ro": true,
}

var systemTable = regexp.MustCompile(`\$(\w+)`)

// mustPass reports whether a query on the table in dir is what any reader must
// answer: Avro manifests, all data files Parquet, append-only or deduplicate,
// no data evolution, no blobs, no branches; a plain query, time travel included,
// or one of the readable system tables.
func mustPass(t *testing.T, dir, query string) bool {
	t.Helper()
	upper := strings.ToUpper(query)
	for _, w := range []string{"_ROW_ID", "_SEQUENCE_NUMBER", "/*+"} {
		if strings.Contains(upper, w) {
			return false
		}
	}
	for _, m := range systemTable.FindAllStringSubmatch(query, -1) {
		if !readable[m[1]] {
			return false
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "schema")); err != nil {
		return false // no table: a catalog-wide system table
	}
	if _, err := os.Stat(filepath.Join(dir, "branch")); err == nil && fallsBack(t, dir) {
		return false
	}
	for _, s := range schemas(t, dir) {
		o := s.Options
		if o["data-evolution.enabled"] == "true" || o["scan.fallback-branch"] != "" {
			return false
		}
		if e := o["merge-engine"]; len(s.PrimaryKeys) > 0 && e != "" && e != "deduplicate" {
			return false
		}
		if bytes.Contains(s.Fields, []byte("BLOB")) {
			return false
		}
	}
	ok, found := true, false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := d.Name()
		switch {
		case strings.HasPrefix(name, "data-"), strings.HasPrefix(name, "changelog-") && strings.Contains(name, "."):
			if strings.HasSuffix(name, ".index") {
				break
			}
			found = true
			if !strings.HasSuffix(name, ".parquet") {
				ok = false
			}
		case strings.HasPrefix(name, "manifest-"):
			if f, err := os.Open(path); err == nil {
				var b [4]byte
				f.Read(b[:]) //nolint:errcheck // an empty file is no Avro
				f.Close()
				if string(b[:]) != "Obj\x01" {
					ok = false
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !found { // no data: the table's own word counts
		for _, s := range schemas(t, dir) {
			ok = ok && (s.Options["file.format"] == "" || s.Options["file.format"] == "parquet")
		}
	}
	return ok
}

func fallsBack(t *testing.T, dir string) bool {
	for _, s := range schemas(t, dir) {
		if s.Options["scan.fallback-branch"] != "" {
			return true
		}
	}
	return false
}

type schemaFile struct {
	Options     map[string]string
	PrimaryKeys []string
	Fields      json.RawMessage
}

func schemas(t *testing.T, dir string) []schemaFile {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "schema", "schema-*"))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]schemaFile, len(names))
	for i, n := range names {
		readJSON(t, n, &out[i])
	}
	return out
}
