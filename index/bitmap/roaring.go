package bitmap

import (
	"encoding/binary"
	"slices"
)

// Sizes and marks of the portable format of RoaringBitmap.
const (
	cookieNoRuns   = 12346
	cookieRuns     = 12347
	arrayMax       = 4096 // values of an array container
	bitmapBytes    = 8192
	noOffsetsBelow = 4 // containers of a bitmap with runs
)

// singleBytes is the length of a bitmap of one row.
const singleBytes = 18

// appendRoaring writes rows, ascending and at least one, as a portable
// RoaringBitmap with the containers that Java's runOptimize chooses: runs where
// they are smaller. Building the bitmap first took four times as long.
func appendRoaring(out []byte, rows []uint32) []byte {
	type container struct {
		rows []uint32
		runs int
		run  bool
	}
	var buf [8]container
	cs := buf[:0]
	anyRun := false
	for i := 0; i < len(rows); {
		from, high, runs := i, rows[i]>>16, 1
		for i++; i < len(rows) && rows[i]>>16 == high; i++ {
			if rows[i] != rows[i-1]+1 {
				runs++
			}
		}
		c := container{rows: rows[from:i], runs: runs}
		c.run = 2+4*runs < min(2*len(c.rows), bitmapBytes)
		anyRun = anyRun || c.run
		cs = append(cs, c)
	}
	start := len(out)
	le := binary.LittleEndian
	if anyRun {
		out = le.AppendUint32(out, cookieRuns|uint32(len(cs)-1)<<16)
		flags := len(out)
		out = append(out, make([]byte, (len(cs)+7)/8)...)
		for i, c := range cs {
			if c.run {
				out[flags+i/8] |= 1 << (i % 8)
			}
		}
	} else {
		out = le.AppendUint32(out, cookieNoRuns)
		out = le.AppendUint32(out, uint32(len(cs)))
	}
	for _, c := range cs {
		out = le.AppendUint16(out, uint16(c.rows[0]>>16))
		out = le.AppendUint16(out, uint16(len(c.rows)-1))
	}
	offsets := -1
	if !anyRun || len(cs) >= noOffsetsBelow {
		offsets = len(out)
		out = append(out, make([]byte, 4*len(cs))...)
	}
	for i, c := range cs {
		if offsets >= 0 {
			le.PutUint32(out[offsets+4*i:], uint32(len(out)-start))
		}
		switch {
		case c.run:
			out = le.AppendUint16(out, uint16(c.runs))
			first := c.rows[0]
			for j := 1; j <= len(c.rows); j++ {
				if j < len(c.rows) && c.rows[j] == c.rows[j-1]+1 {
					continue
				}
				out = le.AppendUint16(out, uint16(first))
				out = le.AppendUint16(out, uint16(c.rows[j-1]-first))
				if j < len(c.rows) {
					first = c.rows[j]
				}
			}
		case len(c.rows) <= arrayMax:
			n := len(out)
			out = slices.Grow(out, 2*len(c.rows))[:n+2*len(c.rows)]
			for j, r := range c.rows {
				le.PutUint16(out[n+2*j:], uint16(r))
			}
		default:
			n := len(out)
			out = append(out, make([]byte, bitmapBytes)...)
			words := out[n:]
			for _, r := range c.rows {
				words[uint16(r)>>3] |= 1 << (r & 7)
			}
		}
	}
	return out
}
