package table

import (
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// Flink may put the changelog files of many buckets into one file, each a file of its
// own inside of it (changelog.precommit-compact). What says where is the name:
//
//	bucket-B/compacted-changelog-X$B-LEN.cc-parquet            bytes [0, LEN) of this file
//	bucket-C/compacted-changelog-X$B-LEN-OFF-SIZE.cc-parquet   bytes [OFF, OFF+SIZE) of the
//	                                                           one above; no file itself
//
// Source: CompactedChangelogPathResolver.java.

const packedPrefix = "compacted-changelog-"

// packedFile says where the bytes of a packed changelog file are. ok is false of any
// other file.
func packedFile(p string) (file string, off, size int64, ok bool, err error) {
	name := path.Base(p)
	stem, ext, _ := strings.Cut(name, ".")
	if !strings.HasPrefix(name, packedPrefix) || !strings.HasPrefix(ext, "cc-") {
		return "", 0, 0, false, nil
	}
	bad := &fileio.CorruptionError{Path: p, Offset: -1, Reason: "the name of a compacted changelog file does not say where it is"}
	prefix, where, found := strings.Cut(stem, "$")
	if !found {
		return "", 0, 0, true, bad
	}
	var n []int64
	for _, s := range strings.Split(where, "-") {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 {
			return "", 0, 0, true, bad
		}
		n = append(n, v)
	}
	switch len(n) {
	case 2:
		return p, 0, n[1], true, nil
	case 4:
		dir := path.Dir(path.Dir(p))
		return fmt.Sprintf("%s/bucket-%d/%s$%d-%d.%s", dir, n[0], prefix, n[0], n[1], ext), n[2], n[3], true, nil
	}
	return "", 0, 0, true, bad
}

// openData opens a data or changelog file.
func (e *Env) openData(ctx context.Context, p string) (fileio.File, error) {
	real, off, size, packed, err := packedFile(p)
	if err != nil || !packed {
		if err == nil {
			return e.IO.Open(ctx, p)
		}
		return nil, err
	}
	f, err := e.IO.Open(ctx, real)
	if err != nil {
		return nil, err
	}
	if off > f.Size() || size > f.Size()-off {
		_ = f.Close()
		return nil, &fileio.CorruptionError{Path: p, Offset: -1, Reason: fmt.Sprintf("bytes %d to %d of a compacted changelog file of %d", off, off+size, f.Size())}
	}
	return &partFile{File: f, part: io.NewSectionReader(f, off, size), path: p}, nil
}

// partFile is a part of a file, under a name of its own.
type partFile struct {
	fileio.File
	part *io.SectionReader
	path string
}

// ReadAt implements io.ReaderAt.
func (f *partFile) ReadAt(b []byte, off int64) (int, error) { return f.part.ReadAt(b, off) }

// Size implements fileio.File.
func (f *partFile) Size() int64 { return f.part.Size() }

// Path implements fileio.File.
func (f *partFile) Path() string { return f.path }
