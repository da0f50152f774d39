package parquet

import "encoding/binary"

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func be64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }
