// Package vectorized runs physical plans: batches of a few thousand rows flow
// through operators, one chain of operators per worker.
//
// # Parts
//
//   - query.go: Start, Next, Close; parameters and subplans that run once.
//   - stage.go: stages and operators, pipelines, workers, CPU slots.
//   - eval*.go: expressions over batches. A condition selects rows rather than
//     making a boolean column.
//   - scan.go, runtimefilter.go: reading relations; what joins and top-N sorts
//     learn while a query runs goes into the readers.
//   - aggregate.go, aggstate.go over grouptable.go and keystore.go: grouping.
//   - hashjoin.go, nestedloop.go, apply.go over jointable.go, joinpairs.go and
//     rowstore.go: every kind of join. The three find pairs of rows; what
//     becomes of a pair is the pairer's business.
//   - sort.go over sortkeys.go; window.go, windowagg.go; limit.go, distinct.go,
//     setop.go, cte.go, values.go, filter.go: one operator each.
//
// # How a query passes through
//
// Start builds a stage per plan node, top down: each node asks its inputs for
// the columns that somebody above uses (request.need), and leaves out the rest.
// The first Next prepares the root, which prepares what is below it; nodes that
// need an input to its end run that input there, with a goroutine per worker
// (runSink). What is left above the last of them is pulled by Next, directly or,
// when several workers can produce, through a bounded channel (gatherOp).
//
// # What must hold
//
//   - A batch that was handed on is never changed; scratch never leaves its
//     operator. Columns that nobody needs are nil.
//   - What grows with the data asks the query's account first; a refusal is the
//     *mem.LimitError, unchanged. Close gives everything back.
//   - Goroutines are started by parallel and gatherOp only, which wait for them.
//     A worker holds a CPU slot while it works and none while it waits.
//   - Loops over rows look at the context once per batch, or every 64k rows.
//
// # How to debug it
//
// Build with the tag invariants: every operator is then checked for its
// contract. A wrong answer that depends on Env.Workers is a sink's merge; one
// that depends on Env.VectorSize is state carried across batches.
package vectorized
