package parquet

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

// slowLZ4 decodes an LZ4 block by the letter of its format.
func slowLZ4(src []byte) []byte {
	var out []byte
	length := func(n, i int) (int, int) {
		if n == 15 {
			for {
				b := src[i]
				i++
				n += int(b)
				if b != 255 {
					break
				}
			}
		}
		return n, i
	}
	for i := 0; i < len(src); {
		tok := src[i]
		n, at := length(int(tok>>4), i+1)
		out = append(out, src[at:at+n]...)
		if i = at + n; i >= len(src) {
			break
		}
		off := int(src[i]) | int(src[i+1])<<8
		m, at := length(int(tok&15), i+2)
		for i = at; m > -4; m-- {
			out = append(out, out[len(out)-off])
		}
	}
	return out
}

// TestCodecs packs and unpacks random pages with every codec, and checks LZ4,
// where the framing is ours, against a decoder that is slow and obvious.
func TestCodecs(t *testing.T) {
	seed := int64(random.Seed(t))
	rng := rand.New(rand.NewSource(seed))
	for _, name := range []string{"zstd", "snappy", "gzip", "lz4", "lz4_raw", "brotli"} {
		id, err := codecOf(name)
		if err != nil {
			t.Fatal(err)
		}
		c := &compressor{codec: id, level: 1}
		for i := 0; i < testkit.Rounds(100); i++ {
			src := make([]byte, rng.Intn(5000))
			if i < 8 {
				src = make([]byte, 50_000+rng.Intn(300_000))
			}
			letters := 1 + rng.Intn(256)
			for k := range src {
				src[k] = byte(rng.Intn(letters))
				if i%2 == 0 && k%8 > 3 { // as numbers are
					src[k] = byte(rng.Intn(64) / 63)
				}
			}
			packed, err := c.pack(src)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decompress(nil, packed, c.codec, len(src))
			if err != nil || !bytes.Equal(got, src) {
				t.Fatalf("%s: %d bytes do not come back: %v", name, len(src), err)
			}
			if _, err := decompress(nil, packed, c.codec, len(src)+1); err == nil {
				t.Fatalf("%s: a wrong size goes unnoticed", name)
			}
			block := packed
			if c.codec == codecLZ4 {
				if binary.BigEndian.Uint32(packed) != uint32(len(src)) || int(binary.BigEndian.Uint32(packed[4:])) != len(packed)-8 {
					t.Fatal("the LZ4 frame's lengths are wrong")
				}
				block = packed[8:]
			}
			if (c.codec == codecLZ4 || c.codec == codecLZ4Raw) && !bytes.Equal(slowLZ4(block), src) {
				t.Fatalf("%s: %d bytes are packed wrongly", name, len(src))
			}
		}
	}
}
