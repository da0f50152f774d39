package pgwire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// Codes of the packets that a connection may begin with.
const (
	codeCancel = 80877102
	codeSSL    = 80877103
	codeGSS    = 80877104
	protocol30 = 3 << 16
)

// startup talks until a session is ready for its first message. What is not this
// protocol at all ends with errDone, without a word and without a line in the
// log.
func (c *conn) startup() error {
	c.nc.SetDeadline(time.Now().Add(c.srv.startupTimeout())) //nolint:errcheck // a closed socket fails at the read
	err := c.startupPackets()
	if err == nil && c.late {
		return fatal(pgerr.CannotConnectNow, "the database system is shutting down")
	}
	if err == nil {
		err = c.authenticate()
	}
	if err == nil {
		err = c.open()
	}
	if err != nil {
		var ne net.Error
		if e := c.ask.Load(); e != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			return fatal(pgerr.CannotConnectNow, "the database system is shutting down")
		} else if errors.As(err, &ne) && ne.Timeout() {
			return errDone
		}
		return err
	}
	c.nc.SetDeadline(time.Time{}) //nolint:errcheck // as above
	c.srv.settled(c)
	return nil
}

// startupPackets answers requests for encryption and reads the start-up message.
func (c *conn) startupPackets() error {
	asked := map[uint32]bool{}
	for {
		code, body, ok, err := c.in.startup()
		if err != nil {
			return err
		}
		if !ok {
			return errDone
		}
		switch code {
		case codeCancel:
			return c.cancelRequest(body)
		case codeSSL, codeGSS:
			if asked[code] {
				return unsupported(code)
			}
			asked[code] = true
			answer := byte('N')
			_, secure := c.nc.(tlsConn)
			if code == codeSSL && c.srv.tlsConfig() != nil && !secure {
				answer = 'S'
				// Bytes sent in clear before the handshake could be another's:
				// CVE-2021-23214.
				if c.in.r != c.in.w {
					return fatal(pgerr.ProtocolViolation, "received unencrypted data after SSL request")
				}
			}
			c.out.buf = append(c.out.buf, answer)
			if err := c.out.flush(); err != nil {
				return err
			}
			if answer == 'S' {
				if err := c.startTLS(); err != nil {
					return err
				}
			}
		default:
			if code>>16 != 3 {
				return unsupported(code)
			}
			return c.startupMessage(code, body)
		}
	}
}

// tlsInfo is what pg_stat_ssl shows of a connection; nil = it is not encrypted.
func tlsInfo(nc net.Conn) *engine.TLS {
	t, ok := nc.(*tls.Conn)
	if !ok {
		return nil
	}
	cs := t.ConnectionState()
	out := &engine.TLS{Version: strings.Replace(tls.VersionName(cs.Version), "TLS 1", "TLSv1", 1), Cipher: tls.CipherSuiteName(cs.CipherSuite), Bits: 256}
	if strings.Contains(out.Cipher, "AES_128") {
		out.Bits = 128
	}
	if len(cs.PeerCertificates) > 0 {
		x := cs.PeerCertificates[0]
		out.ClientDN, out.IssuerDN, out.Serial = x.Subject.String(), x.Issuer.String(), x.SerialNumber.String()
	}
	return out
}

// tlsConn is what tells an encrypted connection from a plain one.
type tlsConn interface {
	HandshakeContext(ctx context.Context) error
}

func unsupported(code uint32) error {
	return fatal(pgerr.FeatureNotSupported, "unsupported frontend protocol %d.%d: server supports 3.0 to 3.0", code>>16, code&0xffff)
}

// startupMessage reads names and values, each ended by NUL, up to an empty name.
func (c *conn) startupMessage(code uint32, b []byte) error {
	var pairs [][2]string
	next := func() (string, bool) {
		for i, x := range b {
			if x == 0 {
				s := string(b[:i])
				b = b[i+1:]
				return s, true
			}
		}
		return "", false
	}
	for {
		name, ok := next()
		if !ok {
			return badLayout()
		}
		if name == "" {
			break
		}
		value, ok := next()
		if !ok {
			return badLayout()
		}
		pairs = append(pairs, [2]string{name, value})
	}
	if len(b) != 0 {
		return badLayout()
	}

	st := engine.Startup{Params: map[string]string{}, Remote: addr(c.nc), TLS: tlsInfo(c.nc)}
	var unknown []string
	var direct [][2]string
	for _, p := range pairs {
		switch name := strings.ToLower(p[0]); {
		case name == "user":
			st.User = p[1]
		case name == "database":
			st.Database = p[1]
		case name == "options":
			opts, err := splitOptions(p[1])
			if err != nil {
				return err
			}
			for _, o := range opts {
				st.Params[o[0]] = o[1]
			}
		case name == "replication":
			switch strings.ToLower(p[1]) {
			case "false", "off", "no", "0", "f", "n":
			default:
				return fatal(pgerr.FeatureNotSupported, "replication connections are not supported")
			}
		case strings.HasPrefix(name, "_pq_."):
			unknown = append(unknown, p[0])
		case name == "client_encoding":
			// asyncpg sends 'utf-8' with the quotes; PostgreSQL looks only at the
			// letters and digits of the name.
			direct = append(direct, [2]string{name, strings.Trim(p[1], "'\"")})
		default:
			direct = append(direct, [2]string{name, p[1]})
		}
	}
	for _, p := range direct { // over what options say, as in PostgreSQL
		st.Params[p[0]] = p[1]
	}
	if code != protocol30 || len(unknown) > 0 {
		c.out.negotiate(unknown)
	}
	if st.User == "" {
		return fatal(pgerr.InvalidAuthorizationSpecification, "no PostgreSQL user name specified in startup packet")
	}
	if st.Database == "" {
		st.Database = st.User
	}
	c.start = st
	return nil
}

