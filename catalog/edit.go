package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// Further errors of edits.
var (
	// ErrInvalidName (42602): a name that cannot be a directory of the warehouse, or
	// that would read as one of a system table or branch.
	ErrInvalidName = errors.New("invalid name")
	// ErrReserved (42939): the name belongs to the system.
	ErrReserved = errors.New("name is reserved")
)

// privateDir holds what is ours alone at the top of a warehouse; Java, which looks
// for directories that end in .db, does not see it. What it holds of transactions
// and dropped tables is garbage once no process uses it.
const (
	privateDir = ".paimon-sql"
	trashDir   = privateDir + "/dropped"
	stagingDir = privateDir + "/staged"
)

var _ Editor = (*Filesystem)(nil)

// newName refuses names that a new schema or table cannot have.
func newName(kind, s string) error {
	switch {
	case !validName(s), strings.HasPrefix(s, "."), strings.TrimSpace(s) == "", len(s) > 200:
		return fmt.Errorf("%s %q: %w", kind, s, ErrInvalidName)
	case strings.ContainsRune(s, '$'):
		return fmt.Errorf("%s %q: %w: a dollar sign separates the name of a system table or branch", kind, s, ErrInvalidName)
	}
	return nil
}

// reservedSchema reports whether a schema is the system's.
func reservedSchema(s string) bool {
	// pg_temp_N is the one schema of a session's private warehouse.
	return s == "sys" || s == "information_schema" || strings.HasPrefix(s, "pg_") && !strings.HasPrefix(s, "pg_temp_")
}

func checkNewSchema(name string, props map[string]string) error {
	if err := newName("schema", name); err != nil {
		return err
	}
	if reservedSchema(name) || name == DefaultDatabase {
		return fmt.Errorf("schema %q: %w", name, ErrReserved)
	}
	for k := range props {
		if k != "comment" {
			return &fileio.UnsupportedError{Feature: "schema property " + k + " in a file system warehouse"}
		}
	}
	if name == PublicSchema {
		return fmt.Errorf("schema %q: %w", name, ErrSchemaExists)
	}
	return nil
}

// CreateSchema makes the database's directory, which is all that Paimon has of a
// database; props cannot be kept and must be empty or only hold a comment.
func (c *Filesystem) CreateSchema(ctx context.Context, name string, props map[string]string) error {
	if err := checkNewSchema(name, props); err != nil {
		return err
	}
	c.ddl.Lock()
	defer c.ddl.Unlock()
	dir := DatabaseDir(name)
	if _, err := c.env.IO.Stat(ctx, dir); err == nil {
		return fmt.Errorf("schema %q: %w", name, ErrSchemaExists)
	} else if !errors.Is(err, fileio.ErrNotExist) {
		return err
	}
	if err := c.makeDir(ctx, dir); err != nil {
		return err
	}
	c.version.Add(1)
	return nil
}

// makeDir makes an empty directory. Where directories are but prefixes of names
// the file that makes it stays.
func (c *Filesystem) makeDir(ctx context.Context, dir string) error {
	mark := dir + "/.paimon-sql-" + uuid.NewString()
	if err := c.env.IO.PutIfAbsent(ctx, mark, nil); err != nil {
		return err
	}
	if err := c.env.IO.Delete(ctx, mark); err != nil {
		return err
	}
	if _, err := c.env.IO.Stat(ctx, dir); errors.Is(err, fileio.ErrNotExist) {
		return c.env.IO.PutIfAbsent(ctx, mark, nil)
	} else if err != nil {
		return err
	}
	return nil
}

// DropSchema drops a database's directory. Without cascade it must hold nothing
// but hidden files.
func (c *Filesystem) DropSchema(ctx context.Context, name string, cascade bool) error {
	trash, err := c.detachSchema(ctx, name, cascade)
	if err != nil {
		return err
	}
	return c.destroy(ctx, trash)
}

