package table

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// getByScan is Get by a scan that key statistics, buckets and page indexes narrow:
// for tables whose state is made of two branches.
func (t *FileStore) getByScan(ctx context.Context, l Lookup) (*vec.Batch, []int32, error) {
	at, keys, cols := l.At, l.Keys, l.Columns
	st, err := t.state(ctx, at, nil)
	if err != nil {
		return nil, nil, err
	}
	pk, err := columnsOf(st.schema, st.schema.PrimaryKeys)
	if err != nil {
		return nil, nil, err
	}
	if len(pk) == 0 || len(keys) != len(pk) {
		return nil, nil, fmt.Errorf("lookup by %d columns in a table with a key of %d", len(keys), len(pk))
	}
	at.Schema = st.schema.ID + 1
	var ts []types.Type
	var nodes []predicate.Node
	for i, c := range pk {
		f := st.schema.Fields[c]
		ts = append(ts, f.Type)
		leaf := &predicate.Leaf{Op: predicate.In, Col: c, FieldID: f.ID, Name: f.Name, Type: f.Type}
		for r := range keys[i].Len() {
			if d := vec.DatumAt(keys[i], f.Type, r); d != nil && !slices.ContainsFunc(leaf.Args, func(x types.Datum) bool {
				v, ok := predicate.Compare(f.Type, x, d)
				return ok && v == 0
			}) {
				leaf.Args = append(leaf.Args, d)
			}
		}
		if len(leaf.Args) == 0 {
			return &vec.Batch{Schema: fieldsOf(st.schema.Fields, cols), Cols: emptyColumns(st.schema.Fields, cols)}, nil, nil
		}
		nodes = append(nodes, leaf)
	}
	want := map[string][]int32{}
	codec := mergetree.NewKeyCodec(ts)
	for r := range keys[0].Len() {
		if k, ok := keyAt(codec, ts, keys, r); ok {
			want[k] = append(want[k], int32(r))
		}
	}
	return t.scanKeys(ctx, Scan{At: at, Columns: append(slices.Clone(pk), cols...), Overlay: l.Overlay, SkipLevel0: l.SkipLevel0, Options: l.Options, Filter: predicate.Conj(nodes...), Limit: -1}, len(pk), codec, want)
}

// keyAt returns the byte form of key r; false when a column is NULL. CHAR is
// compared without trailing blanks, as SQL does.
func keyAt(codec *mergetree.KeyCodec, ts []types.Type, keys []arrow.Array, r int) (string, bool) {
	vals := make([]types.Datum, len(keys))
	for i := range keys {
		if vals[i] = vec.DatumAt(keys[i], ts[i], r); vals[i] == nil {
			return "", false
		}
		if s, ok := vals[i].(string); ok && ts[i].Kind == types.BpChar {
			vals[i] = trimBlanks(s)
		}
	}
	return string(codec.Append(nil, vals)), true
}

func (t *FileStore) scanKeys(ctx context.Context, s Scan, nkey int, codec *mergetree.KeyCodec, want map[string][]int32) (*vec.Batch, []int32, error) {
	plan, err := t.Plan(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	cols := s.Columns[nkey:]
	parts := make([][]arrow.Array, len(cols))
	var which []int32
	for _, sp := range plan.Splits {
		rd, err := t.Read(ctx, s, sp, ReadOptions{})
		if err != nil {
			return nil, nil, err
		}
		for {
			b, err := rd.Next(ctx)
			if err != nil {
				_ = rd.Close()
				return nil, nil, err
			}
			if b == nil {
				break
			}
			var idx []int32
			for r := range b.N {
				k, ok := keyAt(codec, codec.Types(), b.Cols[:nkey], r)
				if !ok {
					continue
				}
				for _, q := range want[k] {
					idx, which = append(idx, int32(r)), append(which, q)
				}
			}
			if len(idx) > 0 {
				for i := range cols {
					parts[i] = append(parts[i], vec.Take(b.Cols[nkey+i], idx))
				}
			}
		}
		if err := rd.Close(); err != nil {
			return nil, nil, err
		}
	}
	out := &vec.Batch{Schema: fieldsOf(plan.Schema.Fields, cols), N: len(which), Cols: emptyColumns(plan.Schema.Fields, cols)}
	for i := range cols {
		if len(parts[i]) > 0 {
			out.Cols[i] = vec.Concat(vec.Plain(parts[i][0].DataType()), parts[i])
		}
	}
	return out, which, nil
}
