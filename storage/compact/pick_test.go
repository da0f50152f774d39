package compact

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// parseLevels reads "0:10 0:20 4:30 5:100": level and size of one file each, with
// level-0 files newest first. "5:10+20" is one run of two files.
func parseLevels(t *testing.T, text string) []*manifest.DataFile {
	var out []*manifest.DataFile
	seq := int64(1000)
	for i, w := range strings.Fields(text) {
		var lv int32
		var rest string
		if _, err := fmt.Sscanf(w, "%d:%s", &lv, &rest); err != nil {
			t.Fatalf("%q: %v", w, err)
		}
		for j, s := range strings.Split(rest, "+") {
			f := &manifest.DataFile{Name: fmt.Sprintf("f%d_%d", i, j), Level: lv, MaxSequence: seq, MinSequence: seq}
			if _, err := fmt.Sscan(s, &f.Size); err != nil {
				t.Fatalf("%q: %v", w, err)
			}
			out = append(out, f)
		}
		seq--
	}
	return out
}

// show prints a unit as its runs' sizes and where they go.
func show(u *Unit) string {
	if u == nil {
		return "-"
	}
	var b strings.Builder
	for i, r := range u.Runs {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d:%d", r.Level, r.Size)
	}
	fmt.Fprintf(&b, " -> %d", u.Level)
	if u.DropDelete {
		b.WriteString(" drop")
	}
	return b.String()
}

