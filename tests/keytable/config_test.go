package keytable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
)

// field is one column beside the key and the partition.
type field struct {
	name string
	typ  string // SQL
}

// config is a table drawn at random.
type config struct {
	engine string
	part   string // none, key (in the primary key), cross (not in it)
	fields []field
	opts   map[string]string
	agg    map[string]string // aggregate function by field
	groups []group           // sequence groups
	seq    []string          // sequence.field
	desc   bool
	late   bool // rows may come with a lower sequence than the one there
	// delete is what a -D does: none (refused), row (the row goes), retract
	// (aggregation), group (partial-update: the group's columns become NULL), ignore.
	delete   string
	producer string
	lookup   bool // level 0 is looked up by compaction
	base     bool // there is a big file at the highest level
}

// group is a sequence group of partial-update.
type group struct {
	order, cols []string
	removes     bool // a -D with order columns removes the row
}

// coverage counts which values of which options were drawn.
type coverage map[string]map[string]int

func (c coverage) note(name, value string) {
	if c[name] == nil {
		c[name] = map[string]int{}
	}
	c[name][value]++
}

func (c coverage) String() string {
	var names []string
	for n := range c {
		names = append(names, n)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, n := range names {
		var vs []string
		for v, k := range c[n] {
			vs = append(vs, fmt.Sprintf("%s %d", v, k))
		}
		sort.Strings(vs)
		fmt.Fprintf(&b, "%-45s %s\n", n, strings.Join(vs, ", "))
	}
	return b.String()
}

// drawer draws values and notes them.
type drawer struct {
	r   *rand.Rand
	cov coverage
}

func (d *drawer) pick(name string, values ...string) string {
	v := values[d.r.IntN(len(values))]
	d.cov.note(name, v)
	return v
}

// set draws an option's value; "" leaves it out.
func (d *drawer) set(c *config, option string, values ...string) string {
	v := values[d.r.IntN(len(values))]
	shown := v
	if v == "" {
		shown = "(default)"
	}
	d.cov.note(option, shown)
	if v != "" {
		c.opts[option] = v
	}
	return v
}

// draw makes a table of any kind. With java it is one that both sides take alike.
func draw(r *rand.Rand, cov coverage, java bool) *config {
	d := &drawer{r, cov}
	c := &config{opts: map[string]string{}, agg: map[string]string{}}
	c.engine = d.pick("merge-engine", "deduplicate", "partial-update", "aggregation", "first-row")
	c.opts["merge-engine"] = c.engine
	c.part = d.pick("partitions", "none", "none", "key", "cross")
	c.fields = []field{{"a", "int"}, {"b", "text"}, {"z", "int"}}
	c.delete = "row"
	switch c.engine {
	case "deduplicate":
		// A move to another partition is a delete there: it cannot be ignored.
		if c.part != "cross" && d.pick("deletes", "row", "row", "ignore") == "ignore" {
			c.delete, c.opts["ignore-delete"] = "ignore", "true"
		}
		c.sequence(d)
		c.late = len(c.seq) > 0 && c.delete == "row"
	case "first-row":
		c.delete = d.pick("first-row deletes", "none", "ignore")
		if c.delete == "ignore" {
			c.opts["ignore-delete"] = "true"
		}
	case "partial-update":
		c.partialUpdate(d)
	case "aggregation":
		c.aggregation(d)
	}
	c.storage(d)
	if java && c.opts["write-buffer-size"] != "" {
		c.opts["write-buffer-size"] = "1 mb"
	}
	if java && c.desc {
		// Java 1.4.2 sorts its write buffer in ascending order in any case.
		c.desc, c.opts["sequence.field.sort-order"] = false, "ascending"
	}
	return c
}

func (c *config) sequence(d *drawer) {
	if c.part == "cross" {
		return // Java refuses it
	}
	switch d.pick("sequence.field", "none", "one", "two") {
	case "one":
		c.seq = []string{"s1"}
	case "two":
		c.seq = []string{"s1", "s2"}
	default:
		return
	}
	for _, s := range c.seq {
		c.fields = append(c.fields, field{s, "int"})
	}
	c.opts["sequence.field"] = strings.Join(c.seq, ",")
	c.desc = d.set(c, "sequence.field.sort-order", "", "ascending", "descending") == "descending"
}

func (c *config) partialUpdate(d *drawer) {
	c.delete = "none"
	switch d.pick("partial-update form", "plain", "plain", "groups", "groups", "sequence.field") {
	case "plain":
		switch c.delete = d.pick("partial-update deletes", "none", "row", "ignore"); c.delete {
		case "row":
			c.opts["partial-update.remove-record-on-delete"] = "true"
		case "ignore":
			c.opts["ignore-delete"] = "true"
		}
	case "sequence.field":
		c.sequence(d)
	case "groups":
		c.fields = append(c.fields, field{"g1", "int"}, field{"c", "text"}, field{"d", "bigint"},
			field{"g2", "int"}, field{"g3", "bigint"}, field{"e", "int"}, field{"f", "bigint"})
		c.groups = []group{{order: []string{"g1"}, cols: []string{"c", "d"}}, {order: []string{"g2", "g3"}, cols: []string{"e", "f"}}}
		c.opts["fields.g1.sequence-group"] = "c,d"
		c.opts["fields.g2,g3.sequence-group"] = "e,f"
		if f := d.pick("aggregate in a group", "none", "sum", "max", "min"); f != "none" {
			c.agg["d"], c.opts["fields.d.aggregate-function"] = f, f
		}
		c.delete = "group"
		for _, f := range c.agg {
			if f != "sum" {
				c.opts["fields.d.ignore-retract"] = "true"
			}
		}
		if d.pick("remove-record-on-sequence-group", "no", "no", "g1") == "g1" {
			c.opts["partial-update.remove-record-on-sequence-group"], c.groups[0].removes = "g1", true
		}
		c.late = true
	}
}

// Functions by type; those whose result does not depend on the order of rows
// come first.
var (
	unordered = map[string][]string{"int": {"sum", "max", "min"}, "bigint": {"sum", "max", "min", "product"}, "text": {"max", "min"}, "boolean": {"bool_and", "bool_or"}}
	ordered   = []string{"last_value", "last_non_null_value", "first_value", "first_non_null_value"}
)

func (c *config) aggregation(d *drawer) {
	c.fields = append(c.fields, field{"l", "bigint"}, field{"m", "bigint"}, field{"t", "text"}, field{"o", "boolean"})
	c.late = d.pick("aggregation order", "as written", "late") == "late"
	c.delete = d.pick("aggregation deletes", "none", "retract", "row", "ignore")
	if c.late {
		c.sequence(d)
		if len(c.seq) == 0 {
			c.late = false
		}
	}
	for _, f := range c.fields {
		if slices.Contains(c.seq, f.name) {
			continue
		}
		fs := slices.Clone(unordered[f.typ])
		if !c.late {
			for _, x := range ordered {
				// What a retraction does to it depends on what it is merged with first.
				if x != "last_non_null_value" || c.delete != "retract" {
					fs = append(fs, x)
				}
			}
			if f.typ == "text" {
				fs = append(fs, "listagg")
			}
		}
		fn := fs[d.r.IntN(len(fs))]
		d.cov.note("aggregate-function", fn)
		c.agg[f.name] = fn
		c.opts["fields."+f.name+".aggregate-function"] = fn
		if c.delete == "retract" && fn != "sum" && fn != "last_value" && fn != "last_non_null_value" {
			c.opts["fields."+f.name+".ignore-retract"] = "true"
		}
	}
	if c.part == "cross" && c.delete == "retract" {
		c.delete = "none" // Java retracts the partition column, too, and fails
	}
	if c.late && c.delete != "ignore" {
		c.delete = "none" // what a late row meets would depend on compaction
	}
	switch c.delete {
	case "row":
		c.opts["aggregation.remove-record-on-delete"] = "true"
	case "ignore":
		c.opts["ignore-delete"] = "true"
	}
}

// storage draws what must not change any answer.
func (c *config) storage(d *drawer) {
	buckets := []string{"1", "2", "4", "-1"}
	if c.part == "cross" {
		buckets = []string{"-1"}
	}
	if b := d.set(c, "bucket", buckets...); b == "-1" {
		d.set(c, "dynamic-bucket.target-row-num", "", "5")
	} else {
		d.set(c, "bucket-function.type", "", "mod", "hive")
		if c.opts["bucket-function.type"] != "" {
			c.opts["bucket-key"] = "k"
		}
	}
	producers := []string{"none", "none", "input", "lookup", "full-compaction"}
	if c.engine == "first-row" {
		producers = []string{"none", "lookup"}
	}
	c.producer = d.pick("changelog-producer", producers...)
	if c.producer != "none" {
		c.opts["changelog-producer"] = c.producer
	}
	if c.producer == "lookup" || c.producer == "full-compaction" {
		d.set(c, "changelog-producer.row-deduplicate", "", "true")
	}
	dv := ""
	if c.engine != "first-row" && c.producer != "full-compaction" {
		if dv = d.set(c, "deletion-vectors.enabled", "", "true"); dv != "" {
			d.set(c, "deletion-vectors.bitmap64", "", "true")
			d.set(c, "deletion-vector.index-file.target-size", "", "1 kb")
		}
	}
	c.lookup = c.producer == "lookup" || dv != "" || c.engine == "first-row"
	if c.lookup {
		d.set(c, "lookup-wait", "", "false")
		d.set(c, "lookup-compact", "", "gentle")
	}
	d.set(c, "num-sorted-run.compaction-trigger", "", "2", "3")
	d.set(c, "target-file-size", "", "1 kb")
	d.set(c, "write-buffer-size", "", "1 kb")
	d.set(c, "local-merge-buffer-size", "", "1 mb")
	d.set(c, "data-file.thin-mode", "", "true")
	d.set(c, "metadata.stats-mode", "", "none", "full")
	d.set(c, "file.compression", "", "lz4", "none")
	d.set(c, "file.compression.per.level", "", "0:snappy,5:zstd")
	d.set(c, "file.format.per.level", "", "0:parquet")
	d.set(c, "compaction.force-up-level-0", "", "true")
	d.set(c, "ignore-update-before", "", "true")
	d.set(c, "manifest.merge-min-count", "", "2")
	if c.base = d.pick("a big base", "no", "no", "yes") == "yes"; c.base {
		d.set(c, "compaction.max-size-amplification-percent", "100000")
		d.set(c, "compaction.size-ratio", "", "0")
	}
}

// create is the CREATE TABLE statement.
func (c *config) create(name string) string {
	cols := []string{"k int not null"}
	key := "k"
	tail := ""
	if c.part != "none" {
		cols = append(cols, "p text not null")
		tail = " partitioned by (p)"
		if c.part == "key" {
			key = "p, k"
		}
	}
	for _, f := range c.fields {
		cols = append(cols, f.name+" "+f.typ)
	}
	var opts []string
	for k, v := range c.opts {
		opts = append(opts, fmt.Sprintf("'%s' = '%s'", k, v))
	}
	sort.Strings(opts)
	return fmt.Sprintf("create table %s (%s, primary key (%s))%s with (%s)", name, strings.Join(cols, ", "), key, tail, strings.Join(opts, ", "))
}
