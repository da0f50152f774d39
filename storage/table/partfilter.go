package table

import (
	"bytes"
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// Conditions on partition columns that are no predicates, such as date_trunc('month', day)
// = …, are the executor's to evaluate: Scan.Partitions is its filter, and planning shows
// it the values of the partitions that it meets, many at a time.

// partitionRows is how many partitions are judged at once.
const partitionRows = 2048

// partFilter judges partitions.
type partFilter struct {
	f    RowFilter
	gone map[string]bool // by image: judged; true = no row of it passes
}

// newPartFilter returns nil when there is nothing to judge by.
func (p *planner) newPartFilter() *partFilter {
	if p.scan.Partitions == nil || len(p.partCols) == 0 || !p.scan.prunes(PrunePartitions) {
		return nil
	}
	for _, c := range p.scan.Partitions.Columns() {
		if c < 0 || c >= len(p.partCols) {
			return nil
		}
	}
	return &partFilter{p.scan.Partitions, map[string]bool{}}
}

// judge finds out about partitions not seen before. One that cannot be decoded, or for
// which the filter fails, stays: whoever reads it tells.
func (p *planner) judge(ctx context.Context, images [][]byte) error {
	pf := p.partFilter
	var fresh [][]byte
	for _, im := range images {
		if _, ok := pf.gone[string(im)]; !ok {
			pf.gone[string(im)] = false
			fresh = append(fresh, im)
		}
	}
	for len(fresh) > 0 {
		n := min(len(fresh), partitionRows)
		if err := p.judgeSome(ctx, fresh[:n]); err != nil {
			return err
		}
		fresh = fresh[n:]
	}
	return nil
}

func (p *planner) judgeSome(ctx context.Context, images [][]byte) error {
	pf := p.partFilter
	cols := pf.f.Columns()
	vals := make([][]types.Datum, len(cols))
	kept := images[:0:0]
	for _, im := range images {
		row, err := binrow.Decode(im, p.partTypes)
		if err != nil {
			continue
		}
		kept = append(kept, im)
		for k, c := range cols {
			vals[k] = append(vals[k], row[c])
		}
	}
	b := &vec.Batch{N: len(kept), Cols: make([]arrow.Array, len(cols))}
	for k, c := range cols {
		f := p.schema.Fields[p.partCols[c]]
		b.Schema = append(b.Schema, f)
		b.Cols[k] = vec.FromDatums(f.Type, vals[k])
	}
	sel, err := pf.f.Select(ctx, b)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case len(kept) > 1: // which of them?
		half := len(kept) / 2
		if err := p.judgeSome(ctx, kept[:half]); err != nil {
			return err
		}
		return p.judgeSome(ctx, kept[half:])
	default:
		return nil
	}
	for _, im := range kept {
		pf.gone[string(im)] = true
	}
	for _, i := range sel {
		pf.gone[string(kept[i])] = false
	}
	return nil
}

// judgeManifests leaves out manifests of a single partition that does not pass.
func (p *planner) judgeManifests(ctx context.Context, metas []manifest.FileMeta) ([]manifest.FileMeta, error) {
	if p.partFilter == nil {
		return metas, nil
	}
	images := make([][]byte, len(metas))
	var all [][]byte
	for i := range metas {
		if images[i] = p.onlyPartition(&metas[i]); images[i] != nil {
			all = append(all, images[i])
		}
	}
	if err := p.judge(ctx, all); err != nil {
		return nil, err
	}
	out := metas[:0:0]
	for i := range metas {
		if images[i] == nil || !p.partFilter.gone[string(images[i])] {
			out = append(out, metas[i])
		}
	}
	return out, nil
}

// onlyPartition returns the image of the one partition whose files a manifest names, nil
// when it may name others.
func (p *planner) onlyPartition(m *manifest.FileMeta) []byte {
	s := &m.PartitionStats
	if len(s.NullCounts) != len(p.partCols) || !bytes.Equal(s.Min, s.Max) {
		return nil
	}
	for _, n := range s.NullCounts {
		if n != 0 {
			return nil
		}
	}
	vals, err := binrow.Decode(s.Min, p.partTypes)
	if err != nil {
		return nil
	}
	for _, v := range vals {
		if v == nil {
			return nil
		}
	}
	return s.Min
}

// judgeEntries judges the partitions of entries.
func (p *planner) judgeEntries(ctx context.Context, lists [][]manifest.Entry) error {
	if p.partFilter == nil {
		return nil
	}
	var last []byte
	var images [][]byte
	seen := map[string]bool{}
	for _, l := range lists {
		for i := range l {
			im := l[i].Partition
			if last != nil && bytes.Equal(last, im) {
				continue
			}
			if last = im; !seen[string(im)] {
				seen[string(im)] = true
				images = append(images, im)
			}
		}
	}
	return p.judge(ctx, images)
}
