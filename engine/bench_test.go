package engine

import (
	"context"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// BenchmarkStatement is what a session adds to a statement that does nothing.
func BenchmarkStatement(b *testing.B) {
	cat := &memCatalog{}
	cat.add("public.t", 1)
	s := testSession(b, testEngine(b, cat))
	ctx := context.Background()
	for _, sql := range []string{"SELECT 1", "SELECT id FROM t", "SHOW TimeZone"} {
		b.Run("simple/"+sql, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Query(ctx, sql, discard{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("prepared", func(b *testing.B) {
		p, err := s.Prepare(ctx, "bench", "SELECT id FROM t WHERE id = $1", nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			q, err := s.Bind(ctx, "", p, []types.Datum{int64(1)}, nil)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := s.Run(ctx, q, 0, discard{}); err != nil {
				b.Fatal(err)
			}
			if err := s.Sync(ctx, false, discard{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
