package compact

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// Options are the table options that decide what is compacted. Sizes are bytes.
type Options struct {
	Keyed bool

	// Primary-key tables.
	Levels            int32         // num-levels, level 0 included
	Trigger           int           // num-sorted-run.compaction-trigger
	StopTrigger       int           // num-sorted-run.stop-trigger
	SizeAmplification int64         // compaction.max-size-amplification-percent
	SizeRatio         int64         // compaction.size-ratio, percent
	OffPeakStart      int           // compaction.offpeak.start.hour, -1 = none
	OffPeakEnd        int           // compaction.offpeak.end.hour
	OffPeakRatio      int64         // compaction.offpeak-ratio, percent added to SizeRatio
	Interval          time.Duration // compaction.optimization-interval, 0 = none
	TotalSize         int64         // compaction.total-size-threshold, 0 = none
	IncrementalSize   int64         // compaction.incremental-size-threshold, 0 = none
	// ForceLevel0 is the number of level-0 runs from which on they are moved up
	// although no other rule asks for it; 0 = never (compaction.force-up-level-0,
	// Lookup).
	ForceLevel0 int
	// Lookup says that compactions of level 0 ask what older versions there are in
	// the levels above their output: changelog-producer lookup, deletion vectors,
	// first-row, force-lookup (LookupStrategy.java).
	Lookup bool
	// Changelog is the changelog-producer: none, input, lookup or full-compaction.
	Changelog string
	// Engine is the merge-engine.
	Engine string
	// Sequence says that rows are ordered by sequence.field.
	Sequence bool
	// DeltaCommits is after how many commits a bucket is compacted whole; 0 = never
	// for this reason (full-compaction.delta-commits).
	DeltaCommits int

	// Append tables.
	MinFiles      int     // compaction.min.file-num
	DeleteRatio   float64 // compaction.delete-ratio-threshold
	OpenCost      int64   // source.split.open-file-cost
	Ordered       bool    // bucket-append-ordered
	DeletionFiles bool    // deletion-vectors.enabled

	// formats are the formats of levels that have their own (file.format.per.level).
	format  string
	formats map[int32]string

	// Both.
	Target       int64 // target-file-size
	Small        int64 // files below it are rewritten rather than moved: Target * compaction.small-file-ratio
	ForceRewrite bool  // compaction.force-rewrite-all-files
	WriteOnly    bool  // write-only
}

// ParseOptions reads table options; a value that cannot be read is an error.
func ParseOptions(o schema.Options, keyed bool) (*Options, error) {
	p := parser{o: o}
	r := &Options{Keyed: keyed}
	r.Trigger = int(p.int("num-sorted-run.compaction-trigger", 5))
	r.StopTrigger = max(r.Trigger, int(p.int("num-sorted-run.stop-trigger", int64(r.Trigger)+3)))
	r.Levels = int32(p.int("num-levels", int64(r.Trigger)+1))
	r.SizeAmplification = p.int("compaction.max-size-amplification-percent", 200)
	r.SizeRatio = p.int("compaction.size-ratio", 1)
	r.OffPeakStart = int(p.int("compaction.offpeak.start.hour", -1))
	r.OffPeakEnd = int(p.int("compaction.offpeak.end.hour", -1))
	r.OffPeakRatio = p.int("compaction.offpeak-ratio", 0)
	r.TotalSize = p.size("compaction.total-size-threshold", 0)
	r.IncrementalSize = p.size("compaction.incremental-size-threshold", 0)
	r.MinFiles = int(p.int("compaction.min.file-num", 5))
	r.OpenCost = p.size("source.split.open-file-cost", 4<<20)
	target := int64(256 << 20)
	if keyed {
		target = 128 << 20
	}
	r.Target = p.size("target-file-size", target)
	var ratio float64
	var err error
	if r.Interval, err = o.Duration("compaction.optimization-interval", 0); err != nil {
		p.fail(err)
	}
	if r.DeleteRatio, err = o.Float("compaction.delete-ratio-threshold", 0.2); err != nil {
		p.fail(err)
	}
	if ratio, err = o.Float("compaction.small-file-ratio", 0.7); err != nil {
		p.fail(err)
	}
	r.Small = int64(float64(r.Target) * ratio)
	r.Ordered = p.bool("bucket-append-ordered", true)
	r.DeletionFiles = p.bool("deletion-vectors.enabled", false)
	r.ForceRewrite = p.bool("compaction.force-rewrite-all-files", false)
	r.WriteOnly = p.bool("write-only", false)
	if keyed {
		r.keyed(&p)
	}
	if p.err != nil {
		return nil, p.err
	}
	switch {
	case r.Levels < 2:
		return nil, fmt.Errorf("option %q is %d, at least 2 levels are needed", "num-levels", r.Levels)
	case r.Trigger < 1:
		return nil, fmt.Errorf("option %q is %d, at least 1 is needed", "num-sorted-run.compaction-trigger", r.Trigger)
	case r.Target < 1:
		return nil, fmt.Errorf("option %q is %d", "target-file-size", r.Target)
	}
	return r, nil
}

