package main

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"strings"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// checkWarehouse refuses a place that is no warehouse, which is nearly always a
// mistyped path, and warns of one that holds other things than databases. A new
// one is made where the directory above it exists. What it cannot look at is
// left to the engine, whose errors say more.
func checkWarehouse(ctx context.Context, uri string, log *slog.Logger) error {
	if strings.HasPrefix(uri, "mem:") {
		return nil
	}
	w, err := fileio.Open(uri)
	if err != nil {
		return nil //nolint:nilerr // the engine opens it again and says why not
	}
	place := strings.SplitN(uri, "?", 2)[0] // what follows may hold secrets
	st, err := w.Stat(ctx, ".")
	switch {
	case errors.Is(err, fileio.ErrNotExist):
		l, ok := w.(*fileio.Local)
		if !ok {
			return nil
		}
		if above, err := w.Stat(ctx, path.Dir(l.Root())); err != nil || !above.Dir {
			return usagef("--warehouse: %s does not exist, nor does the directory above it", place)
		}
		return nil
	case err != nil:
		return nil //nolint:nilerr // as above
	case !st.Dir:
		return usagef("--warehouse: %s is not a directory", place)
	}
	list, err := w.List(ctx, ".")
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	dirs := map[string]bool{}
	for _, f := range list {
		name := f.Name
		if f.Dir && strings.HasSuffix(name, ".db") {
			return nil
		}
		dirs[name] = f.Dir
	}
	switch {
	case dirs["schema"]:
		return usagef("--warehouse: %s is a table; the warehouse is the directory that holds its database", place)
	case strings.HasSuffix(strings.TrimRight(place, "/"), ".db"):
		return usagef("--warehouse: %s is a database; the warehouse is the directory that holds it", place)
	}
	if len(list) == 0 {
		return nil
	}
	log.Warn("the warehouse holds no databases: no directory in it is named NAME.db", "warehouse", place)
	return nil
}