// detachSchema makes a schema disappear and returns where its files are now.
func (c *Filesystem) detachSchema(ctx context.Context, name string, cascade bool) (trash string, err error) {
	if name == PublicSchema || name == DefaultDatabase || reservedSchema(name) {
		return "", fmt.Errorf("schema %q: %w: it cannot be dropped", name, ErrReserved)
	}
	c.ddl.Lock()
	defer c.ddl.Unlock()
	db, err := c.database(ctx, name)
	if err != nil {
		return "", err
	}
	if db == DefaultDatabase {
		return "", fmt.Errorf("schema %q: %w: it cannot be dropped", name, ErrReserved)
	}
	dir := DatabaseDir(db)
	es, err := c.env.IO.List(ctx, dir)
	if err != nil {
		return "", err
	}
	for _, e := range es {
		if strings.HasPrefix(e.Name, ".") {
			continue
		}
		if !cascade {
			return "", fmt.Errorf("schema %q: %w", name, ErrNotEmpty)
		}
		c.forget(dir + "/" + e.Name)
	}
	defer c.version.Add(1)
	return c.detach(ctx, dir)
}

// detach moves a directory out of the sight of all engines, so that it is gone at
// once and its name free, and returns its new place; the caller holds c.ddl.
func (c *Filesystem) detach(ctx context.Context, dir string) (trash string, err error) {
	trash = trashDir + "/" + privateName()
	err = c.renameDir(ctx, dir, trash)
	if errors.Is(err, fileio.ErrNotExist) {
		// As a rule the trash itself is what does not exist.
		if err = c.makeDir(ctx, trashDir); err == nil {
			err = c.renameDir(ctx, dir, trash)
		}
	}
	return trash, err
}

// renameDir moves a directory. An error that comes after the move, such as that of
// a sync or a lost reply, is none: what is where is looked up.
func (c *Filesystem) renameDir(ctx context.Context, from, to string) error {
	err := c.env.IO.RenameDir(ctx, from, to)
	if err == nil || errors.Is(err, fileio.ErrExist) || errors.Is(err, fileio.ErrNotExist) {
		return err
	}
	look := context.WithoutCancel(ctx)
	if _, e := c.env.IO.Stat(look, from); !errors.Is(e, fileio.ErrNotExist) {
		return err
	}
	if _, e := c.env.IO.Stat(look, to); e != nil {
		return err
	}
	return nil
}

// destroy deletes what was detached. What stays after a crash is found by Sweep.
func (c *Filesystem) destroy(ctx context.Context, trash string) error {
	return c.env.IO.DeleteDir(context.WithoutCancel(ctx), trash)
}

// place returns the database and directory of a table to be made.
func (c *Filesystem) place(ctx context.Context, sqlSchema, name string) (db, dir string, err error) {
	if err := newName("relation", name); err != nil {
		return "", "", err
	}
	if reservedSchema(sqlSchema) {
		return "", "", fmt.Errorf("schema %q: %w", sqlSchema, ErrReserved)
	}
	if db, err = c.database(ctx, sqlSchema); err != nil {
		return "", "", err
	}
	return db, DatabaseDir(db) + "/" + name, nil
}

// Define completes a definition as CreateTable stores it: field ids, NOT NULL of
// the key, and bucket = 1 for a primary-key table that names no bucket.
func Define(def *schema.Table) (*schema.Table, error) {
	d := *def
	_, keyOption := d.Options["primary-key"]
	if _, ok := d.Options["bucket"]; !ok && (len(d.PrimaryKeys) > 0 || keyOption) {
		d.Options = maps.Clone(d.Options)
		if d.Options == nil {
			d.Options = map[string]string{}
		}
		d.Options["bucket"] = "1"
	}
	return schema.New(&d)
}

// CreateTable publishes the first schema of a table; of several that make one name
// at the same time, in this process or another, one wins and the others get
// ErrRelationExists.
func (c *Filesystem) CreateTable(ctx context.Context, sqlSchema, name string, def *schema.Table) error {
	t, err := Define(def)
	if err != nil {
		return err
	}
	c.ddl.Lock()
	defer c.ddl.Unlock()
	return c.publish(ctx, sqlSchema, name, "", t)
}

