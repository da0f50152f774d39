package mergetree

import (
	"bytes"
	"container/heap"
	"sort"
)

// Span is the key range of one file, in the byte form of keys, both ends
// included. Item is the caller's.
type Span struct {
	Min, Max []byte
	Item     int
}

// Section is a set of files whose key range overlaps no other section's: the
// unit that is merged. Runs are its sorted runs: within one, files follow each
// other without overlap.
type Section struct {
	Runs     [][]int // items
	Min, Max []byte
}

type openRun struct {
	end   []byte
	items []int
}

type runHeap []*openRun

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return bytes.Compare(h[i].end, h[j].end) < 0 }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)        { *h = append(*h, x.(*openRun)) }
func (h *runHeap) Pop() any {
	o := *h
	x := o[len(o)-1]
	*h = o[:len(o)-1]
	return x
}

// IntervalPartition cuts files into sections, ascending by key, and each section
// into the fewest sorted runs: files by (min, max); a new section begins where a
// file's min is above every max so far; a file joins the run that ends first if
// that run ends before it. Source: IntervalPartition.java.
func IntervalPartition(spans []Span) []Section {
	spans = append([]Span(nil), spans...)
	sort.SliceStable(spans, func(i, j int) bool {
		if c := bytes.Compare(spans[i].Min, spans[j].Min); c != 0 {
			return c < 0
		}
		return bytes.Compare(spans[i].Max, spans[j].Max) < 0
	})
	var out []Section
	for i := 0; i < len(spans); {
		end, j := spans[i].Max, i+1
		for j < len(spans) && bytes.Compare(spans[j].Min, end) <= 0 {
			if bytes.Compare(spans[j].Max, end) > 0 {
				end = spans[j].Max
			}
			j++
		}
		out = append(out, Section{Runs: sortedRuns(spans[i:j]), Min: spans[i].Min, Max: end})
		i = j
	}
	return out
}

func sortedRuns(spans []Span) [][]int {
	var h runHeap
	var all []*openRun
	for _, s := range spans {
		if len(h) > 0 && bytes.Compare(h[0].end, s.Min) < 0 {
			h[0].items, h[0].end = append(h[0].items, s.Item), s.Max
			heap.Fix(&h, 0)
			continue
		}
		r := &openRun{end: s.Max, items: []int{s.Item}}
		all = append(all, r)
		heap.Push(&h, r)
	}
	out := make([][]int, len(all))
	for i, r := range all {
		out[i] = r.items
	}
	return out
}
