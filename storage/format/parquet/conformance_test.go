package parquet

import (
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/format/formattest"
)

func TestConformance(t *testing.T) {
	small := map[string]string{"parquet.page.size": "2kb", "parquet.page.row.count.limit": "300", "parquet.dictionary.page.size": "400",
		"parquet.bloom.filter.enabled": "true", "parquet.bloom.filter.max.bytes": "4096"}
	formattest.Run(t, formattest.Config{
		Format: Format{},
		Options: []format.WriteOptions{
			{},
			{Compression: "none", Options: small},
			{Compression: "lz4", BlockSize: 100 << 10, Options: small},
			{Compression: "snappy", Options: map[string]string{"parquet.enable.dictionary": "false", "parquet.page.row.count.limit": "1000"}},
			{Compression: "gzip", Options: map[string]string{"parquet.page.row.count.limit": "777", "parquet.page.write-checksum.enabled": "false"}},
			{Compression: "lz4_raw", Options: small},
			{Compression: "brotli", BlockSize: 1},
		},
	})
}
