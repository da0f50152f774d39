package catalog

import (
	"context"
	"slices"
	"testing"
	"time"
)

// What is left of drops goes after an hour, what is left of tables never made a day
// after its last file; everything else stays.
func TestSweep(t *testing.T) { warehouses(t, testSweep) }

func testSweep(t *testing.T, c *Filesystem) {
	ctx := context.Background()
	now := time.Now()
	young := privateName()
	put := func(path string) {
		t.Helper()
		if err := c.env.IO.PutIfAbsent(ctx, path, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	old := "5b2d7b6e-58a4-4b0c-9d0f-5a4b0c9d0f5a" // names no time: of an earlier version
	for _, d := range []string{trashDir, stagingDir} {
		put(d + "/" + young + "/schema/schema-0")
		put(d + "/" + old + "/bucket-0/data-0.parquet")
	}
	put("default.db/t/schema/schema-0")
	left := func() (trash, staged []string) {
		t.Helper()
		for _, d := range []struct {
			dir string
			to  *[]string
		}{{trashDir, &trash}, {stagingDir, &staged}} {
			es, err := c.env.IO.List(ctx, d.dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range es {
				*d.to = append(*d.to, e.Name)
			}
			slices.Sort(*d.to)
		}
		return trash, staged
	}
	for _, step := range []struct {
		after         time.Duration
		n             int
		trash, staged []string
	}{
		{0, 1, []string{young}, []string{young, old}},
		{2 * time.Hour, 1, nil, []string{young, old}},
		{25 * time.Hour, 2, nil, nil},
		{25 * time.Hour, 0, nil, nil},
	} {
		n, err := c.Sweep(ctx, now.Add(step.after))
		if err != nil || n != step.n {
			t.Errorf("after %v: %d deleted, %v", step.after, n, err)
		}
		slices.Sort(step.staged)
		if trash, staged := left(); !slices.Equal(trash, step.trash) || !slices.Equal(staged, step.staged) {
			t.Errorf("after %v: dropped %v, staged %v", step.after, trash, staged)
		}
	}
	if _, err := c.env.IO.Stat(ctx, "default.db/t/schema/schema-0"); err != nil {
		t.Error(err)
	}
}

func TestMadeAt(t *testing.T) {
	before := time.Now().Add(-time.Millisecond)
	if at := madeAt(privateName()); at.Before(before.Truncate(time.Millisecond)) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("made at %v, that is %v", at, time.Now())
	}
	for _, s := range []string{"", "x", "5b2d7b6e-58a4-4b0c-9d0f-5a4b0c9d0f5a"} {
		if at := madeAt(s); !at.IsZero() {
			t.Errorf("%q: %v", s, at)
		}
	}
}
