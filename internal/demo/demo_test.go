package demo

import (
	"context"
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

func TestLay(t *testing.T) {
	ctx := context.Background()
	w := fileio.NewMem()
	made, err := Lay(ctx, w)
	if err != nil || len(made) != 11 {
		t.Fatalf("made %v, %v", made, err)
	}
	for _, p := range []string{"default.db/orders/snapshot/LATEST", "default.db/orders/tag/tag-release-1", "tpch_append.db/lineitem/snapshot/snapshot-1"} {
		if _, err := w.Stat(ctx, p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	if made, err = Lay(ctx, w); err != nil || len(made) != 0 {
		t.Errorf("a second time: %v, %v", made, err)
	}
	// A table that was laid out in part is finished; one of the user's own stays.
	if err := w.Delete(ctx, "default.db/orders/snapshot/LATEST", "default.db/orders/snapshot/EARLIEST", "default.db/orders/snapshot/snapshot-1",
		"default.db/orders/snapshot/snapshot-2", "default.db/orders/snapshot/snapshot-3"); err != nil {
		t.Fatal(err)
	}
	if made, err = Lay(ctx, w); err != nil || len(made) != 1 {
		t.Errorf("finishing: %v, %v", made, err)
	}
}