func badLayout() error {
	return fatal(pgerr.ProtocolViolation, "invalid startup packet layout: expected terminator as last byte")
}

// negotiate tells a newer client that this server speaks 3.0 and which options
// it does not know. The version is the whole number, as PostgreSQL sends it.
func (w *writer) negotiate(unknown []string) {
	pos := w.begin('v')
	w.buf = binary.BigEndian.AppendUint32(w.buf, protocol30)
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(len(unknown)))
	for _, s := range unknown {
		w.buf = append(append(w.buf, s...), 0)
	}
	w.finish(pos)
}

// splitOptions takes the start-up parameter options apart: words divided by
// blanks, a backslash keeps the next character. Known words are -c name=value,
// -cname=value and --name=value; in names a dash stands for an underscore.
func splitOptions(s string) ([][2]string, error) {
	var words []string
	for i := 0; i < len(s); {
		if isBlank(s[i]) {
			i++
			continue
		}
		var w []byte
		for i < len(s) && !isBlank(s[i]) {
			if s[i] == '\\' && i+1 < len(s) {
				i++
			}
			w = append(w, s[i])
			i++
		}
		words = append(words, string(w))
	}
	var out [][2]string
	for i := 0; i < len(words); i++ {
		w := words[i]
		var set string
		switch {
		case w == "-c":
			if i++; i == len(words) {
				return nil, fatal(pgerr.SyntaxError, "option requires an argument -- 'c'")
			}
			set = words[i]
		case strings.HasPrefix(w, "-c"):
			set = w[2:]
		case strings.HasPrefix(w, "--"):
			set = w[2:]
		default:
			return nil, fatal(pgerr.SyntaxError, "invalid command-line argument for server process: %s", w)
		}
		name, value, ok := strings.Cut(set, "=")
		if !ok {
			flag := "-c "
			if strings.HasPrefix(w, "--") {
				flag = "--"
			}
			return nil, fatal(pgerr.SyntaxError, "%s%s requires a value", flag, set)
		}
		out = append(out, [2]string{strings.ToLower(strings.ReplaceAll(name, "-", "_")), value})
	}
	return out, nil
}

func isBlank(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'
}

// open starts the session and greets the client.
func (c *conn) open() error {
	if err := c.srv.admit(); err != nil {
		return err
	}
	s, err := c.srv.cfg.Backend.Open(c.ctx, c.start)
	if err != nil {
		c.srv.leave()
		e := c.pgError(err)
		e.Severity = "FATAL"
		return &fatalError{e}
	}
	c.sess = s
	c.log = c.log.With("user", c.start.User, "db", c.start.Database)
	if t, ok := s.(Terminable); ok {
		t.OnTerminate(func() { c.interrupt(shuttingDown(), true) })
	}
	if l, ok := s.(Listener); ok {
		l.OnNotify(c.notified)
	}
	c.out.send(&pgproto3.AuthenticationOk{})
	statuses := s.ParameterStatuses()
	for _, p := range statuses {
		if p[0] == "client_encoding" {
			c.encodeAs(p[1])
		}
	}
	c.greet(statuses)
	pid, secret := s.Key()
	c.out.send(&pgproto3.BackendKeyData{ProcessID: uint32(pid), SecretKey: binary.BigEndian.AppendUint32(nil, secret)})
	return c.ready()
}

// reports are the settings that PostgreSQL 15 reports at start, in its order,
// with the values for those that the session does not name.
var reports = []status{
	{"application_name", ""},
	{"client_encoding", "UTF8"},
	{"DateStyle", "ISO, MDY"},
	{"default_transaction_read_only", "off"},
	{"in_hot_standby", "off"},
	{"integer_datetimes", "on"},
	{"IntervalStyle", "postgres"},
	{"is_superuser", "on"},
	{"server_encoding", "UTF8"},
	{"server_version", "15.0"},
	{"session_authorization", ""},
	{"standard_conforming_strings", "on"},
	{"TimeZone", "UTC"},
}

func (c *conn) greet(have [][2]string) {
	c.reported = map[string]string{}
	values := map[string]string{"application_name": c.start.Params["application_name"], "session_authorization": c.start.User}
	known := map[string]bool{}
	for _, h := range have {
		values[h[0]] = h[1]
	}
	for _, r := range reports {
		v, ok := values[r.name]
		if !ok {
			v = r.value
		}
		known[r.name] = true
		c.parameterStatus(r.name, v)
	}
	for _, h := range have {
		if !known[h[0]] {
			c.parameterStatus(h[0], h[1])
		}
	}
}

// parameterStatus tells the client a value, unless it knows it already.
func (c *conn) parameterStatus(name, value string) {
	if v, ok := c.reported[name]; ok && v == value {
		return
	}
	c.reported[name] = value
	pos := c.out.begin('S')
	c.out.text(name)
	c.out.text(value)
	c.out.finish(pos)
}

// ready sends what waits for the end of a statement or pipeline, then
// ReadyForQuery.
func (c *conn) ready() error {
	if t, ok := c.sess.(SocketTuner); ok {
		if o := t.SocketOptions(); o != c.socket {
			c.tune(o)
		}
	}
	if c.news.Load() && c.sess.TxStatus() == 'I' {
		c.notify()
	}
	for _, p := range c.pending {
		c.parameterStatus(p.name, p.value)
	}
	c.pending = c.pending[:0]
	c.out.buf = append(c.out.buf, 'Z', 0, 0, 0, 5, c.sess.TxStatus())
	return c.out.flush()
}
