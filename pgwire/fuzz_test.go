package pgwire

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/pgwire/wiretest"
)

// serveBytes plays bytes to a server.
func serveBytes(t *testing.T, login bool, data []byte) {
	if login {
		data = append(wiretest.StartupPacket(protocol30, "user", "u"), data...)
	}
	serveWith(t, Config{Backend: &fakeBackend{}, WatchDelay: time.Microsecond, MaxMessageBytes: 1 << 20}, data)
}

// serveWith plays bytes to a server. The connection must end by itself once the
// client has closed its side.
func serveWith(t *testing.T, cfg Config, data []byte) {
	cfg.Log = slog.New(slog.DiscardHandler)
	s := NewServer(cfg)
	srv, cli := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ServeConn(srv)
	}()
	go io.Copy(io.Discard, cli) //nolint:errcheck // ends with the pipe
	cli.SetWriteDeadline(time.Now().Add(10 * time.Second))
	cli.Write(data) //nolint:errcheck // the server may have closed
	cli.Close()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection does not end")
	}
}

func FuzzStartup(f *testing.F) {
	f.Add(wiretest.StartupPacket(protocol30, "user", "u", "options", `-c a=b\ c`, "_pq_.x", "1"))
	f.Add(packet(codeSSL))
	f.Add(packet(codeGSS))
	f.Add(packet(codeCancel, 0, 0, 0, 1, 0, 0, 0x1e, 0x61))
	f.Add([]byte("GET / HTTP/1.0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) { serveBytes(t, false, data) })
}

func FuzzMessages(f *testing.F) {
	for _, lines := range [][]string{
		{"Q rows 3; begin; error 22012"},
		{"P s | echo int4 text | 23 0", "B p | s | 1 0 | x00000001 a | 1", "D S s", "D P p", "E p 1", "H", "S"},
		{"P | rows 9", "B | ", "E - 2", "E - 2", "C P ", "C S x", "S", "X"},
	} {
		var b []byte
		for _, l := range lines {
			m, err := wiretest.EncodeLine(l)
			if err != nil {
				f.Fatal(err)
			}
			b = append(b, m...)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// The scripted session's own words for trouble are not what is tested.
		for _, w := range []string{"panic", "sleep", "big"} {
			if bytes.Contains(data, []byte(w)) {
				t.Skip()
			}
		}
		serveBytes(t, true, data)
	})
}

// FuzzBindDecode reads parameters of every type from any bytes: an error or a
// datum of the right shape, never a panic.
func FuzzBindDecode(f *testing.F) {
	f.Add([]byte("0000000000000000"), byte(1))
	f.Add([]byte{0, 2, 0, 1, 0, 0, 0, 4, 0, 1, 0, 0}, byte(1))
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5}, byte(1))
	f.Add([]byte("{1,2}"), byte(0))
	var all []types.Type
	for _, k := range types.Kinds() {
		if k < types.Any {
			all = append(all, types.Of(k), types.ArrayOf(types.Of(k)))
		}
	}
	all = append(all, types.TimestampOf(types.Timestamp, 9), types.NumericOf(10, 2), types.MapOf(types.Of(types.Text), types.Of(types.Int4)))
	f.Fuzz(func(t *testing.T, data []byte, format byte) {
		d := decoder{style: &pgtext.Style{}}
		for _, typ := range all {
			v, err := d.param(typ, data, int16(format&1), 1)
			if err != nil || v == nil {
				continue
			}
			switch typ.Kind {
			case types.Bool:
				_ = v.(bool)
			case types.Int2, types.Int4, types.Int8, types.OID, types.Date, types.Time, types.Timestamp, types.TimestampTZ:
				_ = v.(int64)
			case types.UUID, types.Interval:
				if len(v.([]byte)) != 16 {
					t.Fatalf("%s: %v", typ, v)
				}
			case types.Text:
				_ = v.(string)
			}
		}
	})
}
