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
	// Upgrade is a file that only gets another level; Input is its position.
	Upgrade *manifest.DataFile
	Input   int
	// Sections are merged one after the other; each is sorted runs of files, as
	// positions in the inputs.
	Sections [][][]int
}

// Plan cuts a unit into steps. inputs are the unit's files. A file that overlaps
// no other and is big enough is moved up without being read, unless it holds
// deletes and goes to the highest level, where they would stay for ever. Small
// ones are rewritten with their neighbours: sections that follow each other
// become one output. What lies at its level already and is big stays untouched.
// must, when not nil, says which files are not to be moved as they are.
// Source: MergeTreeCompactTask.java, FileRewriteCompactTask.java.
func (u *Unit) Plan(inputs []Input, o *Options, must func(*manifest.DataFile) bool) []Step {
	if u.Rewrite {
		var steps []Step
		for i := range inputs {
			steps = append(steps, Step{Sections: [][][]int{{{i}}}})
		}
		return steps
	}
	spans := make([]mergetree.Span, len(inputs))
	for i, in := range inputs {
		spans[i] = mergetree.Span{Min: in.Min, Max: in.Max, Item: i}
	}
	p := taskPlan{u: u, o: o, inputs: inputs, must: must}
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
	must    func(*manifest.DataFile) bool
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
	case p.o.ForceRewrite || p.u.Level == p.u.Max && f.DeleteRows != 0 || // -1 = not known
		p.must != nil && p.must(f):
		p.steps = append(p.steps, Step{Sections: [][][]int{{{i}}}})
	case f.Level != p.u.Level:
		p.steps = append(p.steps, Step{Upgrade: f, Input: i})
	}
}

// Upgraded returns f as it is described at another level. Its name and contents
// stay, and so does where it came from.
func Upgraded(f *manifest.DataFile, level int32) *manifest.DataFile {
	c := *f
	c.Level = level
	return &c
}

// Upgrade says what has to be done when a file gets another level.
type Upgrade uint8

// The ways of an upgrade.
const (
	Move        Upgrade = iota // nothing more
	MoveAndTell                // its rows are looked up: for the changelog, for deletion vectors
	Rewrite                    // the same, and it is written anew
)

// Upgrade decides how a file that overlaps no other input goes to the unit's
// level. Source: upgradeStrategy in LookupMergeTreeCompactRewriter.java and
// FullChangelogMergeTreeCompactRewriter.java.
func (u *Unit) Upgrade(f *manifest.DataFile, o *Options) Upgrade {
	switch {
	case o.Changelog == "full-compaction":
		if u.Level == u.Max {
			return MoveAndTell
		}
		return Move
	case !o.Lookup || f.Level != 0:
		return Move
	case o.FormatOf(0) != o.FormatOf(u.Level), o.DeletionFiles && f.DeleteRows != 0:
		return Rewrite
	case u.Level == u.Max, o.Engine == "deduplicate" && !o.Sequence:
		return MoveAndTell
	}
	// Rows of higher levels may have to be merged into its own.
	return Rewrite
}
