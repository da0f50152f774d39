//go:build !linux

package table

import "testing"

// dropCached reports that the system's cache of files cannot be emptied here.
func dropCached(testing.TB, string) bool { return false }
