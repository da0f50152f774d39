package table

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/proof"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// A table of many files as a long-lived one has it: 50 entries in a manifest,
// statistics of 16 columns, partitions by day, and files that a compaction has
// replaced since.
const (
	scaleFiles     = 100_000
	scaleManifests = 2_000
	scaleDays      = 100
)

var scaleColumns = []string{
	"d DATE", "id BIGINT", "a INT", "b INT", "c SMALLINT", "f DOUBLE", "g FLOAT", "price DECIMAL(10, 2)", "big DECIMAL(30, 4)",
	"s STRING", "city STRING", "t TIMESTAMP(3)", "u TIMESTAMP(6)", "v TIMESTAMP(6) WITH LOCAL TIME ZONE", "flag BOOLEAN", "raw VARBINARY(16)",
}

// scaleTable writes the metadata of such a table; its data files do not exist.
// Every hundredth file is deleted by a later manifest.
func scaleTable(t testing.TB, io fileio.FileIO, files, manifests int) *schema.Table {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "-1", "manifest.merge-min-count": "1000000"}, nil, scaleColumns...)
	s.PartitionKeys = []string{"d"}
	ts := s.Fields.Types()
	put := func(name string, raw []byte) {
		if err := io.Put(ctx, "db.db/t/"+name, raw); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := schema.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	put("schema/schema-0", raw)
	image := func(ts []types.Type, vals []types.Datum) []byte {
		img, err := binrow.Encode(ts, vals)
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	row := func(day, i int64) []types.Datum {
		h := i * 2654435761 % 1_000_003
		dec := func(v int64, scale int32) types.Datum {
			d := &numeric.Dec{Scale: scale}
			d.Coef.Set(big.NewInt(v))
			return d
		}
		return []types.Datum{
			day, i * 1000, h % 1000, h, h % 100, float64(h) / 7, float64(h % 64), dec(h, 2), dec(h*i, 4),
			fmt.Sprintf("name-%08d-%06d", i, h), fmt.Sprintf("city-%03d", h%500), i * 60_000_000 * 1000, i*60_000_000 + h, i*60_000_000 - h, false,
			[]byte(fmt.Sprintf("%016d", h)),
		}
	}
	per := files / manifests
	var metas []manifest.FileMeta
	var gone []manifest.Entry
	write := func(n int, es []manifest.Entry) {
		raw, err := manifest.EncodeEntries(es, manifest.Arity{Partition: 1}, manifest.CodecOf("zstd", 1))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("manifest-6e1f1f2c-55f4-4c2b-9c0b-1f1f2c55f44c-%d", n)
		put("manifest/"+name, raw)
		m, err := manifest.Describe(name, int64(len(raw)), 0, es, ts[:1])
		if err != nil {
			t.Fatal(err)
		}
		metas = append(metas, m)
	}
	for m := range manifests {
		var es []manifest.Entry
		for i := m * per; i < (m+1)*per; i++ {
			day := int64(20_000 + i*scaleDays/files)
			lo, hi := row(day, int64(i)), row(day, int64(i)+1)
			for c := 2; c <= 10; c++ { // bounds that every file has about the same of
				if x, ok := predicate.Compare(ts[c], lo[c], hi[c]); ok && x > 0 {
					lo[c], hi[c] = hi[c], lo[c]
				}
			}
			hi[1] = hi[1].(int64) - 1
			e := manifest.Entry{Partition: image(ts[:1], lo[:1]), TotalBuckets: -1, File: &manifest.DataFile{
				Name: fmt.Sprintf("data-%08x-89ab-4cde-8f01-%012x-0.parquet", i*2654435761, i), Size: 1 << 20, Rows: 1000, DeleteRows: 0, FirstRowID: -1,
				MinSequence: int64(i) * 1000, MaxSequence: int64(i)*1000 + 999, CreationMillis: 1_790_000_000_000 + int64(i),
				ValueStats: manifest.Stats{Min: image(ts, lo), Max: image(ts, hi), NullCounts: make([]int64, len(ts))},
			}}
			es = append(es, e)
			if i%100 == 99 {
				e.Kind = manifest.Delete
				gone = append(gone, e)
			}
		}
		write(m, es)
	}
	write(manifests, gone)
	put("manifest/manifest-list-a-0", manifest.EncodeList(metas, manifest.CodecOf("zstd", 1)))
	put("manifest/manifest-list-a-1", manifest.EncodeList(nil, manifest.Codec{}))
	js, err := snapshot.Encode(&snapshot.Snapshot{Version: 3, ID: 1, BaseManifestList: "manifest-list-a-0", DeltaManifestList: "manifest-list-a-1", CommitKind: "APPEND"})
	if err != nil {
		t.Fatal(err)
	}
	put("snapshot/snapshot-1", js)
	return s
}

// scaleQuestions are what is asked of it, with the files that remain per mille.
func scaleQuestions(s *schema.Table) []scaleQuestion {
	point := leafOn(s.Fields, 1, predicate.Eq, int64(55_555_500))
	day := leafOn(s.Fields, 0, predicate.Eq, int64(20_042))
	return []scaleQuestion{
		{"all", nil},
		{"day", day},
		{"point", point},
		{"text", leafOn(s.Fields, 9, predicate.Eq, "name-00055555-000000")},
		{"and", &predicate.And{Args: []predicate.Node{
			leafOn(s.Fields, 0, predicate.GtEq, int64(20_010)),
			leafOn(s.Fields, 7, predicate.GtEq, numeric.FromInt64(0)), leafOn(s.Fields, 12, predicate.Lt, int64(60_000_000)*60_000), point,
		}}},
	}
}

type scaleQuestion struct {
	name   string
	filter predicate.Node
}

var scale struct {
	once   sync.Once
	dir    string
	schema *schema.Table
}

func scaleDir(t testing.TB) (string, *schema.Table) {
	scale.once.Do(func() {
		dir, err := os.MkdirTemp(os.Getenv("PAIMON_SQL_BENCH_DIR"), "planscale")
		if err != nil {
			t.Fatal(err)
		}
		scale.dir, scale.schema = dir, scaleTable(t, fileio.NewLocal(dir), scaleFiles, scaleManifests)
	})
	return scale.dir, scale.schema
}

// peakRSS is the highest resident size of the process in MB, 0 where unknown.
func peakRSS() int64 {
	raw, _ := os.ReadFile("/proc/self/status")
	var kb int64
	if _, rest, ok := strings.Cut(string(raw), "VmHWM:"); ok {
		_, _ = fmt.Sscan(rest, &kb)
	}
	return kb >> 10
}

// BenchmarkPlanScale plans a table of 100,000 files in 2,000 manifests on a local
// disk: cold with new caches, warm with full ones, and with caches that hold a
// part. cpu-ms is the CPU time of a plan.
func BenchmarkPlanScale(b *testing.B) {
	dir, s := scaleDir(b)
	ctx := context.Background()
	plan := func(b *testing.B, tb *FileStore, f predicate.Node) *Plan {
		p, err := tb.Plan(ctx, Scan{Filter: f, Limit: -1})
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	for _, q := range scaleQuestions(s) {
		run := func(name string, o EnvOptions, warm bool) {
			b.Run(name+"/"+q.name, func(b *testing.B) {
				env := NewEnv(fileio.NewLocal(dir), o)
				defer func() { env.Close() }()
				if warm {
					plan(b, Open(env, "db.db/t"), q.filter)
				}
				runtime.GC()
				start := cpuTime(b)
				var p *Plan
				for b.Loop() {
					if !warm {
						env.Close()
						env = NewEnv(fileio.NewLocal(dir), o)
					}
					p = plan(b, Open(env, "db.db/t"), q.filter)
				}
				b.ReportMetric(float64((cpuTime(b)-start).Microseconds())/1000/float64(b.N), "cpu-ms/op")
				b.ReportMetric(float64(len(p.Splits)), "splits")
				b.ReportMetric(float64(p.Report.FilesRead), "files")
				b.ReportMetric(float64(env.Manifests.Used()>>20), "cacheMB")
				b.ReportMetric(float64(peakRSS()), "peakMB")
			})
		}
		run("cold", EnvOptions{}, false)
		run("warm", EnvOptions{}, true)
		run("tight", EnvOptions{ManifestCacheBytes: 32 << 20}, true)
	}
}

// TestPlanScaleWall measures by the clock how long plans of that table take: cold, with new
// caches and files that the system does not hold in memory, and warm. It runs for make
// bench-pruning only. The fastest decides, as other processes' load only makes plans
// slower; the CPU time beside it is the median.
func TestPlanScaleWall(t *testing.T) {
	if os.Getenv("PAIMON_SQL_BENCH_PRUNING") == "" {
		t.Skip("needs PAIMON_SQL_BENCH_PRUNING: make bench-pruning")
	}
	dir, s := scaleDir(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ctx := t.Context()
	plan := func(env *Env, f predicate.Node) (p *Plan, wall, cpu time.Duration) {
		used, began := cpuTime(t), time.Now()
		p, err := Open(env, "db.db/t").Plan(ctx, Scan{Filter: f, Limit: -1})
		if err != nil {
			t.Fatal(err)
		}
		return p, time.Since(began), cpuTime(t) - used
	}
	for _, q := range scaleQuestions(s) {
		for _, warm := range []bool{false, true} {
			env, times := NewEnv(fileio.NewLocal(dir), EnvOptions{}), 7
			if warm {
				times = 25
				plan(env, q.filter)
			}
			var took, cpu []time.Duration
			var p *Plan
			state := "warm"
			for range times {
				if !warm {
					env.Close()
					env = NewEnv(fileio.NewLocal(dir), EnvOptions{})
					state = "cold, from the disk"
					if !dropCached(t, dir) {
						state = "cold, files in memory"
					}
				}
				runtime.GC()
				var wall, used time.Duration
				p, wall, used = plan(env, q.filter)
				took, cpu = append(took, wall), append(cpu, used)
			}
			env.Close()
			slices.Sort(took)
			slices.Sort(cpu)
			limit := map[bool]time.Duration{false: 2 * time.Second, true: 300 * time.Millisecond}[warm]
			ms := func(d time.Duration) int64 { return d.Round(time.Millisecond).Milliseconds() }
			proof.Add(t, proof.Line{
				What: fmt.Sprintf("plan of %d files in %d manifests: %s, %s", scaleFiles, scaleManifests, q.name, state),
				Got:  fmt.Sprintf("%d files", p.Report.FilesRead), Of: fmt.Sprintf("%d files", scaleFiles-scaleFiles/100),
				Took:  fmt.Sprintf("%d ms, median %d, CPU %d", ms(took[0]), ms(took[times/2]), ms(cpu[times/2])),
				Limit: "< " + limit.String(), Kept: took[0] < limit,
			})
		}
	}
}

// TestPlanScaleAnswers: the same files, whatever the caches hold.
func TestPlanScaleAnswers(t *testing.T) {
	io := fileio.NewMem()
	const files = 4000
	s := scaleTable(t, io, files, 80)
	ctx := context.Background()
	for _, o := range []EnvOptions{{}, {ManifestCacheBytes: 64 << 10}, {ManifestCacheBytes: 1}} {
		env := NewEnv(io, o)
		tb := Open(env, "db.db/t")
		for range 2 {
			for _, c := range []struct {
				f    predicate.Node
				want int64
			}{
				{nil, files - files/100},
				{leafOn(s.Fields, 0, predicate.Eq, int64(20_042)), 39},
				{leafOn(s.Fields, 1, predicate.Eq, int64(1_234_567)), 1},
				{leafOn(s.Fields, 1, predicate.Eq, int64(1_299_567)), 0}, // was deleted
				{leafOn(s.Fields, 15, predicate.IsNull), 0},
			} {
				p, err := tb.Plan(ctx, Scan{Filter: c.f, Limit: -1})
				if err != nil {
					t.Fatal(err)
				}
				n := int64(0)
				for _, sp := range p.Splits {
					n += int64(len(sp.Files))
				}
				r := p.Report
				skipped := int64(0)
				for _, k := range r.Skipped {
					skipped += k
				}
				if n != c.want || r.FilesRead != n {
					t.Errorf("budget %d, %v: %d files in splits, %d said to be read, want %d", o.ManifestCacheBytes, c.f, n, r.FilesRead, c.want)
				}
				if r.Files != n+skipped {
					t.Errorf("budget %d, %v: %d files are not %d and skipped %v", o.ManifestCacheBytes, c.f, r.Files, n, r.Skipped)
				}
			}
			if b := o.ManifestCacheBytes; b > 0 && env.Manifests.Used() > b {
				t.Errorf("a cache of %d bytes holds %d", b, env.Manifests.Used())
			}
		}
		env.Close()
	}
}

// stopIO cancels a context when the nth manifest is read.
type stopIO struct {
	fileio.FileIO
	left atomic.Int64
	stop context.CancelCauseFunc
}

func (s *stopIO) ReadFile(ctx context.Context, p string) ([]byte, error) {
	if strings.Contains(p, "/manifest/manifest-6e") && s.left.Add(-1) == 0 {
		s.stop(errStopped)
	}
	return s.FileIO.ReadFile(ctx, p)
}

var errStopped = errors.New("stopped by the test")

// TestPlanCancel: a plan ends soon after its context.
func TestPlanCancel(t *testing.T) {
	mem := fileio.NewMem()
	scaleTable(t, mem, 4000, 400)
	ctx, stop := context.WithCancelCause(context.Background())
	io := &stopIO{FileIO: mem, stop: stop}
	io.left.Store(10)
	env := NewEnv(io, EnvOptions{})
	defer env.Close()
	_, err := Open(env, "db.db/t").Plan(ctx, Scan{Limit: -1})
	if !errors.Is(err, errStopped) && !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	if n := 10 - io.left.Load(); n > 10+64 {
		t.Errorf("%d manifests were read, 10 of them before the plan was stopped", n)
	}
	// With everything in the caches it ends, too.
	if _, err := Open(env, "db.db/t").Plan(context.Background(), Scan{Limit: -1}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(env, "db.db/t").Plan(ctx, Scan{Limit: -1}); !errors.Is(err, errStopped) && !errors.Is(err, context.Canceled) {
		t.Errorf("a plan from the caches: %v", err)
	}
}
