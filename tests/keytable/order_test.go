package keytable

import (
	"errors"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/table"
	"github.com/paimon-sql/paimon-sql/tests/session"

	"github.com/apache/arrow/go/v15/arrow"
)

// TestOrderOfCommits has two writers begin on one state. Where rows are folded the
// second to commit has to take higher sequence numbers: a compaction that has
// folded the first one's row over an old column would else put that old value over
// the second one's.
func TestOrderOfCommits(t *testing.T) {
	s := session.Open(t, fileio.NewMem(), "mem")
	for engine, refused := range map[string]bool{"deduplicate": false, "first-row": false, "partial-update": true, "aggregation": true} {
		for _, bucket := range []string{"1", "-1"} {
			c := &config{engine: engine, part: "none", fields: []field{{"a", "int"}, {"b", "int"}}, opts: map[string]string{"merge-engine": engine, "bucket": bucket}}
			st := &story{c: c, name: "o_" + engine[:3] + "_" + map[string]string{"1": "one", "-1": "dyn"}[bucket], s: s}
			st.sql(c.create(st.name))
			st.sql("insert into " + st.name + " values (1, 1, 1)")
			info, tab := st.store()
			acc := mem.NewRoot("", 1<<30)
			var made []commit.Changes
			for _, v := range [][]types.Datum{{int64(1), int64(2), nil}, {int64(1), nil, int64(3)}} {
				w, err := tab.Write(t.Context(), table.WriteOptions{At: info.At(), Account: acc})
				if err != nil {
					t.Fatal(err)
				}
				b := &vec.Batch{N: 1, Cols: make([]arrow.Array, len(v))}
				for i, d := range v {
					b.Cols[i] = vec.FromDatums(types.Of(types.Int4), []types.Datum{d})
				}
				if err := w.Write(t.Context(), b, nil); err != nil {
					t.Fatal(err)
				}
				ch, err := w.Prepare(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				made = append(made, ch)
			}
			if _, err := tab.Commit(t.Context(), made[0]); err != nil {
				t.Fatal(err)
			}
			_, err := tab.Commit(t.Context(), made[1])
			var lost *commit.ConflictError
			if got := errors.As(err, &lost) && lost.Sequence; got != refused {
				t.Errorf("%s, bucket %s: the second commit: %v", engine, bucket, err)
			}
			acc.Close()
		}
	}
}
