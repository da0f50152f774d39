package table

import (
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/format/parquet"
)

// formats are the data file formats that tables may hold.
var formats = []format.Format{
	parquet.Format{},
}
