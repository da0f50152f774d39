// Package metrics is the list of the process's metrics and their text form for
// Prometheus. It is small on purpose: counters, gauges read from functions and
// histograms, labels from small sets.
package metrics

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// metric is one family.
type metric interface {
	write(w io.Writer, name string)
	kind() string
}

type family struct {
	name, help string
	m          metric
}

var (
	mu       sync.Mutex // guards families
	families = map[string]*family{}
)

// register adds a family or returns the one of that name that exists: an engine
// that is opened twice in a process counts into the same metrics.
func register(name, help string, m metric) metric {
	mu.Lock()
	defer mu.Unlock()
	if f, ok := families[name]; ok {
		return f.m
	}
	families[name] = &family{name, help, m}
	return m
}

// Counter only goes up.
type Counter struct{ v atomic.Int64 }

// NewCounter registers a counter.
func NewCounter(name, help string) *Counter { return register(name, help, &Counter{}).(*Counter) }

// Add counts n more; n must not be negative. A nil Counter counts nothing.
func (c *Counter) Add(n int64) {
	if c != nil {
		c.v.Add(n)
	}
}

// Value returns the count.
func (c *Counter) Value() int64 { return c.v.Load() }

func (c *Counter) kind() string { return "counter" }

func (c *Counter) write(w io.Writer, name string) { fmt.Fprintf(w, "%s %d\n", name, c.v.Load()) }

// CounterVec is a counter per value of one label.
type CounterVec struct {
	label string
	mu    sync.Mutex // guards m
	m     map[string]*Counter
}

// NewCounterVec registers a counter with a label.
func NewCounterVec(name, help, label string) *CounterVec {
	return register(name, help, &CounterVec{label: label, m: map[string]*Counter{}}).(*CounterVec)
}

// With returns the counter of one label value.
func (v *CounterVec) With(value string) *Counter {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.m[value]
	if c == nil {
		c = &Counter{}
		v.m[value] = c
	}
	return c
}

func (v *CounterVec) kind() string { return "counter" }

func (v *CounterVec) write(w io.Writer, name string) {
	v.mu.Lock()
	keys := make([]string, 0, len(v.m))
	for k := range v.m {
		keys = append(keys, k)
	}
	v.mu.Unlock()
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Fprintf(w, "%s{%s=\"%s\"} %d\n", name, v.label, escape(k), v.With(k).Value())
	}
}

// gaugeFunc reads its value when it is asked.
type gaugeFunc struct {
	typ string
	f   atomic.Pointer[func() float64]
}

// NewCounterFunc registers a counter that is kept elsewhere; a later one of the same
// name replaces it.
func NewCounterFunc(name, help string, f func() float64) {
	register(name, help, &gaugeFunc{typ: "counter"}).(*gaugeFunc).f.Store(&f)
}

// NewGaugeFunc registers a gauge; a later one of the same name replaces it.
func NewGaugeFunc(name, help string, f func() float64) {
	register(name, help, &gaugeFunc{typ: "gauge"}).(*gaugeFunc).f.Store(&f)
}

func (g *gaugeFunc) kind() string { return g.typ }

func (g *gaugeFunc) write(w io.Writer, name string) {
	if f := g.f.Load(); f != nil {
		fmt.Fprintf(w, "%s %s\n", name, number((*f)()))
	}
}

// funcVec reads its values, by label, when it is asked.
type funcVec struct {
	typ, label string
	f          atomic.Pointer[func() map[string]float64]
}

// NewFuncVec registers a counter or gauge, as typ says, with a label; a later one of
// the same name replaces it.
func NewFuncVec(name, help, typ, label string, f func() map[string]float64) {
	register(name, help, &funcVec{typ: typ, label: label}).(*funcVec).f.Store(&f)
}

func (v *funcVec) kind() string { return v.typ }

func (v *funcVec) write(w io.Writer, name string) {
	f := v.f.Load()
	if f == nil {
		return
	}
	vals := (*f)()
	for _, k := range slices.Sorted(maps.Keys(vals)) {
		fmt.Fprintf(w, "%s{%s=\"%s\"} %s\n", name, v.label, escape(k), number(vals[k]))
	}
}

// DurationBuckets are bounds in seconds that suit statements.
var DurationBuckets = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// Histogram counts observations by upper bound.
type Histogram struct {
	bounds []float64
	counts []atomic.Int64
	sum    atomic.Uint64 // bits of a float64
	n      atomic.Int64
}

// NewHistogram registers a histogram with ascending upper bounds.
func NewHistogram(name, help string, bounds []float64) *Histogram {
	return register(name, help, &Histogram{bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)}).(*Histogram)
}

// Observe counts one value. A nil Histogram counts nothing.
func (h *Histogram) Observe(v float64) {
	if h == nil {
		return
	}
	h.counts[sort.SearchFloat64s(h.bounds, v)].Add(1)
	h.n.Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

func (h *Histogram) kind() string { return "histogram" }

func (h *Histogram) write(w io.Writer, name string) {
	var n int64
	for i, b := range h.bounds {
		n += h.counts[i].Load()
		fmt.Fprintf(w, "%s_bucket{le=\"%s\"} %d\n", name, number(b), n)
	}
	n += h.counts[len(h.bounds)].Load()
	fmt.Fprintf(w, "%s_bucket{le=\"+Inf\"} %d\n", name, n)
	fmt.Fprintf(w, "%s_sum %s\n%s_count %d\n", name, number(math.Float64frombits(h.sum.Load())), name, n)
}

// Write writes every metric in Prometheus' text format, by name.
func Write(w io.Writer) {
	mu.Lock()
	list := make([]*family, 0, len(families))
	for _, f := range families {
		list = append(list, f)
	}
	mu.Unlock()
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	for _, f := range list {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", f.name, strings.ReplaceAll(f.help, "\n", " "), f.name, f.m.kind())
		f.m.write(w, f.name)
	}
}

// Description is what Describe says of a metric.
type Description struct{ Name, Kind, Label, Help string }

// Describe lists every metric, by name. Label is the label that it has; "" = none.
func Describe() []Description {
	mu.Lock()
	defer mu.Unlock()
	out := make([]Description, 0, len(families))
	for _, f := range families {
		d := Description{Name: f.name, Kind: f.m.kind(), Help: f.help}
		switch m := f.m.(type) {
		case *CounterVec:
			d.Label = m.label
		case *funcVec:
			d.Label = m.label
		}
		out = append(out, d)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}
