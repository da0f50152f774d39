package table

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// changelog-producer = input: what the writer is given is the changelog. At each
// flush the buffered rows of a bucket go to changelog files, unmerged, with their
// kinds, in the order in which they are merged; after that they become level-0
// files as in any key table. INSERT OVERWRITE has no changelog.
// Source: MergeTreeWriter.flushWriteBuffer, SortBufferWriteBuffer.forEach.

// LogOnly marks a row kind given to Writer.Write: the row goes to the changelog of
// a table with changelog-producer = input, and nowhere else. UPDATE writes what a
// row was before that way: merged, it could take the new row with it where the
// sequence fields go back, and merge engines that take no retractions would refuse
// it.
const LogOnly uint8 = 0x80

// LogsInput reports whether writers of a table with these options keep a changelog
// of what they are given, so that rows marked LogOnly are of use.
func LogsInput(o schema.Options) bool {
	return o.Enum("changelog-producer", "none") == "input" && o.String("rowkind.field", "") == ""
}

// changelogOptions are a table's options as its changelog files have them, and the
// prefix of their names.
func changelogOptions(o schema.Options) (schema.Options, string, error) {
	if f := o.Enum("changelog-file.format", "parquet"); f != "parquet" {
		return nil, "", &fileio.UnsupportedError{Feature: "writing to a table with changelog-file.format = " + f}
	}
	over := map[string]string{}
	if c := o.String("changelog-file.compression", ""); c != "" {
		over["file.compression"], over["file.compression.per.level"] = c, ""
	}
	if m := o.String("changelog-file.stats-mode", ""); m != "" {
		over["metadata.stats-mode"], over["metadata.stats-mode.per.level"] = m, ""
	}
	if len(over) > 0 {
		o = o.With(over)
	}
	return o, o.String("changelog-file.prefix", "changelog-"), nil
}

// newChangelog opens a writer of changelog files of a bucket.
func (w *tableWriter) newChangelog(n uint32) (datafile.Writer, error) {
	o, prefix, err := changelogOptions(w.st.options)
	if err != nil {
		return nil, err
	}
	return datafile.New(datafile.Options{
		IO: w.t.env.IO, Dir: w.r.targets[n].dir, Format: w.format, Schema: w.st.schema, Table: o, Prefix: prefix, NoIndexes: true,
	})
}

// logInput writes the rows of a share to changelog files, when the table keeps a
// changelog of its input, and takes those out of the share that are only for it.
func (w *tableWriter) logInput(ctx context.Context, s *share, alone bool) error {
	b := &w.buf
	n := len(s.row)
	// Rows are numbered as the data files number them; a row that is not in those has
	// the number of the one behind it.
	at := make([]uint32, n)
	kinds := make([]uint8, n)
	data := uint32(0)
	for i := range n {
		if ks := b.items[s.src[i]].kinds; ks != nil {
			kinds[i] = ks[s.row[i]]
		}
		if at[i] = data; kinds[i]&LogOnly == 0 {
			data++
		}
	}
	if w.inputLog {
		if err := w.writeInput(ctx, s, at, kinds, alone); err != nil {
			return err
		}
	}
	if int(data) == n {
		return nil
	}
	src, row := make([]uint16, 0, data), make([]uint32, 0, data)
	for i, k := range kinds {
		if k&LogOnly == 0 {
			src, row = append(src, s.src[i]), append(row, s.row[i])
		}
	}
	s.src, s.row = src, row
	return nil
}

// writeInput writes the changelog files of a share.
func (w *tableWriter) writeInput(ctx context.Context, s *share, at []uint32, kinds []uint8, alone bool) error {
	b := &w.buf
	n := len(s.row)
	gather := func(cols []int) []arrow.Array {
		out := make([]arrow.Array, len(cols))
		for i, c := range cols {
			out[i] = b.gather(c, w.want[c], s.src, s.row)
		}
		return out
	}
	var k mergetree.Keys
	w.codec.Fill(&k, gather(w.keyCols), n)
	var user *mergetree.SequenceKeys
	if len(w.seqCols) > 0 {
		user = mergetree.NewSequenceKeys(w.seqTypes, gather(w.seqCols), n, w.seqDesc)
	}
	order := w.codec.Sorted(&k, n, user)
	f, err := w.newChangelog(s.target)
	if err != nil {
		return err
	}
	base := w.targets[s.target].next
	m := min(n, chunkRows)
	src, row := make([]uint16, m), make([]uint32, m)
	seq, kd := make([]int64, m), make([]int8, m)
	for from := 0; from < n; from += m {
		part := order[from:min(from+m, n)]
		for i, o := range part {
			src[i], row[i] = s.src[o], s.row[o]
			seq[i], kd[i] = base+int64(at[o]), int8(kinds[o]&^LogOnly)
		}
		cols := w.gatherAll(src[:len(part)], row[:len(part)], alone)
		if err := f.Write(ctx, cols, len(part), seq[:len(part)], kd[:len(part)]); err != nil {
			_ = f.Abort(ctx) // the error says why
			return err
		}
	}
	if s.log, err = f.Close(ctx); err != nil {
		_ = f.Abort(ctx) // the error says why
	}
	return err
}

// noteLog notes changelog files of a bucket.
func (w *tableWriter) noteLog(n uint32, files []*manifest.DataFile) {
	b, t := w.r.targets[n], w.targets[n]
	for _, f := range files {
		t.log = append(t.log, manifest.Entry{Kind: manifest.Add, Partition: b.part.image, Bucket: b.bucket, TotalBuckets: w.r.totalBuckets(b), File: f})
	}
}
