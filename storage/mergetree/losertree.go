package mergetree

// loserTree finds the run with the smallest row and the runner-up. Inner node i
// holds the loser of the match between its subtrees; node[0] is the winner. After
// the winner's cursor moved, one path of log2(k) matches restores the tree.
//
//	runs 0..3, winner 2:     node[0]=2
//	                        node[1]=0          (loser of 0 and 2)
//	               node[2]=1        node[3]=3  (losers of the first matches)
type loserTree struct {
	m    *Reader
	runs []*run
	node []int
}

func (t *loserTree) init(m *Reader, runs []*run) {
	t.m, t.runs = m, runs
	t.node = make([]int, len(runs))
	if len(runs) > 0 {
		t.node[0] = t.build(1)
	}
}

// build plays the subtree of node i and returns its winner; leaves are
// len(runs)+run.
func (t *loserTree) build(i int) int {
	if i >= len(t.runs) {
		return i - len(t.runs)
	}
	a, b := t.build(2*i), t.build(2*i+1)
	if t.less(b, a) {
		a, b = b, a
	}
	t.node[i] = b
	return a
}

// less reports whether run a's row comes before run b's.
func (t *loserTree) less(a, b int) bool {
	x, y := t.runs[a], t.runs[b]
	if x.hi != y.hi {
		return x.hi < y.hi
	}
	if c := t.m.compare(x, y); c != 0 {
		return c < 0
	}
	return a < b
}

func (t *loserTree) winner() *run { return t.runs[t.node[0]] }

// runnerUp returns the run with the second smallest row, nil when all others
// have ended: it lost to the winner, so it is on the winner's path.
func (t *loserTree) runnerUp() *run {
	best := -1
	for i := (t.node[0] + len(t.runs)) / 2; i > 0; i /= 2 {
		if c := t.node[i]; best < 0 || t.less(c, best) {
			best = c
		}
	}
	if best < 0 || t.runs[best].done {
		return nil
	}
	return t.runs[best]
}

// replay restores the tree after the winner's cursor moved.
func (t *loserTree) replay() {
	w := t.node[0]
	for i := (w + len(t.runs)) / 2; i > 0; i /= 2 {
		if t.less(t.node[i], w) {
			w, t.node[i] = t.node[i], w
		}
	}
	t.node[0] = w
}
