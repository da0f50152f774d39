package mergetree

import "testing"

// The examples of Java 1.4.2, one commit after the other.
func TestPartialUpdateExamples(t *testing.T) {
	groups := map[string]string{
		"merge-engine": "partial-update", "fields.g1.sequence-group": "a,b", "fields.g2.sequence-group": "c,d", "fields.d.aggregate-function": "sum",
	}
	cols := []string{"k INT", "a INT", "b STRING", "g1 INT", "c INT", "d INT", "g2 INT"}
	rows := []versionRow{
		vr("+I", 1, 1, "x", 1, 1, 10, 1), vr("+I", 1, 2, nil, 2, nil, nil, nil), vr("+I", 1, 9, "late", 1, 5, 5, 3),
		vr("+I", 1, nil, nil, nil, 7, 1, 2), vr("-D", 1, 2, nil, 2, nil, nil, nil),
	}
	remove := map[string]string{"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
	abc := []string{"k INT", "a INT", "b STRING"}
	for _, c := range []struct {
		name    string
		options map[string]string
		cols    []string
		rows    []versionRow
		want    string
	}{
		{"groups 2", groups, cols, rows[:2], "+I (1, 2, null, 2, 1, 10, 1) @1"},
		{"groups 3", groups, cols, rows[:3], "+I (1, 2, null, 2, 5, 15, 3) @2"},
		{"groups 4", groups, cols, rows[:4], "+I (1, 2, null, 2, 5, 16, 3) @3"},
		{"groups 5", groups, cols, rows[:5], "+I (1, null, null, 2, 5, 16, 3) @4"},
		{"remove", remove, abc, []versionRow{vr("+I", 1, 1, "x"), vr("-D", 1, nil, nil)}, "-D (1, null, null) @1"},
		{"remove, insert", remove, abc, []versionRow{vr("+I", 1, 1, "x"), vr("-D", 1, nil, nil), vr("+I", 1, nil, "y")}, "+I (1, null, 'y') @2"},
		{"the deleted row lives on", remove, abc, []versionRow{vr("+I", 2, 1, "x"), vr("-D", 2, 8, "q"), vr("+I", 2, nil, "y")}, "+I (2, 8, 'y') @2"},
		{"plain", map[string]string{"merge-engine": "partial-update"}, abc, []versionRow{vr("+I", 1, 1, nil), vr("+I", 1, nil, "y"), vr("+U", 1, 3, nil)}, "+I (1, 3, 'y') @2"},
		{"plain, deletion", map[string]string{"merge-engine": "partial-update"}, abc, []versionRow{vr("+I", 1, 1, nil), vr("-D", 1, nil, "y")},
			"error: merge engine partial-update takes no deletions here; set option ignore-delete to leave them out, partial-update.remove-record-on-delete to remove rows, or sequence groups to take single columns back"},
		{"ignored deletion begins a row", map[string]string{"merge-engine": "partial-update", "ignore-delete": "true"}, abc, []versionRow{vr("-D", 1, 4, "z"), vr("+I", 1, nil, "y")}, "+I (1, 4, 'y') @1"},
		{"not null", map[string]string{"merge-engine": "partial-update"}, []string{"k INT", "a INT NOT NULL"}, []versionRow{vr("+I", 1, 1), vr("+I", 1, nil)},
			"error: column a: NULL for a column that is NOT NULL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := outcome(foldAll(t, engineTable(t, c.options, c.cols...), nil, [][]versionRow{c.rows})); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