func options(t *testing.T, keyed bool, kv ...string) *Options {
	m := schema.Options{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	o, err := ParseOptions(m, keyed)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestPick(t *testing.T) {
	now := time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, levels, opts, want string
		last                     time.Time
	}{
		{name: "nothing", levels: "", want: "-"},
		{name: "few runs", levels: "0:1 0:1 0:1 0:1", want: "-"},
		{name: "first compaction: amplification", levels: "0:1 0:1 0:1 0:1 0:1", want: "0:1 0:1 0:1 0:1 0:1 -> 5 drop"},
		{name: "below the trigger after it", levels: "0:1 0:1 0:1 5:5", want: "-"},
		{name: "ratio stops before the big run", levels: "0:1 0:1 0:1 0:1 5:100", want: "0:1 0:1 0:1 0:1 -> 4"},
		{name: "next run's level less one", levels: "0:1 0:1 0:1 4:10 5:100", want: "0:1 0:1 0:1 -> 3"},
		{name: "level 1 is taken in once begun", levels: "0:1 0:1 0:1 1:50 5:1000", want: "0:1 0:1 0:1 1:50 -> 4"},
		{name: "level 0 is no output: absorb", levels: "0:1 0:10 0:100 1:1000 5:100000", opts: "num-sorted-run.compaction-trigger=3", want: "0:1 0:10 0:100 1:1000 -> 4"},
		{name: "file number", levels: "0:1 0:10 0:100 0:1000 2:10000 5:100000", opts: "num-sorted-run.compaction-trigger=4", want: "0:1 0:10 0:100 0:1000 -> 1"},
		{name: "absorb up to the first level", levels: "0:1 0:10 1:100 2:1000 5:100000", opts: "num-sorted-run.compaction-trigger=4", want: "0:1 0:10 1:100 -> 1"},
		{name: "absorb everything", levels: "0:1 0:10 0:100 0:1000", opts: "num-sorted-run.compaction-trigger=2 compaction.max-size-amplification-percent=100000", want: "0:1 0:10 0:100 0:1000 -> 2 drop"},
		{name: "amplification", levels: "0:90 0:60 0:40 4:20 5:100", want: "0:90 0:60 0:40 4:20 5:100 -> 5 drop"},
		{name: "ratio takes everything in", levels: "0:100 0:20 0:40 4:40 5:100", want: "0:100 0:20 0:40 4:40 5:100 -> 5 drop", opts: "compaction.max-size-amplification-percent=200"},
		{name: "size ratio 100", levels: "0:10 0:20 0:5 4:60 5:1000", opts: "compaction.size-ratio=100", want: "0:10 0:20 0:5 4:60 -> 4"},
		{name: "size ratio 1", levels: "0:10 0:20 0:5 4:60 5:1000", want: "-"},
		{name: "off peak", levels: "0:10 0:20 0:5 4:60 5:1000", opts: "compaction.offpeak.start.hour=21 compaction.offpeak.end.hour=5 compaction.offpeak-ratio=99", want: "0:10 0:20 0:5 4:60 -> 4"},
		{name: "on peak", levels: "0:10 0:20 0:5 4:60 5:1000", opts: "compaction.offpeak.start.hour=5 compaction.offpeak.end.hour=21 compaction.offpeak-ratio=99", want: "-"},
		{name: "interval, never yet", levels: "0:1 5:100", opts: "compaction.optimization-interval=1h", want: "0:1 5:100 -> 5 drop"},
		{name: "interval, lately", levels: "0:1 5:100", opts: "compaction.optimization-interval=1h", last: now.Add(-time.Minute), want: "-"},
		{name: "interval, long ago", levels: "0:1 5:100", opts: "compaction.optimization-interval=1h", last: now.Add(-2 * time.Hour), want: "0:1 5:100 -> 5 drop"},
		{name: "interval, one run", levels: "0:1", opts: "compaction.optimization-interval=1h", want: "-"},
		{name: "total size", levels: "0:1 5:98", opts: "compaction.total-size-threshold=100b", want: "0:1 5:98 -> 5 drop"},
		{name: "total size reached", levels: "0:1 5:99", opts: "compaction.total-size-threshold=100b", want: "-"},
		{name: "incremental size", levels: "0:40 4:61 5:900", opts: "compaction.incremental-size-threshold=100b", want: "0:40 4:61 5:900 -> 5 drop"},
		{name: "incremental size not reached", levels: "0:40 4:60 5:900", opts: "compaction.incremental-size-threshold=100b", want: "-"},
		{name: "force level 0", levels: "0:1 5:100", opts: "compaction.force-up-level-0=true", want: "0:1 -> 4"},
		{name: "force level 0, none there", levels: "4:1 5:100", opts: "compaction.force-up-level-0=true", want: "-"},
		{name: "gentle", levels: "0:1 5:100", opts: "force-lookup=true lookup-compact=gentle", want: "-"},
		{name: "one run at its level", levels: "5:1+2+3", opts: "num-sorted-run.compaction-trigger=1", want: "-"},
		{name: "levels were lowered", levels: "0:1 0:1 0:1 0:1 7:100", want: "0:1 0:1 0:1 0:1 -> 6"},
	} {
		var kv []string
		for _, o := range strings.Fields(c.opts) {
			k, v, _ := strings.Cut(o, "=")
			kv = append(kv, k, v)
		}
		o := options(t, true, kv...)
		got := show(Pick(NewLevels(parseLevels(t, c.levels), o), o, Moment{Now: now, LastFull: c.last}))
		if got != c.want {
			t.Errorf("%s: %s picks %q, want %q", c.name, c.levels, got, c.want)
		}
	}
}

func TestPickFull(t *testing.T) {
	for _, c := range []struct{ levels, opts, want string }{
		{"", "", "-"},
		{"0:1", "", "0:1 -> 5 drop"},
		{"5:1+2", "", "-"},
		{"4:1+2", "", "4:3 -> 5 drop"},
		{"0:1 5:9", "", "0:1 5:9 -> 5 drop"},
		{"5:1", "compaction.force-rewrite-all-files", "5:1 -> 5 drop"},
	} {
		var kv []string
		if c.opts != "" {
			kv = []string{c.opts, "true"}
		}
		o := options(t, true, kv...)
		if got := show(PickFull(NewLevels(parseLevels(t, c.levels), o), o, nil)); got != c.want {
			t.Errorf("%s: %q, want %q", c.levels, got, c.want)
		}
	}
}

// TestTrace is the compaction trace of a table with default options and seven
// small commits: everything is merged once there are five runs, and the next two
// commits stay in level 0.
func TestTrace(t *testing.T) {
	o := options(t, true)
	var files []*manifest.DataFile
	for i := range 7 {
		files = append(files, &manifest.DataFile{Name: fmt.Sprint(i), Size: 1000, Rows: 2, MinSequence: int64(2 * i), MaxSequence: int64(2*i + 1)})
		l := NewLevels(files, o)
		u := Pick(l, o, Moment{})
		if (u != nil) != (i == 4) {
			t.Fatalf("commit %d picks %s", i+1, show(u))
		}
		if u != nil {
			if len(u.Files()) != 5 || u.Level != 5 || !u.DropDelete {
				t.Fatalf("commit %d picks %s", i+1, show(u))
			}
			files = []*manifest.DataFile{{Name: "all", Level: 5, Size: 1500, Rows: 6}}
		}
	}
	if l := NewLevels(files, o); len(l.Runs) != 3 || l.Runs[0].Files[0].Name != "6" || l.Runs[1].Files[0].Name != "5" || l.Runs[2].Level != 5 {
		t.Errorf("runs %v", l.Runs)
	}
}

func TestStopWriting(t *testing.T) {
	o := options(t, true)
	if o.StopWriting(8) || !o.StopWriting(9) {
		t.Error("writers stop above 8 runs")
	}
	o = options(t, true, "num-sorted-run.stop-trigger", "2")
	if o.StopWriting(5) || !o.StopWriting(6) {
		t.Error("the stop trigger is never below the compaction trigger")
	}
	if options(t, false).StopWriting(1000) {
		t.Error("append tables have no runs")
	}
}

func TestOptionErrors(t *testing.T) {
	for _, m := range []schema.Options{
		{"num-levels": "1"}, {"num-sorted-run.compaction-trigger": "x"}, {"num-sorted-run.compaction-trigger": "0"},
		{"target-file-size": "0"}, {"compaction.small-file-ratio": "?"}, {"num-levels": "99999999999"}, {"write-only": "maybe"},
	} {
		if _, err := ParseOptions(m, true); err == nil {
			t.Errorf("%v is taken", m)
		}
	}
	for _, m := range []schema.Options{
		{"file.format": "orc"}, {"file.format.per.level": "0:avro"}, {"data-evolution.enabled": "true"},
	} {
		if Refuse(m, true) == nil {
			t.Errorf("%v is taken", m)
		}
	}
	if err := Refuse(schema.Options{"deletion-vectors.enabled": "true", "merge-engine": "deduplicate"}, false); err != nil {
		t.Error(err)
	}
}

// TestPlan cuts units into steps: "a-c:100" is a file of keys a to c, 100 bytes;
// a "d" behind it says that it holds deletes.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name, files string
		level       int32
		want        string
	}{
		{"overlap", "a-c:10 b-d:10", 5, "[a-c|b-d]"},
		{"big ones move up", "a-b:100 c-d:100", 5, "up a-b, up c-d"},
		{"a lone small one moves up", "a-b:10", 5, "up a-b"},
		{"small neighbours", "a-b:10 c-d:10 e-f:100 g-h:10", 5, "[a-b][c-d], up e-f, up g-h"},
		{"overlap with neighbours", "a-b:10 c-e:100 d-f:100 g-h:10 i-j:200", 5, "[a-b][c-e|d-f][g-h], up i-j"},
		{"deletes at the highest level", "a-b:100d c-d:100", 5, "[a-b], up c-d"},
		{"deletes below it", "a-b:100d c-d:100", 4, "up a-b, up c-d"},
		{"a small one with deletes", "a-b:10d", 5, "[a-b]"},
		{"at its level already", "a-b:100@5 c-d:100", 5, "up c-d"},
		{"small ones at their level are joined", "a-b:10@5 c-d:10@5 e-f:100@5", 5, "[a-b][c-d]"},
		{"runs are as few as may be", "a-c:10 b-d:10 d-f:10 e-g:10", 5, "[a-c,d-f|b-d,e-g]"},
	} {
		o := options(t, true, "target-file-size", "100", "compaction.small-file-ratio", "0.7")
		var in []Input
		for _, w := range strings.Fields(c.files) {
			keys, rest, _ := strings.Cut(w, ":")
			f := &manifest.DataFile{Name: keys}
			rest, at, _ := strings.Cut(rest, "@")
			if at != "" {
				f.Level = 5
			}
			if strings.HasSuffix(rest, "d") {
				f.DeleteRows = 1
			}
			if _, err := fmt.Sscanf(rest, "%d", &f.Size); err != nil {
				t.Fatal(err)
			}
			in = append(in, Input{File: f, Min: []byte(keys[:1]), Max: []byte(keys[2:])})
		}
		u := &Unit{Level: c.level, Max: 5}
		var got []string
		for _, s := range u.Plan(in, o, nil) {
			if s.Upgrade != nil {
				got = append(got, "up "+s.Upgrade.Name)
				continue
			}
			text := ""
			for _, sec := range s.Sections {
				var runs []string
				for _, r := range sec {
					var fs []string
					for _, i := range r {
						fs = append(fs, in[i].File.Name)
					}
					runs = append(runs, strings.Join(fs, ","))
				}
				text += "[" + strings.Join(runs, "|") + "]"
			}
			got = append(got, text)
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

// TestPickAppend packs files given as "size", "size*" (in a deletion vector file
// "x", one row in ten deleted) or "size!" (half of it deleted).
func TestPickAppend(t *testing.T) {
	for _, c := range []struct {
		name, files string
		full        bool
		want        string
	}{
		{"too few", "1 2 3 4", false, ""},
		{"enough", "1 2 3 4 5", false, "1 2 3 4 5"},
		{"full takes two", "4 3", true, "3 4"},
		{"full leaves one", "4", true, ""},
		{"big ones stay", "700 1 2 900", true, "1 2"},
		{"bins of twice the target", "600 600 600 600 600 1", false, "1 600 600 600"},
		{"few deleted rows wait", "1* 2", false, ""},
		{"few deleted rows, full", "1* 2*", true, "1 2"},
		{"one vector, full", "1*", true, "1"},
		{"mostly deleted", "5 900!", false, "900"},
		{"vectors count as files", "1* 2 3 4 5", false, "1 2 3 4 5"},
		{"vectors apart from the rest", "1! 2 3 4", false, "1"},
	} {
		o := options(t, false, "target-file-size", "1000", "source.split.open-file-cost", "100")
		var got []string
		for _, p := range PickAppend(appendFiles(t, c.files), o, c.full) {
			got = append(got, sizes(p))
		}
		if s := strings.Join(got, " | "); s != c.want {
			t.Errorf("%s: %q packs %q, want %q", c.name, c.files, s, c.want)
		}
	}
}

func TestPickOrdered(t *testing.T) {
	for _, c := range []struct {
		name, files string
		full        bool
		want        string
	}{
		{"too few", "1 2 3 4", false, ""},
		{"the first five", "5 4 3 2 1 6", false, "5 4 3 2 1"},
		{"never across a big one", "1 2 900 3 4 5", false, ""},
		{"after a big one", "1 2 900 3 4 5 6 7", false, "3 4 5 6 7"},
		{"mostly deleted", "900! 1", false, "900"},
		{"full", "900 1 2 3", true, "1 2 3"},
		{"full with big ones inside", "1 900 2 3", true, "1 900 2 3"},
		{"full, big ones prevail", "1 900 900 2", true, ""},
		{"full, two files", "1 2", true, ""},
		{"full, a vector", "900 900*", true, "900"},
	} {
		o := options(t, false, "target-file-size", "1000", "bucket", "2")
		if s := sizes(PickOrdered(appendFiles(t, c.files), o, c.full)); s != c.want {
			t.Errorf("%s: %q picks %q, want %q", c.name, c.files, s, c.want)
		}
	}
}

func appendFiles(t *testing.T, text string) []AppendFile {
	var out []AppendFile
	for i, w := range strings.Fields(text) {
		f := AppendFile{File: &manifest.DataFile{Name: fmt.Sprint(i), Rows: 100, MinSequence: int64(i * 100)}}
		if n := strings.TrimRight(w, "*!"); n != w {
			f.Index, f.Deleted = "x", 10
			if strings.HasSuffix(w, "!") {
				f.Index, f.Deleted = fmt.Sprint("x", i), 50
			}
			w = n
		}
		if _, err := fmt.Sscan(w, &f.File.Size); err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

func sizes(fs []AppendFile) string {
	var s []string
	for _, f := range fs {
		s = append(s, fmt.Sprint(f.File.Size))
	}
	return strings.Join(s, " ")
}
