package engine

import (
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/exec/vectorized"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// replacement says what an INSERT OVERWRITE replaces: the partitions that get
// rows (dynamic), those that the PARTITION clause names, or everything.
func (m *modifier) replacement(ctx context.Context, o *plan.OverwriteSpec) (*commit.Replacement, error) {
	if o.Dynamic {
		return &commit.Replacement{Dynamic: true}, nil
	}
	if len(o.Static) == 0 {
		return &commit.Replacement{}, nil
	}
	want := map[string]types.Datum{}
	for name, e := range o.Static {
		d, err := vectorized.EvalConst(ctx, e, m.args, m.s.env())
		if err != nil {
			return nil, err
		}
		want[name] = d
	}
	parts, err := m.s.partitions(ctx, m.rel, want)
	if err != nil {
		return nil, err
	}
	return &commit.Replacement{Partitions: parts}, nil
}

// partitions returns the images of the partitions of a table whose columns have
// the values given, in SQL form: the one that is named whole, whether it exists
// or not, or those that exist.
func (s *Session) partitions(ctx context.Context, rel catalog.TableInfo, want map[string]types.Datum) ([][]byte, error) {
	cols := rel.Columns()
	keys := rel.PartitionKeys()
	one := &vec.Batch{N: 1}
	var nodes []predicate.Node
	for i, c := range cols {
		d, named := want[c.Name]
		one.Schema = append(one.Schema, c.Field)
		if !named {
			one.Cols = append(one.Cols, vec.MakeNull(c.Type.Arrow(), 1))
			continue
		}
		one.Cols = append(one.Cols, vec.FromDatums(c.Type, []types.Datum{d}))
		leaf := &predicate.Leaf{Op: predicate.Eq, Col: i, FieldID: c.ID, Name: c.Name, Type: c.Type, Args: []types.Datum{d}}
		if d == nil {
			leaf.Op, leaf.Args = predicate.IsNull, nil
		}
		nodes = append(nodes, leaf)
	}
	stored, err := toStored(rel, one)
	if err != nil {
		return nil, err
	}
	sch, err := rel.Table().Schema(ctx, rel.At())
	if err != nil {
		return nil, err
	}
	var ts []types.Type
	var arrs []arrow.Array
	for _, k := range keys {
		i := sch.Fields.Index(k)
		ts, arrs = append(ts, sch.Fields[i].Type), append(arrs, stored.Cols[i])
	}
	if len(want) == len(keys) {
		img, err := binrow.NewArrowEncoder(ts, arrs).Row(0)
		if err != nil {
			return nil, err
		}
		return [][]byte{slices.Clone(img)}, nil
	}
	p, err := rel.Plan(ctx, table.Scan{Limit: -1, Filter: predicate.Conj(nodes...)})
	if err != nil {
		return nil, err
	}
	out := [][]byte{}
	seen := map[string]bool{}
	for _, sp := range p.Splits {
		if len(sp.Partition) != len(keys) {
			continue
		}
		matches := true
		for i, k := range keys {
			if d, named := want[k]; named {
				v := vec.DatumAt(arrs[i], ts[i], 0)
				if d == nil || sp.Partition[i] == nil {
					matches = matches && d == nil && sp.Partition[i] == nil
				} else if c, ok := predicate.Compare(ts[i], sp.Partition[i], v); !ok || c != 0 {
					matches = false
				}
			}
		}
		if !matches {
			continue
		}
		var vals []arrow.Array
		for i, d := range sp.Partition {
			vals = append(vals, vec.FromDatums(ts[i], []types.Datum{d}))
		}
		img, err := binrow.NewArrowEncoder(ts, vals).Row(0)
		if err != nil {
			return nil, err
		}
		if !seen[string(img)] {
			seen[string(img)] = true
			out = append(out, slices.Clone(img))
		}
	}
	return out, nil
}

// empty makes the emptying of partitions (nil = of the whole table) part of the
// transaction. The table is locked.
func (s *Session) empty(ctx context.Context, rel catalog.TableInfo, partitions [][]byte) error {
	if rel.Table() == nil {
		return pgerr.New(pgerr.FeatureNotSupported, "changing %q is not supported", rel.Name())
	}
	if err := s.inPresent(rel); err != nil {
		return err
	}
	if _, err := s.lockTable(ctx, keyOf(rel), rel.Name(), lockExclusive, false); err != nil {
		return err
	}
	t := s.touch(rel)
	if err := s.flush(ctx, t); err != nil {
		return err
	}
	t.schemaID, t.store = rel.SchemaID(), rel.Table()
	t.lay(commit.Changes{Kind: commit.Overwrite, Branch: t.key.branch, Base: snapshotID(rel.At()), Operation: "TRUNCATE",
		Overwrite: &commit.Replacement{Partitions: partitions}})
	return nil
}

// inPresent refuses to change a table in a session that reads the past.
func (s *Session) inPresent(rel catalog.Relation) error {
	if s.set.use().scanVersion == "" {
		return nil
	}
	return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "cannot change table %q while paimon.scan_version is set", rel.Name()).
		WithHint("RESET paimon.scan_version returns the session to the present.")
}

// runTruncate is TRUNCATE. What RESTART IDENTITY does is not undone by a rollback.
func (s *Session) runTruncate(ctx context.Context, st *ast.Truncate) (*running, error) {
	r := s.newResolver()
	for _, t := range st.Tables {
		rel, err := r.Relation(ctx, t.Name, resolveDefaults(s))
		if err != nil {
			return nil, err
		}
		info, ok := rel.(catalog.TableInfo)
		if !ok {
			return nil, pgerr.New(pgerr.WrongObjectType, "%q is not a table", rel.Name())
		}
		if err := s.mayUse(ctx, rel, roles.Truncate); err != nil {
			return nil, err
		}
		if err := s.empty(ctx, info, nil); err != nil {
			return nil, err
		}
		if st.Restart {
			if err := s.restartIdentity(ctx, info); err != nil {
				return nil, err
			}
		}
	}
	return &running{tag: fixedTag("TRUNCATE TABLE")}, nil
}

// lockRights are the privileges any of which allows LOCK TABLE in a mode.
func lockRights(mode string) roles.Mode {
	write := roles.Update | roles.Delete | roles.Truncate
	switch mode {
	case "ACCESS SHARE":
		return roles.Select
	case "ROW EXCLUSIVE":
		return write | roles.Insert
	}
	return write
}

// runLock is LOCK TABLE.
func (s *Session) runLock(ctx context.Context, st *ast.LockTable) (*running, error) {
	if err := s.inBlock("LOCK TABLE"); err != nil {
		return nil, err
	}
	r := s.newResolver()
	for _, t := range st.Tables {
		rel, err := r.Relation(ctx, t.Name, resolveDefaults(s))
		if err != nil {
			return nil, err
		}
		if err := s.mayUse(ctx, rel, lockRights(st.Mode)); err != nil {
			return nil, err
		}
		info, ok := rel.(catalog.TableInfo)
		if !ok {
			continue // views and system tables are not written
		}
		var mode lockMode
		switch st.Mode {
		case "ACCESS SHARE", "ROW SHARE": // readers are in nobody's way
			continue
		case "ROW EXCLUSIVE":
			mode = lockIntent
		case "SHARE":
			mode = lockShared
		default:
			mode = lockExclusive
		}
		if _, err := s.lockTable(ctx, keyOf(info), info.Name(), mode, st.NoWait); err != nil {
			return nil, err
		}
	}
	return &running{tag: fixedTag("LOCK TABLE")}, nil
}
