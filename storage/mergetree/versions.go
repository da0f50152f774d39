package mergetree

// VersionBatch is what Reader.NextVersions returns: every version of some keys,
// keys with a single version included. It never ends inside a key.
type VersionBatch struct {
	// Versions' Cols follow Options.Columns (Sequence and Kind are not among them).
	Versions
	// Seq is the sequence number of each version.
	Seq []int64
	// Tag is Input.Tag of the file that each version came from, Pos its physical row
	// there.
	Tag []int32
	Pos []int64
	// Keys is the byte form (KeyCodec) of each key.
	Keys [][]byte
}
