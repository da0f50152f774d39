package engine

import (
	"context"

	"github.com/paimon-sql/paimon-sql/exec/vectorized"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

func (s *Session) newTape(base int64) *vectorized.Tape {
	work := s.set.use().workMem
	return vectorized.NewTape(s.eng.root.Child("work_mem", work), work, s.eng.localDir, base)
}

// fill takes rows of a source until there are upTo (negative: all of them), and
// reports whether the source may have more.
func fill(ctx context.Context, t *vectorized.Tape, r *running, upTo int64) (more bool, err error) {
	for upTo < 0 || t.Rows() < upTo {
		if r.src == nil {
			return false, nil
		}
		b := r.cur
		if b == nil {
			if b, err = r.src.Next(ctx); err != nil {
				return false, err
			}
			if b == nil {
				return false, nil
			}
		} else {
			b = vec.Part(b, r.off, b.Size()-r.off)
			r.cur, r.off = nil, 0
		}
		if err := t.Add(b); err != nil {
			return false, err
		}
	}
	return true, nil
}
