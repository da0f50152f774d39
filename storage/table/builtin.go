package table

import (
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/format/parquet"
)

// formats are the data file formats that tables may hold, sharing a cache of
// inflated pages.
func formats(pageBytes int64) []format.Format {
	var pages *parquet.PageCache
	if pageBytes > 0 {
		pages = parquet.NewPageCache(pageBytes)
	}
	return []format.Format{
		parquet.Format{Pages: pages},
	}
}
