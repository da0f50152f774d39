package engine

import (
	"os"
	"path/filepath"
	"testing"
)

// Directories of processes that are gone are swept, those in use are not.
func TestSweepTempDirs(t *testing.T) {
	parent := t.TempDir()
	mine, err := newTempDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	// A process that ends badly gives its lock up, no more.
	dead, err := newTempDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.lock.Close(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{mine.path, dead.path, filepath.Join(parent, "paimon-sql-other"), filepath.Join(parent, "elsewhere")} {
		if err := os.MkdirAll(filepath.Join(d, "pg_temp_1.db", "t"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(parent, "elsewhere"), filepath.Join(parent, tempDirPrefix+"link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, tempDirPrefix+"file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := sweepTempDirs(parent); n != 1 {
		t.Errorf("%d directories were swept, want 1", n)
	}
	for _, d := range []string{mine.path, filepath.Join(parent, "paimon-sql-other"), filepath.Join(parent, "elsewhere", "pg_temp_1.db")} {
		if _, err := os.Stat(d); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dead.path); !os.IsNotExist(err) {
		t.Errorf("the directory of a dead process is still there: %v", err)
	}
	if err := mine.remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mine.path); !os.IsNotExist(err) {
		t.Errorf("a directory that was removed is still there: %v", err)
	}
}

// The sweep of an engine takes both kinds of garbage.
func TestEngineSweeps(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, tempDirPrefix+"123")
	if err := os.MkdirAll(filepath.Join(dead, "pg_temp_1.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	trash := filepath.Join(dir, "wh", ".paimon-sql", "dropped", "5b2d7b6e-58a4-4b0c-9d0f-5a4b0c9d0f5a")
	if err := os.MkdirAll(filepath.Join(trash, "schema"), 0o700); err != nil {
		t.Fatal(err)
	}
	e, err := Open(t.Context(), Config{Warehouse: filepath.Join(dir, "wh"), TempDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	e.sweep(t.Context())
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dead, trash} {
		if _, err := os.Stat(d); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", d, err)
		}
	}
}

// DISCARD drops temporary tables, as a statement of the transaction.
func TestDiscardTemp(t *testing.T) {
	e := writeEngine(t, nil)
	a := testSession(t, e)
	gone := `ERROR 42P01 relation "x" does not exist`
	for _, what := range []string{"TEMP", "TEMPORARY", "ALL"} {
		expect(t, a, "CREATE TEMP TABLE x (a int) ON COMMIT DELETE ROWS", "CREATE TABLE I")
		expect(t, a, "CREATE TEMP TABLE y (a int)", "CREATE TABLE I")
		tag := "DISCARD " + what
		if what == "TEMPORARY" {
			tag = "DISCARD TEMP"
		}
		expect(t, a, "DISCARD "+what, tag+" I")
		expect(t, a, "SELECT * FROM x", gone+" I")
	}
	expect(t, a, "CREATE TEMP TABLE x (a int)", "CREATE TABLE I")
	expect(t, a, "INSERT INTO x VALUES (1)", "INSERT 0 1 I")
	expect(t, a, "BEGIN; DISCARD TEMP", "BEGIN DISCARD TEMP T")
	expect(t, a, "SELECT * FROM x", gone+" E")
	expect(t, a, "ROLLBACK", "ROLLBACK I")
	expect(t, a, "SELECT * FROM x", "(1) SELECT 1 I")
	expect(t, a, "DISCARD PLANS", "DISCARD PLANS I")
	expect(t, a, "SELECT * FROM x", "(1) SELECT 1 I")
}
