package engine

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// Random transactions over few locks: nobody holds what another holds, every
// deadlock is broken, nothing is left.
func TestLockManager(t *testing.T) {
	l := newLockManager()
	var mu sync.Mutex
	owners := map[lockTarget]*lockOwner{}
	deadlocks := 0
	var wg sync.WaitGroup
	for w := range 8 {
		r := rand.New(rand.NewPCG(1, uint64(w)))
		wg.Go(func() {
			for range 300 {
				o := &lockOwner{pid: int32(w), held: map[lockTarget]lockMode{}}
				var mine []lockTarget
				for range 1 + r.IntN(4) {
					target := lockTarget{table: "t", key: strconv.Itoa(1 + r.IntN(6))}
					if _, err := l.acquire(context.Background(), o, target, lockExclusive, lockWait{}); err != nil {
						if !pgerr.Is(err, pgerr.DeadlockDetected) {
							t.Error(err)
						}
						mu.Lock()
						deadlocks++
						mu.Unlock()
						break
					}
					mu.Lock()
					if x := owners[target]; x != nil && x != o {
						t.Errorf("%v is held twice", target)
					}
					owners[target] = o
					mu.Unlock()
					mine = append(mine, target)
					runtime.Gosched() // else few processors run the owners one after the other
				}
				mu.Lock()
				for _, m := range mine {
					delete(owners, m)
				}
				mu.Unlock()
				l.release(o)
			}
		})
	}
	wg.Wait()
	if n := l.held(); n != 0 {
		t.Errorf("%d locks are left", n)
	}
	if deadlocks == 0 {
		t.Error("no deadlock was met: the test shows nothing")
	}
}

func TestLockQueueOrder(t *testing.T) {
	l := newLockManager()
	target := lockTarget{table: "t"}
	owner := func(pid int32) *lockOwner { return &lockOwner{pid: pid, held: map[lockTarget]lockMode{}} }
	a, b, c := owner(1), owner(2), owner(3)
	ctx := context.Background()
	take := func(o *lockOwner, m lockMode) <-chan error {
		ch := make(chan error, 1)
		go func() { _, err := l.acquire(ctx, o, target, m, lockWait{}); ch <- err }()
		return ch
	}
	if err := <-take(a, lockIntent); err != nil {
		t.Fatal(err)
	}
	x := take(b, lockExclusive)
	for l.queued(target) < 1 {
		runtime.Gosched()
	}
	// c could share with a, but may not starve b.
	y := take(c, lockIntent)
	for l.queued(target) < 2 {
		runtime.Gosched()
	}
	l.release(a)
	if err := <-x; err != nil {
		t.Fatal(err)
	}
	select {
	case <-y:
		t.Fatal("granted beside an exclusive lock")
	default:
	}
	l.release(b)
	if err := <-y; err != nil {
		t.Fatal(err)
	}
	// Two who share and both want more: a deadlock.
	if err := <-take(a, lockIntent); err != nil {
		t.Fatal(err)
	}
	z := take(a, lockExclusive)
	for l.queued(target) < 1 {
		runtime.Gosched()
	}
	if err := <-take(c, lockExclusive); !pgerr.Is(err, pgerr.DeadlockDetected) {
		t.Fatal(err)
	}
	l.release(c)
	if err := <-z; err != nil {
		t.Fatal(err)
	}
	l.release(a)
}

func (l *lockManager) queued(t lockTarget) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.locks[t]; s != nil {
		return len(s.queue)
	}
	return 0
}

// held returns how many locks there are.
func (l *lockManager) held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.locks)
}
