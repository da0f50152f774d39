package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// SequenceDef is the body of an object of kind Sequence.
type SequenceDef struct {
	Type      string `json:"type"` // smallint, integer or bigint
	Start     int64  `json:"start"`
	Min       int64  `json:"min"`
	Max       int64  `json:"max"`
	Increment int64  `json:"increment"` // not 0
	Cache     int64  `json:"cache"`     // at least 1
	Cycle     bool   `json:"cycle,omitempty"`
	// The column that owns the sequence, in the sequence's own schema; "" = none.
	Table  string `json:"table,omitempty"`
	Column string `json:"column,omitempty"`
	// Identity is set when the sequence is the column's own: 'a' ALWAYS, 'd' BY
	// DEFAULT. It cannot be dropped by itself then.
	Identity string `json:"identity,omitempty"`
	Comment  string `json:"comment,omitempty"`
	Owner    string `json:"owner,omitempty"`
}

// ErrExhausted: a sequence that does not cycle has no further value.
var ErrExhausted = errors.New("sequence is exhausted")

// Sizes of the blocks that a process reserves: the first holds as many values as
// PostgreSQL logs ahead, and they grow while one lasts less than a second.
const (
	firstBlock = 32
	lastBlock  = 8192
)

// position is the body of a sequence's file: values up to Last are taken (Called) or
// Last is the first to be given.
type position struct {
	Last   int64 `json:"last"`
	Called bool  `json:"called"`
	// Epoch grows when the sequence is set, so that other processes throw the blocks
	// away that they reserved before.
	Epoch int64 `json:"epoch"`
}

// Counter gives the values of one sequence. Values are reserved in blocks, each by
// publishing a file, so no value is given twice, by whatever process and through
// any crash; a block that a process does not use up is lost, as with PostgreSQL's
// CACHE. Nothing of it is transactional. Safe for concurrent use.
type Counter struct {
	files chain

	mu      sync.Mutex // guards all below
	known   int64      // number of the newest file seen
	at      position   // what it says
	checked time.Time  // when it was the newest
	// The values next, next+step, ... left of them are this process's own.
	next, step int64
	left       int64
	used       bool // last is a value that was given from the block
	last       int64
	size       int64
	reserved   time.Time
}

// Counter returns the counter of the sequence with an OID.
func (s *Store) Counter(oid uint32) *Counter {
	s.seqMu.Lock()
	defer s.seqMu.Unlock()
	c := s.seqs[oid]
	if c == nil {
		c = &Counter{files: chain{io: s.io, dir: sequenceDir(oid), prefix: "at-", kind: "sequence"}}
		s.seqs[oid] = c
	}
	return c
}

func sequenceDir(oid uint32) string {
	return Dir + "/sequences/" + strconv.FormatUint(uint64(oid), 10)
}

// DropCounter removes where a sequence stood, after the sequence was dropped.
func (s *Store) DropCounter(ctx context.Context, oid uint32) error {
	s.seqMu.Lock()
	delete(s.seqs, oid)
	s.seqMu.Unlock()
	return s.io.DeleteDir(ctx, sequenceDir(oid))
}

// Close gives back what is left of the blocks that this process reserved, as far as
// nobody reserved further ones. Errors only cost values.
func (s *Store) Close(ctx context.Context) {
	s.seqMu.Lock()
	defer s.seqMu.Unlock()
	for _, c := range s.seqs {
		c.giveBack(ctx)
	}
}

// refresh reads the newest position; c.mu is held. A sequence without a file stands
// before its start.
func (c *Counter) refresh(ctx context.Context, def *SequenceDef) error {
	known := c.known
	for range 4 {
		began := time.Now()
		n, err := c.files.newest(ctx, known)
		if err != nil {
			return err
		}
		if n != 0 && n == c.known {
			c.checked = began
			return nil
		}
		at := position{Last: def.Start}
		if n != 0 {
			body, _, err := c.files.read(ctx, n)
			if errors.Is(err, fileio.ErrNotExist) {
				known = 0
				continue
			}
			if err != nil {
				return err
			}
			if err := json.Unmarshal(body, &at); err != nil {
				return &fileio.CorruptionError{Path: c.files.path(n), Offset: -1, Reason: "position of a sequence does not parse", Err: err}
			}
		}
		if n < c.known || at.Epoch != c.at.Epoch {
			c.left, c.used = 0, false
		}
		c.known, c.at, c.checked = n, at, began
		return nil
	}
	return fmt.Errorf("the newest file in %s keeps changing", c.files.dir)
}

