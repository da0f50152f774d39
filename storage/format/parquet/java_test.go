package parquet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/format"
)

// oracle runs one command of the Java oracle, whose jar PAIMON_ORACLE_JAR names.
func oracle(t *testing.T, cmd map[string]any) map[string]any {
	t.Helper()
	cmd["reply"] = true
	b, err := json.Marshal(cmd)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", os.Getenv("PAIMON_ORACLE_JAR"), "exec", "-")
	c.Stdin = bytes.NewReader(b)
	out, err := c.Output()
	var reply map[string]any
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	if d.Decode(&reply) != nil {
		t.Fatalf("oracle %s: %v: %.500s", cmd["cmd"], err, out)
	}
	if reply["ok"] != true {
		t.Fatalf("oracle %s: %v %v", cmd["cmd"], reply["error"], reply["causes"])
	}
	return reply
}

func rowText(t *testing.T, reply map[string]any) string {
	rows, ok := reply["rows"].([]any)
	if !ok {
		t.Fatalf("the oracle's reply has no rows")
	}
	var out []string
	for _, r := range rows {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

// TestJavaReadsOurs lets Java write tables without compression, replaces each
// data file by ours with the same rows, padded to the same length, and lets Java
// read and check them again.
func TestJavaReadsOurs(t *testing.T) {
	if os.Getenv("PAIMON_ORACLE_JAR") == "" {
		t.Skip("needs PAIMON_ORACLE_JAR, the jar of interop/java-oracle")
	}
	root := filepath.Join(sharedDir(t), "fixtures", "java", "warehouse")
	for i, table := range []string{"types.db/java_app_parquet", "types.db/app_parquet", "types.db/java_pk_parquet", "types.db/pk_parquet"} {
		t.Run(table, func(t *testing.T) {
			var schema struct {
				Fields      json.RawMessage
				PrimaryKeys []string
			}
			b, err := os.ReadFile(filepath.Join(root, table, "schema", "schema-0"))
			if err != nil {
				t.Skip("needs ../shared/fixtures/java/warehouse/" + table)
			}
			if err := json.Unmarshal(b, &schema); err != nil {
				t.Fatal(err)
			}
			name := strings.Replace(table, ".db/", ".", 1)
			wh := t.TempDir()
			rows := oracle(t, map[string]any{"cmd": "read", "warehouse": root, "table": name})
			want := rowText(t, rows)
			opts := map[string]string{"file.format": "parquet", "file.compression": "none", "bucket": "-1"}
			if len(schema.PrimaryKeys) > 0 {
				opts["bucket"] = "1"
			}
			oracle(t, map[string]any{"cmd": "create", "warehouse": wh, "table": name,
				"schema": map[string]any{"fields": schema.Fields, "primaryKeys": schema.PrimaryKeys, "options": opts}})
			oracle(t, map[string]any{"cmd": "write", "warehouse": wh, "table": name, "rows": rows["rows"], "options": map[string]string{"write-only": "true"}})
			files, _ := filepath.Glob(filepath.Join(wh, table, "bucket-*", "*.parquet"))
			if len(files) == 0 {
				t.Fatal("Java wrote no data file")
			}
			for k, p := range files {
				o := format.WriteOptions{Compression: "zstd"}
				if (i+k)%2 == 1 {
					o.Options = map[string]string{"parquet.page.row.count.limit": "7", "parquet.page.size": "300", "parquet.dictionary.page.size": "100"}
					o.Compression = "none"
				}
				if err := rewrite(p, o); err != nil {
					t.Fatal(err)
				}
			}
			if got := rowText(t, oracle(t, map[string]any{"cmd": "read", "warehouse": wh, "table": name})); got != want {
				t.Errorf("Java reads\n%.2000s\nwant\n%.2000s", got, want)
			}
			check := oracle(t, map[string]any{"cmd": "check", "warehouse": wh, "table": name, "deep": true, "read": true})
			if check["clean"] != true {
				t.Errorf("check: %v", check["problems"])
			}
		})
	}
}

// rewrite replaces a file by one of ours, of the same length if that fits (it is
// then said so by a shorter try without the parts that are optional).
func rewrite(path string, o format.WriteOptions) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	ctx := context.Background()
	probe, err := open(ctx, newMemFile(path, old), nil)
	if err != nil {
		return err
	}
	s := schemaOfFile(probe.root)
	r, err := open(ctx, newMemFile(path, old), s)
	if err != nil {
		return err
	}
	want := make([]int, len(s))
	for i := range s {
		want[i] = i
	}
	cr, err := r.Columns(ctx, format.RowRange{To: r.Rows()}, want)
	if err != nil {
		return err
	}
	cols, err := cr.Read(ctx, int(r.Rows()), nil)
	if err != nil {
		return err
	}
	for {
		var b bytes.Buffer
		w, err := create(&b, s, o)
		if err != nil {
			return err
		}
		if err := w.Write(cols, int(r.Rows())); err != nil {
			return err
		}
		if _, err := w.Close(); err != nil {
			return err
		}
		pad := len(old) - b.Len()
		if pad < 0 {
			if o.Compression == "none" {
				o.Compression = "zstd"
				continue
			}
			if o.Options != nil {
				o.Options = nil
				continue
			}
			return fmt.Errorf("our file has %d bytes, Java's %d", b.Len(), len(old))
		}
		// Nothing points at the bytes before the footer, so there is room.
		out := b.Bytes()
		at := len(out) - 8 - int(le32(out[len(out)-8:]))
		padded := append(bytes.Clone(out[:at]), make([]byte, pad)...)
		return os.WriteFile(path, append(padded, out[at:]...), 0o644)
	}
}
