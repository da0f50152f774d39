package compact

import (
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// Input is a data file with its key range in the byte form of keys.
type Input struct {
	File     *manifest.DataFile
	Min, Max []byte
}

// Step is one part of a task, in key order: a file that is moved, or sections
// that are rewritten together.
type Step struct {
	// Upgrade is a file that only gets another level.
	Upgrade *manifest.DataFile
	// Sections are merged one after the other; each is sorted runs of files, as
	// positions in the inputs.
	Sections [][][]int
}

// Plan cuts a unit into steps. inputs are the unit's files. A file that overlaps
// no other and is big enough is moved up without being read, unless it holds
// deletes and goes to the highest level, where they would stay for ever. Small
// ones are rewritten with their neighbours: sections that follow each other
// become one output. What lies at its level already and is big stays untouched.
// Source: MergeTreeCompactTask.java.
func (u *Unit) Plan(inputs []Input, o *Options) []Step {
	spans := make([]mergetree.Span, len(inputs))
	for i, in := range inputs {
		spans[i] = mergetree.Span{Min: in.Min, Max: in.Max, Item: i}
	}
	p := taskPlan{u: u, o: o, inputs: inputs}
	for _, s := range mergetree.IntervalPartition(spans) {
		if len(s.Runs) > 1 {
			p.pending = append(p.pending, s.Runs)
			continue
		}
		for _, i := range s.Runs[0] {
			if inputs[i].File.Size < o.Small {
				p.pending = append(p.pending, [][]int{{i}})
				continue
			}
			p.flush()
			p.upgrade(i)
		}
	}
	p.flush()
	return p.steps
}

type taskPlan struct {
	u       *Unit
	o       *Options
	inputs  []Input
	pending [][][]int
	steps   []Step
}

// flush rewrites the pending sections, or moves the file if there is but one.
func (p *taskPlan) flush() {
	pending := p.pending
	p.pending = nil
	switch {
	case len(pending) == 0:
	case len(pending) == 1 && len(pending[0]) == 1:
		for _, i := range pending[0][0] {
			p.upgrade(i)
		}
	default:
		p.steps = append(p.steps, Step{Sections: pending})
	}
}

func (p *taskPlan) upgrade(i int) {
	f := p.inputs[i].File
	switch {
	case p.o.ForceRewrite || p.u.Level == p.u.Max && f.DeleteRows != 0: // -1 = not known
		p.steps = append(p.steps, Step{Sections: [][][]int{{{i}}}})
	case f.Level != p.u.Level:
		p.steps = append(p.steps, Step{Upgrade: f})
	}
}

// Upgraded returns f as it is described at another level. Its name and contents
// stay, and so does where it came from.
func Upgraded(f *manifest.DataFile, level int32) *manifest.DataFile {
	c := *f
	c.Level = level
	return &c
}
