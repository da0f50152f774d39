// Package parquet reads and writes Parquet data files.
//
// # Reading
//
// Open reads the footer (thrift.go, meta.go), checks what it says against the
// file, and binds the Paimon schema to the file's columns by name (schema.go,
// conv.go). A ColumnReader holds one column per wanted field:
//
//	flatColumn    a top-level scalar; definition levels are the validity bitmap
//	nestedColumn  leaves with levels, put together from levels at the end
//	missingColumn not in the file: NULL
//
// Each leaf has a chunkReader (page.go) that walks the pages of one column chunk
// through a window on the file (source.go), and a sink (values.go) that decodes
// values into the memory of the array being built. A page is known by its place
// and row count first; it is read, decompressed and decoded when a row of it is
// wanted. Rows that are passed over are counted and made up for by the decoders
// in one step: bit positions in packed runs, strides in PLAIN, lengths in byte
// arrays.
//
// Text columns stay dictionary arrays as long as a batch sees indices into one
// dictionary; all batches of a row group, and all ColumnReaders of a Reader,
// then share the dictionary array.
//
// Everything in a file is input. Decoders return errors of their own, which
// chunkReader.corrupt turns into *fileio.CorruptionError with path and offset.
// Sizes are compared with what is really there before memory is taken for them.
//
// # Pruning
//
// Prune (prune.go, stats.go, bloom.go) says which rows may match a predicate.
//
// # Writing
//
// Writer (writer.go) takes arrays apart into levels and values (wshred.go),
// fills pages (wleaf.go, encode.go) and ends with indexes and footer
// (wfooter.go). It writes what Java Paimon reads: see wschema.go for the types.
//
// parquet-go is an oracle of the tests only: its Thrift decoder allocates for
// list sizes before it has seen an element, and its pages go through buffers of
// their own.
package parquet