// put publishes a position after the known one; c.mu is held.
func (c *Counter) put(ctx context.Context, at position, since time.Time) error {
	body, err := json.Marshal(at)
	if err != nil {
		return err
	}
	if err := c.files.publish(ctx, c.known+1, body, since); err != nil {
		return err
	}
	c.known, c.at, c.checked = c.known+1, at, since
	if c.known%keepVersions == 0 {
		c.files.clean(ctx, c.known, since)
	}
	return nil
}

// Next returns the next value, or ErrExhausted.
func (c *Counter) Next(ctx context.Context, def *SequenceDef) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left > 0 && c.step == def.Increment {
		if time.Since(c.checked) > lookedAt {
			if err := c.refresh(ctx, def); err != nil {
				return 0, err
			}
		}
		if c.left > 0 {
			return c.take(), nil
		}
	}
	for range maxRaces {
		since := time.Now()
		if err := c.refresh(ctx, def); err != nil {
			return 0, err
		}
		first, n, err := c.at.following(def, c.blockSize(def))
		if err != nil {
			return 0, err
		}
		err = c.put(ctx, position{Last: first + (n-1)*def.Increment, Called: true, Epoch: c.at.Epoch}, since)
		if err == nil {
			c.next, c.step, c.left, c.reserved = first, def.Increment, n, since
			return c.take(), nil
		}
		if !errors.Is(err, fileio.ErrExist) {
			return 0, err
		}
	}
	return 0, fmt.Errorf("sequence in %s: others keep changing it", c.files.dir)
}

func (c *Counter) take() int64 {
	v := c.next
	c.left--
	if c.left > 0 {
		c.next += c.step // never past the block: it may not fit
	}
	c.last, c.used = v, true
	return v
}

func (c *Counter) blockSize(def *SequenceDef) int64 {
	switch {
	case c.size == 0:
		c.size = firstBlock
	case time.Since(c.reserved) < time.Second:
		c.size = min(2*c.size, lastBlock)
	default:
		c.size = firstBlock
	}
	return max(c.size, def.Cache)
}

// following returns the first of the next values and how many there are before the
// limit, at most n.
func (p position) following(def *SequenceDef, n int64) (first, count int64, err error) {
	lo, hi, step := big.NewInt(def.Min), big.NewInt(def.Max), big.NewInt(def.Increment)
	v := big.NewInt(p.Last)
	if p.Called {
		v.Add(v, step)
	}
	up := def.Increment > 0
	if out := up && v.Cmp(hi) > 0 || !up && v.Cmp(lo) < 0; out {
		if !def.Cycle {
			return 0, 0, ErrExhausted
		}
		if v = lo; !up {
			v = hi
		}
	}
	room := new(big.Int)
	if up {
		room.Sub(hi, v)
	} else {
		room.Sub(v, lo)
	}
	room.Quo(room, new(big.Int).Abs(step))
	room.Add(room, big.NewInt(1))
	if room.IsInt64() {
		n = min(n, room.Int64())
	}
	return v.Int64(), max(n, 1), nil
}

// Set makes value the last one given (called), or the next one to be given. Other
// processes notice within a second, or with their next block.
func (c *Counter) Set(ctx context.Context, def *SequenceDef, value int64, called bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range maxRaces {
		since := time.Now()
		if err := c.refresh(ctx, def); err != nil {
			return err
		}
		err := c.put(ctx, position{Last: value, Called: called, Epoch: c.at.Epoch + 1}, since)
		if err == nil {
			c.left, c.used = 0, false
			return nil
		}
		if !errors.Is(err, fileio.ErrExist) {
			return err
		}
	}
	return fmt.Errorf("sequence in %s: others keep changing it", c.files.dir)
}

// Last returns last_value and is_called as this process knows them: the value it
// gave last, or where the newest file stands.
func (c *Counter) Last(ctx context.Context, def *SequenceDef) (int64, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.known
	if err := c.refresh(ctx, def); err != nil {
		return 0, false, err
	}
	if c.used && c.known == seen {
		return c.last, true, nil
	}
	return c.at.Last, c.at.Called, nil
}

// Reset throws away what is reserved, after the definition changed.
func (c *Counter) Reset(ctx context.Context) { c.giveBack(ctx) }

func (c *Counter) giveBack(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 || !c.used {
		c.left = 0
		return
	}
	// The name after the known one is free only if nobody reserved anything since.
	_ = c.put(ctx, position{Last: c.last, Called: true, Epoch: c.at.Epoch}, time.Now())
	c.left = 0
}
