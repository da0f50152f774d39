package lookup

// Builder takes the rows of a data file in key order.
type Builder struct{}
