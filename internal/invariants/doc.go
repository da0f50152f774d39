// Package invariants says whether the build checks its own contracts: with the
// build tag invariants operators and readers are wrapped by checkers.
package invariants
