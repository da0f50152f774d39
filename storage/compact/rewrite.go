package compact

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
)

// Reader yields rows in the order in which they are to be written; table's
// SplitReader is one. With a key the last two columns of a batch are sequence
// number (int64) and row kind (int16); batches have no selection.
type Reader interface {
	// Next returns nil at the end.
	Next(ctx context.Context) (*vec.Batch, error)
}

// CopyOptions say how Copy goes about it.
type CopyOptions struct {
	Keyed bool
	// Throttle, when not nil, is told the bytes that were written and may wait.
	Throttle func(ctx context.Context, bytes int64) error
	// Rows, when not nil, is told how many rows were written.
	Rows func(n int64)
}

// ahead is how many batches are read before they are written.
const ahead = 2

// Copy writes what r reads, reading a little ahead on a goroutine of its own: one
// core inflates and merges while another encodes. Rows keep their sequence
// numbers and kinds. It returns the number of rows; reader and writer are left
// open, and not in use any more.
func Copy(ctx context.Context, r Reader, w datafile.Writer, o CopyOptions) (rows int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	queue := make(chan *vec.Batch, ahead)
	var failed error // of reading; set before queue is closed
	go func() {
		defer close(queue)
		for {
			b, err := r.Next(ctx)
			if err != nil || b == nil {
				failed = err
				return
			}
			select {
			case queue <- b:
			case <-ctx.Done():
				failed = context.Cause(ctx)
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range queue { // until the goroutine has ended
		}
	}()
	var kinds []int8
	written := w.Written()
	for b := range queue {
		cols := b.Cols
		var seq []int64
		if o.Keyed {
			k := len(cols) - 2
			seq = vec.ViewOf[int64](cols[k]).V[:b.N]
			kinds = narrow(kinds, cols[k+1], b.N)
			cols = cols[:k]
		}
		if err := w.Write(ctx, cols, b.N, seq, kinds); err != nil {
			return rows, err
		}
		rows += int64(b.N)
		if o.Rows != nil {
			o.Rows(int64(b.N))
		}
		if now := w.Written(); o.Throttle != nil && now > written {
			if err := o.Throttle(ctx, now-written); err != nil {
				return rows, err
			}
			written = now
		}
	}
	return rows, failed
}

// narrow returns row kinds as bytes, in buf if it is large enough.
func narrow(buf []int8, kinds arrow.Array, n int) []int8 {
	v := vec.ViewOf[int16](kinds).V[:n]
	if cap(buf) < n {
		buf = make([]int8, n)
	}
	buf = buf[:n]
	for i, k := range v {
		buf[i] = int8(k)
	}
	return buf
}
