// Package mem accounts for memory that grows with data and hands out the CPU
// slots of the process.
package mem

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// ErrLimit is what Grow's error matches when a limit refuses the memory.
var ErrLimit = errors.New("memory limit reached")

// LimitError names the limit that refused. engine maps it to 53200.
type LimitError struct {
	Setting string // the setting a user would raise
	Limit   int64  // bytes
	Asked   int64  // bytes
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("memory limit of %d bytes (%s) reached, %d more asked", e.Limit, e.Setting, e.Asked)
}

// Is makes errors.Is(err, ErrLimit) true.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// Account counts bytes held by one owner. Growing asks every account up the
// chain operator -> query -> process; either all grant or none is charged.
// Safe for concurrent use.
type Account struct {
	parent  *Account
	setting string
	limit   int64 // 0 = none of its own
	used    atomic.Int64
	peak    atomic.Int64
}

// NewRoot makes the account of the process.
func NewRoot(setting string, limit int64) *Account { return &Account{setting: setting, limit: limit} }

// Child makes an account below a with a limit of its own (0 = none).
func (a *Account) Child(setting string, limit int64) *Account {
	return &Account{parent: a, setting: setting, limit: limit}
}

// Grow charges n bytes before they are allocated. On refusal it returns a
// *LimitError and charges nothing. A nil Account grants everything.
func (a *Account) Grow(n int64) error {
	if a == nil || n == 0 {
		return nil
	}
	u := a.used.Add(n)
	if a.limit > 0 && u > a.limit {
		a.used.Add(-n)
		return &LimitError{Setting: a.setting, Limit: a.limit, Asked: n}
	}
	if err := a.parent.Grow(n); err != nil {
		a.used.Add(-n)
		return err
	}
	for p := a.peak.Load(); u > p && !a.peak.CompareAndSwap(p, u); p = a.peak.Load() {
	}
	return nil
}

// Shrink gives n bytes back.
func (a *Account) Shrink(n int64) {
	for ; a != nil; a = a.parent {
		a.used.Add(-n)
	}
}

// Close gives everything back that is still charged.
func (a *Account) Close() {
	if a == nil {
		return
	}
	if n := a.used.Swap(0); n != 0 {
		a.parent.Shrink(n)
	}
}

// Limit returns the lowest limit of the account and those above it with its
// setting; 0 when there is none.
func (a *Account) Limit() (setting string, limit int64) {
	for ; a != nil; a = a.parent {
		if a.limit > 0 && (limit == 0 || a.limit < limit) {
			setting, limit = a.setting, a.limit
		}
	}
	return setting, limit
}

// Used returns the bytes charged now; Peak the most there ever were.
func (a *Account) Used() int64 { return a.used.Load() }

// Peak returns the highest Used.
func (a *Account) Peak() int64 { return a.peak.Load() }