// keyed reads the options of primary-key tables.
func (r *Options) keyed(p *parser) {
	o := p.o
	r.Changelog = o.Enum("changelog-producer", "none")
	r.Engine = o.Enum("merge-engine", "deduplicate")
	r.Sequence = len(o.List("sequence.field")) > 0
	r.Lookup = r.Changelog == "lookup" || r.DeletionFiles || r.Engine == "first-row" || p.bool("force-lookup", false)
	if p.bool("compaction.force-up-level-0", false) {
		r.ForceLevel0 = 1
	}
	if r.Lookup && r.ForceLevel0 == 0 {
		// A gentle lookup compaction comes every so many triggers, that is, level-0
		// files: nothing but the files themselves is remembered between two calls.
		r.ForceLevel0 = 1
		if o.Enum("lookup-compact", "radical") == "gentle" {
			r.ForceLevel0 = max(r.Trigger, int(p.int("lookup-compact.max-interval", 2*int64(r.Trigger))))
		}
	}
	// A table whose changelog comes of full compactions has one after every commit
	// unless the option says how many may pass (FlinkSink.java).
	least := int64(0)
	if r.Changelog == "full-compaction" {
		least = 1
	}
	r.DeltaCommits = int(max(least, p.int("full-compaction.delta-commits", 0)))
	r.format = o.Enum("file.format", "parquet")
	for _, part := range o.List("file.format.per.level") {
		l, f, ok := strings.Cut(part, ":")
		n, err := strconv.ParseInt(strings.TrimSpace(l), 10, 32)
		if !ok || err != nil {
			p.fail(fmt.Errorf("option %q is %q, not a list such as '0:x,5:y'", "file.format.per.level", o["file.format.per.level"]))
			return
		}
		if r.formats == nil {
			r.formats = map[int32]string{}
		}
		r.formats[int32(n)] = strings.ToLower(strings.TrimSpace(f))
	}
}

// FormatOf is the format that files of a level are written in.
func (o *Options) FormatOf(level int32) string {
	if f, ok := o.formats[level]; ok {
		return f
	}
	return o.format
}

// Refuse names an option under which there is no compaction, as a
// *fileio.UnsupportedError.
func Refuse(o schema.Options, keyed bool) error {
	un := func(f string) error { return &fileio.UnsupportedError{Feature: "compaction of tables with " + f} }
	if f := o.Enum("file.format", "parquet"); f != "parquet" {
		return un("file.format " + f)
	}
	for _, part := range o.List("file.format.per.level") {
		if _, f, _ := strings.Cut(part, ":"); strings.ToLower(strings.TrimSpace(f)) != "parquet" {
			return un("table option file.format.per.level")
		}
	}
	for _, k := range []string{"data-evolution.enabled", "clustering.incremental", "chain-table.enabled"} {
		on, err := o.Bool(k, false)
		if err != nil {
			return err
		}
		if on && (keyed || k != "clustering.incremental") {
			return un("table option " + k)
		}
	}
	for k, none := range map[string]string{"data-file.external-paths.strategy": "none", "metadata.iceberg.storage": "disabled"} {
		if o.Enum(k, none) != none {
			return un("table option " + k)
		}
	}
	return nil
}

// StopWriting reports whether a bucket of a primary-key table has so many sorted
// runs that its writers should wait for a compaction.
func (o *Options) StopWriting(runs int) bool { return o.Keyed && runs > o.StopTrigger }

// offPeak returns the percentage that is added to SizeRatio at an hour of the day.
func (o *Options) offPeak(hour int) int64 {
	s, e := o.OffPeakStart, o.OffPeakEnd
	switch {
	case s == -1 || e == -1 || s == e:
		return 0
	case s < e && s <= hour && hour < e:
		return o.OffPeakRatio
	case s > e && (hour < e || s <= hour):
		return o.OffPeakRatio
	}
	return 0
}

// parser keeps the first error.
type parser struct {
	o   schema.Options
	err error
}

func (p *parser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *parser) int(key string, def int64) int64 {
	n, err := p.o.Int(key, def)
	if err != nil {
		p.fail(err)
	} else if n > math.MaxInt32 || n < math.MinInt32 {
		p.fail(fmt.Errorf("option %q is %d, which is out of range", key, n))
		return def
	}
	return n
}

func (p *parser) size(key string, def int64) int64 {
	n, err := p.o.Size(key, def)
	if err != nil {
		p.fail(err)
	}
	return n
}

func (p *parser) bool(key string, def bool) bool {
	b, err := p.o.Bool(key, def)
	if err != nil {
		p.fail(err)
	}
	return b
}
