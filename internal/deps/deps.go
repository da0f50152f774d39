package deps

import (
	_ "github.com/RoaringBitmap/roaring/v2"
	_ "github.com/RoaringBitmap/roaring/v2/roaring64"
	_ "github.com/apache/arrow/go/v15/arrow/array"
	_ "github.com/apache/arrow/go/v15/arrow/ipc"
	_ "github.com/bits-and-blooms/bloom/v3"
	_ "github.com/cespare/xxhash/v2"
	_ "github.com/cockroachdb/apd/v3"
	_ "github.com/google/uuid"
	_ "github.com/hamba/avro/v2/ocf"
	_ "github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/pgproto3"
	_ "github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/parquet-go/parquet-go"
	_ "github.com/peterh/liner"
	_ "github.com/pierrec/lz4/v4"
	_ "gocloud.dev/blob"
	_ "gocloud.dev/blob/memblob"
	_ "golang.org/x/sync/errgroup"
)
