package table

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// removalOptions are what compactions do, in sets.
var removalOptions = []map[string]string{
	{},
	{"changelog-producer": "lookup"},
	{"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"},
	{"changelog-producer": "full-compaction"},
	{"deletion-vectors.enabled": "true"},
	{"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
	{"force-lookup": "true"},
}

// removers are the engines that remove rows, over columns k, a, b, g.
var removers = map[string]map[string]string{
	"on delete":   {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
	"by group":    {"merge-engine": "partial-update", "fields.g.sequence-group": "a", "partial-update.remove-record-on-sequence-group": "g"},
	"aggregation": {"merge-engine": "aggregation", "aggregation.remove-record-on-delete": "true", "fields.a.aggregate-function": "sum"},
}

// removalModel is what a table of removers has.
type removalModel struct {
	engine string
	rows   map[int64]*[3]types.Datum // a, b, g
}

func (m *removalModel) write(kind uint8, v []types.Datum) {
	k := v[0].(int64)
	if kind == 3 {
		delete(m.rows, k)
		return
	}
	r := m.rows[k]
	if r == nil {
		m.rows[k] = &[3]types.Datum{v[1], v[2], v[3]}
		return
	}
	for c, d := range v[1:] {
		switch {
		case m.engine == "by group" && c == 0: // g is never NULL, and grows
			r[c] = d
		case d == nil:
		case m.engine == "aggregation" && c == 0 && r[c] != nil:
			r[c] = r[c].(int64) + d.(int64)
		default:
			r[c] = d
		}
	}
}

func (m *removalModel) text(s types.Schema) []string {
	var out []string
	for k, r := range m.rows {
		p := fmt.Sprint(k)
		for c, d := range r {
			if d == nil {
				p += "|NULL"
			} else {
				p += "|" + text(s[c+1].Type, d)
			}
		}
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// TestRemovedRowsStayAway writes, removes and writes again, in one commit or in
// several, with compactions of few files and of all: a row begins anew after it was
// removed, and no compaction changes what is read.
func TestRemovedRowsStayAway(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 9))
	for i := range testkit.Rounds(2) {
		for _, name := range slices.Sorted(maps.Keys(removers)) {
			for _, more := range removalOptions {
				t.Run(fmt.Sprint(i, " ", name, " ", more), func(t *testing.T) { removedRound(t, r, name, more) })
			}
		}
	}
}

func removedRound(t *testing.T, r *rand.Rand, name string, more map[string]string) {
	opts := map[string]string{"bucket": "1", "num-sorted-run.compaction-trigger": fmt.Sprint(2 + r.IntN(3)), "compaction.size-ratio": []string{"1", "100"}[r.IntN(2)]}
	maps.Copy(opts, removers[name])
	maps.Copy(opts, more)
	s := tableSchema(t, opts, []string{"k"}, "k INT", "a INT", "b INT", "g INT")
	w := newWritten(t, s)
	m := &removalModel{engine: name, rows: map[int64]*[3]types.Datum{}}
	var log []string
	g := int64(0)
	for step := range 12 {
		n := 1 + r.IntN(6)
		if step == 0 {
			n = 300
		}
		for range 1 + r.IntN(2) { // statements of one commit
			var rows [][]types.Datum
			var kinds []uint8
			for i := range n {
				k := r.Int64N(5)
				if i > 6 {
					k = 100 + int64(i)
				}
				g++
				v := []types.Datum{k, nil, nil, g}
				kind := uint8(0)
				if r.IntN(3) == 0 {
					kind = 3
				} else {
					for c := 1; c < 3; c++ {
						if r.IntN(2) == 0 {
							v[c] = r.Int64N(100)
						}
					}
				}
				if kind == 3 && name != "by group" {
					v[3] = nil
				}
				rows, kinds = append(rows, v), append(kinds, kind)
				m.write(kind, v)
				if k < 5 {
					log = append(log, fmt.Sprint(step, " ", kind, " ", v))
				}
			}
			w.write(rows, kinds)
		}
		if r.IntN(2) == 0 {
			out, _, err := w.store.Fold(t.Context(), w.over, w.ref(), nil)
			if err != nil {
				t.Fatal(err)
			}
			w.over = out
		}
		w.publish()
		check := func(when string) {
			t.Helper()
			if got, want := w.scan(nil), m.text(s.Fields); !slices.Equal(got, want) {
				for _, l := range log {
					t.Log(l)
				}
				t.Fatalf("step %d %s: %d rows, want %d%s", step, when, len(got), len(want), diff(got, want))
			}
		}
		check("written")
		if r.IntN(3) == 0 {
			continue
		}
		full := step == 0 || r.IntN(6) == 0
		rep, err := w.store.Compact(t.Context(), CompactOptions{Full: full, Level0: !full && r.IntN(2) == 0})
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, fmt.Sprintf("compacted %+v", rep))
		check("compacted")
	}
}