// publish makes a table of schemas, the first of which decides the race. staged is
// a directory with files that the table starts with; empty = none. The caller
// holds c.ddl.
func (c *Filesystem) publish(ctx context.Context, sqlSchema, name, staged string, schemas ...*schema.Table) error {
	_, dir, err := c.place(ctx, sqlSchema, name)
	if err != nil {
		return err
	}
	exists := fmt.Errorf("relation %q: %w", name, ErrRelationExists)
	sm := c.store(dir).Schemas("")
	ids, err := sm.IDs(ctx)
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		return exists
	}
	// Snapshots without a schema are what another engine left of a dropped table. A
	// new table must not take them for its own, and whether they may be deleted is
	// not for us to say.
	if es, err := c.env.IO.List(ctx, dir+"/snapshot"); err != nil {
		return err
	} else if slices.ContainsFunc(es, func(e fileio.Entry) bool { return strings.HasPrefix(e.Name, "snapshot-") }) {
		return &fileio.PathError{Op: "create table in", Path: dir, Err: errors.New("the directory holds snapshots of another table: remove it first")}
	}
	if err := c.sweepHints(ctx, dir); err != nil {
		return err
	}
	ours, err := c.moveIn(ctx, staged, dir)
	if err != nil {
		return err
	}
	for _, t := range schemas {
		if err = sm.Commit(ctx, t); err != nil {
			break
		}
		ours = true
	}
	lost := errors.Is(err, fileio.ErrNotExist) // another process took the directory away
	if lost {
		err = fmt.Errorf("relation %q: %w", name, ErrChanged)
	}
	if err != nil && ours && !lost && !errors.Is(err, fileio.ErrExist) {
		// The directory holds nothing but ours; the name shall be free again.
		cleanup := context.WithoutCancel(ctx)
		if trash, e := c.detach(cleanup, dir); e == nil {
			_ = c.destroy(cleanup, trash)
		}
	}
	c.forget(dir)
	if errors.Is(err, fileio.ErrExist) {
		return exists
	}
	return err
}

// sweepHints deletes a directory that holds nothing but LATEST and EARLIEST: who
// was about to write these when the table was dropped makes them afterwards.
func (c *Filesystem) sweepHints(ctx context.Context, dir string) error {
	for _, d := range []string{dir, dir + "/snapshot"} {
		es, err := c.env.IO.List(ctx, d)
		if err != nil {
			return err
		}
		if len(es) == 0 {
			return nil
		}
		for _, e := range es {
			if d == dir && e.Name != "snapshot" || d != dir && e.Name != "LATEST" && e.Name != "EARLIEST" {
				return nil
			}
		}
	}
	return c.env.IO.DeleteDir(ctx, dir)
}

// moveIn renames a staging directory, if there is one, to a table's; moved says that
// the latter did not exist before.
func (c *Filesystem) moveIn(ctx context.Context, staged, dir string) (moved bool, err error) {
	if staged == "" {
		return false, nil
	}
	if _, err := c.env.IO.Stat(ctx, staged); errors.Is(err, fileio.ErrNotExist) {
		return false, nil // nothing was written
	} else if err != nil {
		return false, err
	}
	err = c.renameDir(ctx, staged, dir)
	if errors.Is(err, fileio.ErrNotExist) {
		// The database default is made when something is put there.
		parent, _, _ := strings.Cut(dir, "/")
		if err = c.makeDir(ctx, parent); err == nil {
			err = c.renameDir(ctx, staged, dir)
		}
	}
	if errors.Is(err, fileio.ErrExist) {
		return false, &fileio.PathError{Op: "create table in", Path: dir, Err: errors.New("a directory without a schema is in the way: remove it first")}
	}
	return err == nil, err
}

// target splits and finds the table that a change names; branch suffixes pass only
// when branches may be named.
func (c *Filesystem) target(ctx context.Context, sqlSchema, name string, branches bool) (db, base, branch string, err error) {
	if reservedSchema(sqlSchema) {
		return "", "", "", fmt.Errorf("schema %q: %w", sqlSchema, ErrReserved)
	}
	base, branch, system, err := splitName(name)
	if err != nil {
		return "", "", "", err
	}
	if db, base, err = c.Find(ctx, sqlSchema, base); err != nil {
		return "", "", "", err
	}
	if system != "" || branch != "" && !branches {
		return "", "", "", fmt.Errorf("relation %q: %w: it is part of another table", name, ErrReserved)
	}
	return db, base, branch, nil
}

