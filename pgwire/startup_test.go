package pgwire

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/pgwire/wiretest"
)

// packet makes a start-up packet with a body that is not names and values.
func packet(code uint32, body ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	b = binary.BigEndian.AppendUint32(b, code)
	return append(b, body...)
}

func TestGreeting(t *testing.T) {
	_, addr := startServer(t, Config{Backend: &fakeBackend{}})
	got := wiretest.Dial(t, addr).Login("user", "bob", "application_name", "x")
	want := []string{
		"Authentication 0",
		"ParameterStatus application_name=x",
		"ParameterStatus client_encoding=UTF8",
		"ParameterStatus DateStyle=ISO, MDY",
		"ParameterStatus default_transaction_read_only=off",
		"ParameterStatus in_hot_standby=off",
		"ParameterStatus integer_datetimes=on",
		"ParameterStatus IntervalStyle=postgres",
		"ParameterStatus is_superuser=on",
		"ParameterStatus server_encoding=UTF8",
		"ParameterStatus server_version=15.0",
		"ParameterStatus session_authorization=bob",
		"ParameterStatus standard_conforming_strings=on",
		"ParameterStatus TimeZone=UTC",
		"BackendKeyData pid secret:4",
		"ReadyForQuery I",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestStartupPackets(t *testing.T) {
	user := wiretest.StartupPacket(protocol30, "user", "u")
	join := func(b ...[]byte) []byte {
		var out []byte
		for _, x := range b {
			out = append(out, x...)
		}
		return out
	}
	for _, tc := range []struct {
		name string
		send []byte
		raw  string // single bytes that come first
		want string // the first message
	}{
		{"ssl", join(packet(codeSSL), user), "N", "Authentication 0"},
		{"gss, then ssl", join(packet(codeGSS), packet(codeSSL), user), "NN", "Authentication 0"},
		{"ssl twice", join(packet(codeSSL), packet(codeSSL)), "N", "ErrorResponse FATAL 0A000 unsupported frontend protocol 1234.5679: server supports 3.0 to 3.0"},
		{"2.0", packet(2 << 16), "", "ErrorResponse FATAL 0A000 unsupported frontend protocol 2.0: server supports 3.0 to 3.0"},
		{"4.1", packet(4<<16 | 1), "", "ErrorResponse FATAL 0A000 unsupported frontend protocol 4.1: server supports 3.0 to 3.0"},
		{"3.2", wiretest.StartupPacket(protocol30|2, "user", "u"), "", "NegotiateProtocolVersion 196608"},
		{"unknown option", wiretest.StartupPacket(protocol30, "user", "u", "_pq_.x", "1", "_pq_.y", ""), "", "NegotiateProtocolVersion 196608 _pq_.x _pq_.y"},
		{"no user", wiretest.StartupPacket(protocol30, "database", "d"), "", "ErrorResponse FATAL 28000 no PostgreSQL user name specified in startup packet"},
		{"no end", packet(protocol30, 'u', 's', 'e', 'r', 0, 'u', 0), "", "ErrorResponse FATAL 08P01 invalid startup packet layout: expected terminator as last byte"},
		{"bytes behind the end", packet(protocol30, 'u', 's', 'e', 'r', 0, 'u', 0, 0, 9), "", "ErrorResponse FATAL 08P01 invalid startup packet layout: expected terminator as last byte"},
		{"replication", wiretest.StartupPacket(protocol30, "user", "u", "replication", "database"), "", "ErrorResponse FATAL 0A000 replication connections are not supported"},
		{"no replication", wiretest.StartupPacket(protocol30, "user", "u", "replication", "false"), "", "Authentication 0"},
		{"bad options", wiretest.StartupPacket(protocol30, "user", "u", "options", "-x"), "", "ErrorResponse FATAL 42601 invalid command-line argument for server process: -x"},
		{"options without value", wiretest.StartupPacket(protocol30, "user", "u", "options", "-c foo"), "", "ErrorResponse FATAL 42601 -c foo requires a value"},
		{"http", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "", "closed"},
		{"tls hello", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), "", "closed"},
		{"short", []byte{0, 0, 0, 7, 0, 0, 0}, "", "closed"},
		{"negative", []byte{0xff, 0xff, 0xff, 0xff, 0}, "", "closed"},
		{"long", []byte{0x7f, 0xff, 0xff, 0xff, 0}, "", "closed"},
		{"cancel of nobody", packet(codeCancel, 0, 0, 0, 9, 0, 0, 0, 9), "", "closed"},
		{"cancel too short", packet(codeCancel, 0, 0), "", "closed"},
		{"ssl, then cancel", join(packet(codeSSL), packet(codeCancel, 0, 0, 0, 9, 0, 0, 0, 9)), "N", "closed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, addr := startServer(t, Config{Backend: &fakeBackend{}})
			c := wiretest.Dial(t, addr)
			c.Write(tc.send)
			for i := range len(tc.raw) {
				b, err := c.ReadByte()
				if err != nil || b != tc.raw[i] {
					t.Fatalf("byte %d is %q, %v", i, b, err)
				}
			}
			if got := c.Next(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestStartupParameters(t *testing.T) {
	b := &fakeBackend{}
	_, addr := startServer(t, Config{Backend: b})
	wiretest.Dial(t, addr).Login("USER", "bob", "options", `-c statement_timeout=12345 -csearch_path=a\ b --work-mem=1MB -c application_name=o`,
		"Application_Name", "direct", "client_encoding", "'utf-8'")
	got := b.startups[0]
	if got.User != "bob" || got.Database != "bob" {
		t.Errorf("user %q, database %q", got.User, got.Database)
	}
	want := map[string]string{
		"statement_timeout": "12345", "search_path": "a b", "work_mem": "1MB",
		"application_name": "direct", "client_encoding": "utf-8",
	}
	if !reflect.DeepEqual(got.Params, want) {
		t.Errorf("got %v", got.Params)
	}
}

func TestSplitOptions(t *testing.T) {
	for in, want := range map[string][][2]string{
		"":                      nil,
		"  \t ":                 nil,
		`-c a=b`:                {{"a", "b"}},
		`-c a=b\ c\\d`:          {{"a", `b c\d`}},
		`--a-b=c-d -c X=`:       {{"a_b", "c-d"}, {"x", ""}},
		`-c a=b=c`:              {{"a", "b=c"}},
		`-c paimon.x=1 --y.z=2`: {{"paimon.x", "1"}, {"y.z", "2"}},
	} {
		got, err := splitOptions(in)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"-c", "x", "-c a", "--a", "-D /x"} {
		if got, err := splitOptions(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestOpenFails(t *testing.T) {
	_, addr := startServer(t, Config{Backend: &fakeBackend{openErr: pgerr.New(pgerr.InvalidCatalogName, "database \"x\" does not exist")}})
	got := wiretest.Dial(t, addr).Login()
	if got[0] != "ErrorResponse FATAL 3D000 database \"x\" does not exist" {
		t.Errorf("got %q", got)
	}
}

func TestConnectionLimit(t *testing.T) {
	s, addr := startServer(t, Config{Backend: &fakeBackend{}, MaxConnections: 2})
	a, b := wiretest.Dial(t, addr), wiretest.Dial(t, addr)
	a.Login()
	b.Login()
	if got := wiretest.Dial(t, addr).Login(); got[0] != "ErrorResponse FATAL 53300 sorry, too many clients already" {
		t.Errorf("got %q", got)
	}
	a.Write(wiretest.Frame('X'))
	a.Until("closed")
	waitFor(t, "the session's end", func() bool { return s.Sessions() == 1 })
	if got := wiretest.Dial(t, addr).Login(); got[0] != "Authentication 0" {
		t.Errorf("got %q", got)
	}
}
