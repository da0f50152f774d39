package mergetree

// Compare compares the sequence fields of rows i and j: below 0 when i's are older.
func (s *SequenceKeys) Compare(i, j int) int { return s.compare(i, j) }