// maxRaces bounds how often one change is tried against others.
const maxRaces = 100

// AlterTable publishes a schema version with the changes applied. When another
// session or process publishes first, the changes are applied to what it made.
func (c *Filesystem) AlterTable(ctx context.Context, sqlSchema, name string, changes []schema.Change) error {
	db, base, branch, err := c.target(ctx, sqlSchema, name, true)
	if err != nil {
		return err
	}
	store := c.store(DatabaseDir(db) + "/" + base)
	sm := store.Schemas(branch)
	for range maxRaces {
		old, err := sm.Latest(ctx)
		if err != nil {
			return dropped(name, err)
		}
		latest, err := store.Snapshots(branch).LatestID(ctx)
		if err != nil {
			return err
		}
		t, err := schema.Apply(old, changes, latest > 0)
		if err != nil {
			return err
		}
		if err = c.checkBranches(ctx, store.Dir(), t); err != nil {
			return err
		}
		if err = sm.Commit(ctx, t); err == nil {
			c.version.Add(1)
			return nil
		}
		if !errors.Is(err, fileio.ErrExist) {
			return err
		}
	}
	return fmt.Errorf("relation %q: %w", name, ErrChanged)
}

// checkBranches checks that the branches that options name exist.
func (c *Filesystem) checkBranches(ctx context.Context, dir string, t *schema.Table) error {
	for _, k := range []string{"scan.fallback-branch", "scan.primary-branch"} {
		b := schema.Options(t.Options).String(k, "")
		if b == "" {
			continue
		}
		if !validName(b) {
			return &schema.ChangeError{Kind: schema.BadOption, Option: k, Msg: fmt.Sprintf("option %q names branch %q, which does not exist", k, b)}
		}
		ids, err := c.store(dir).Schemas(b).IDs(ctx)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return &schema.ChangeError{Kind: schema.BadOption, Option: k, Msg: fmt.Sprintf("option %q names branch %q, which does not exist", k, b)}
		}
	}
	return nil
}

// RenameTable moves a table's directory.
func (c *Filesystem) RenameTable(ctx context.Context, sqlSchema, name, newSchema, newName string) error {
	db, base, _, err := c.target(ctx, sqlSchema, name, false)
	if err != nil {
		return err
	}
	c.ddl.Lock()
	defer c.ddl.Unlock()
	_, to, err := c.place(ctx, newSchema, newName)
	if err != nil {
		return err
	}
	from := DatabaseDir(db) + "/" + base
	ids, err := c.store(to).Schemas("").IDs(ctx)
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		return fmt.Errorf("relation %q: %w", newName, ErrRelationExists)
	}
	err = c.renameDir(ctx, from, to)
	if errors.Is(err, fileio.ErrNotExist) {
		parent, _, _ := strings.Cut(to, "/")
		if err = c.makeDir(ctx, parent); err == nil {
			err = c.renameDir(ctx, from, to)
		}
	}
	c.forget(from)
	c.forget(to)
	switch {
	case errors.Is(err, fileio.ErrExist):
		return fmt.Errorf("relation %q: %w", newName, ErrRelationExists)
	case errors.Is(err, fileio.ErrNotExist):
		return fmt.Errorf("relation %q: %w", name, ErrNoRelation)
	}
	return err
}

// DropTable makes a table disappear at once and then deletes its files. Files in
// external paths stay.
func (c *Filesystem) DropTable(ctx context.Context, sqlSchema, name string) error {
	trash, err := c.detachTable(ctx, sqlSchema, name)
	if err != nil {
		return err
	}
	return c.destroy(ctx, trash)
}

func (c *Filesystem) detachTable(ctx context.Context, sqlSchema, name string) (trash string, err error) {
	db, base, _, err := c.target(ctx, sqlSchema, name, false)
	if err != nil {
		return "", err
	}
	c.ddl.Lock()
	defer c.ddl.Unlock()
	dir := DatabaseDir(db) + "/" + base
	trash, err = c.detach(ctx, dir)
	c.forget(dir)
	if errors.Is(err, fileio.ErrNotExist) {
		return "", fmt.Errorf("relation %q: %w", name, ErrNoRelation)
	}
	return trash, err
}
