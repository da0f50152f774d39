package mergetree

import (
	"bytes"
	"cmp"
	"slices"
)

// Sorted returns all n rows in the order in which versions are merged: by key, then
// by user sequence (nil: none), rows that are equal in both in order of arrival. k
// are the rows' keys.
// Source: SortBufferWriteBuffer.java.
func (c *KeyCodec) Sorted(k *Keys, n int, user *SequenceKeys) []uint32 {
	order := c.sort(k, n)
	if user == nil {
		return order
	}
	for i := 0; i < n; {
		j := i + 1
		for j < n && c.equal(k, int(order[i]), int(order[j])) {
			j++
		}
		if j-i > 1 {
			slices.SortStableFunc(order[i:j], func(a, b uint32) int { return user.compare(int(a), int(b)) })
		}
		i = j
	}
	return order
}

// Compare compares key i of a with key j of b in the order of files.
func (c *KeyCodec) Compare(a *Keys, i int, b *Keys, j int) int {
	if x := cmp.Compare(a.Hi[i], b.Hi[j]); x != 0 || c.form == OneWord {
		return x
	}
	if c.form == TwoWords {
		return cmp.Compare(a.Lo[i], b.Lo[j])
	}
	return bytes.Compare(a.At(i), b.At(j))
}
