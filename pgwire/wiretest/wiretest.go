// Package wiretest is a client that knows frames and nothing more, and the
// transcripts that tests of the protocol are written in.
package wiretest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Protocol30 is the version of start-up messages.
const Protocol30 = 3 << 16

// Client is a client that knows frames and nothing more.
type Client struct {
	t  testing.TB
	NC net.Conn // with a deadline of half a minute
	br *bufio.Reader
	// PID and Secret are those of BackendKeyData.
	PID, Secret uint32
	names       map[uint32]string // process ids that are shown by name; nil = none
}

// Dial connects; the connection is closed when the test ends.
func Dial(t testing.TB, addr string) *Client {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
	return &Client{t: t, NC: nc, br: bufio.NewReader(nc)}
}

// Login sends a start-up message and reads up to ReadyForQuery.
func (c *Client) Login(params ...string) []string {
	c.t.Helper()
	if params == nil {
		params = []string{"user", "u"}
	}
	c.Write(StartupPacket(Protocol30, params...))
	return c.Until("ReadyForQuery", "ErrorResponse")
}

// Write sends bytes as they are.
func (c *Client) Write(b []byte) {
	c.t.Helper()
	if _, err := c.NC.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// StartupPacket makes a start-up message of names and values.
func StartupPacket(code uint32, params ...string) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 4), code)
	for _, p := range params {
		b = append(append(b, p...), 0)
	}
	b = append(b, 0)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	return b
}

// Frame makes a message.
func Frame(typ byte, body ...byte) []byte {
	b := append([]byte{typ}, binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))...)
	return append(b, body...)
}

// Next reads one message and shows it; io.EOF is "closed".
func (c *Client) Next() string {
	c.t.Helper()
	var head [5]byte
	if _, err := io.ReadFull(c.br, head[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return "closed"
		}
		var oe *net.OpError
		if errors.As(err, &oe) && !oe.Timeout() {
			return "closed"
		}
		c.t.Fatal("read: ", err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	if _, err := io.ReadFull(c.br, body); err != nil {
		c.t.Fatal("read: ", err)
	}
	if head[0] == 'K' && len(body) == 8 {
		c.PID, c.Secret = binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
	}
	return c.named(show(head[0], body))
}

var origin = regexp.MustCompile(`from (\d{5,})\.`)

// placed puts t1, t2, ... in the place of the OIDs of a transcript's own tables.
func placed(m string, tables map[string]string) string {
	return origin.ReplaceAllStringFunc(m, func(x string) string {
		oid := x[5 : len(x)-1]
		if len(oid) == 5 && oid < "16384" {
			return x
		}
		if tables[oid] == "" {
			tables[oid] = fmt.Sprintf("t%d", len(tables)+1)
		}
		return "from " + tables[oid] + "."
	})
}

var process = regexp.MustCompile(`([Pp]rocess |^NotificationResponse )(\d+)`)

// named puts names in the place of process ids, which differ from run to run.
func (c *Client) named(m string) string {
	if len(c.names) == 0 {
		return m
	}
	return process.ReplaceAllStringFunc(m, func(x string) string {
		i := strings.LastIndexByte(x, ' ') + 1
		pid, _ := strconv.ParseUint(x[i:], 10, 32)
		if n, ok := c.names[uint32(pid)]; ok {
			return x[:i] + n
		}
		return x
	})
}

// Until reads up to a message whose name is one of names, or the end.
func (c *Client) Until(names ...string) []string {
	c.t.Helper()
	var out []string
	for {
		m := c.Next()
		out = append(out, m)
		name, _, _ := strings.Cut(m, " ")
		if name == "closed" {
			return out
		}
		for _, n := range names {
			if n == name {
				return out
			}
		}
	}
}

func show(typ byte, b []byte) string {
	be := binary.BigEndian
	str := func() string {
		i := bytes.IndexByte(b, 0)
		s := string(b[:i])
		if !utf8.ValidString(s) {
			s = strconv.QuoteToASCII(s)
		}
		b = b[i+1:]
		return s
	}
	value := func() string {
		n := int32(be.Uint32(b))
		b = b[4:]
		if n < 0 {
			return "NULL"
		}
		v := b[:n]
		b = b[n:]
		for _, x := range v {
			if x < ' ' || x > '~' {
				return "x" + hex.EncodeToString(v)
			}
		}
		if n > 100 {
			return fmt.Sprintf("(%d bytes)", n)
		}
		return strconv.Quote(string(v))
	}
	switch typ {
	case '1':
		return "ParseComplete"
	case '2':
		return "BindComplete"
	case '3':
		return "CloseComplete"
	case 'n':
		return "NoData"
	case 's':
		return "PortalSuspended"
	case 'I':
		return "EmptyQueryResponse"
	case 'Z':
		return "ReadyForQuery " + string(b)
	case 'C':
		return "CommandComplete " + str()
	case 'S':
		return "ParameterStatus " + str() + "=" + str()
	case 'K':
		return fmt.Sprintf("BackendKeyData pid secret:%d", len(b)-4)
	case 'A':
		return fmt.Sprintf("NotificationResponse %d %s %q", be.Uint32(b), func() string { b = b[4:]; return str() }(), str())
	case 'R':
		return fmt.Sprintf("Authentication %d", be.Uint32(b))
	case 'v':
		s := fmt.Sprintf("NegotiateProtocolVersion %d", be.Uint32(b))
		n := be.Uint32(b[4:])
		b = b[8:]
		for range n {
			s += " " + str()
		}
		return s
	case 't':
		s := "ParameterDescription"
		for b = b[2:]; len(b) > 0; b = b[4:] {
			s += fmt.Sprintf(" %d", be.Uint32(b))
		}
		return s
	case 'T':
		s := "RowDescription"
		for b = b[2:]; len(b) > 0; b = b[18:] {
			s += " " + str()
			s += fmt.Sprintf(":%d", be.Uint32(b[6:]))
			s += fmt.Sprintf("(len %d mod %d from %d.%d format %d)", int16(be.Uint16(b[10:])), int32(be.Uint32(b[12:])),
				be.Uint32(b), be.Uint16(b[4:]), be.Uint16(b[16:]))
		}
		return s
	case 'D':
		s := "DataRow"
		n := be.Uint16(b)
		b = b[2:]
		for range n {
			s += " " + value()
		}
		return s
	case 'E', 'N':
		s := "ErrorResponse"
		if typ == 'N' {
			s = "NoticeResponse"
		}
		for b[0] != 0 {
			k := b[0]
			b = b[1:]
			v := str()
			switch k {
			case 'V':
			case 'F', 'L', 'R':
				if v == "" {
					s += " empty " + string(k)
				}
			case 'S', 'C', 'M':
				s += " " + v
			default:
				s += fmt.Sprintf(" %c=%s", k, v)
			}
		}
		return s
	case 'G', 'H', 'd', 'c':
		return fmt.Sprintf("%c %x", typ, b)
	}
	return fmt.Sprintf("unknown %q %x", typ, b)
}

// EncodeLine turns one line of a transcript into a frontend message:
//
//	Q text, q "text as in Go"            Query
//	P name | text | oid oid              Parse
//	B portal | statement | formats | values | formats
//	     values: NULL, a word (text), x with hexadecimal digits (bytes)
//	D S name, D P name, C S name, C P name, E portal rows, H, S, X
//	d "text as in Go", c, f message      CopyData, CopyDone, CopyFail
//	raw hexadecimal digits
func EncodeLine(line string) ([]byte, error) {
	cmd, rest, _ := strings.Cut(line, " ")
	cstr := func(s string) []byte { return append([]byte(s), 0) }
	parts := strings.Split(rest, "|")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	part := func(i int) string {
		if i < len(parts) {
			return parts[i]
		}
		return ""
	}
	shorts := func(s string) []byte {
		w := strings.Fields(s)
		b := binary.BigEndian.AppendUint16(nil, uint16(len(w)))
		for _, x := range w {
			n, _ := strconv.Atoi(x)
			b = binary.BigEndian.AppendUint16(b, uint16(n))
		}
		return b
	}
	switch cmd {
	case "Q":
		return Frame('Q', cstr(rest)...), nil
	case "P":
		b := append(cstr(part(0)), cstr(part(1))...)
		w := strings.Fields(part(2))
		b = binary.BigEndian.AppendUint16(b, uint16(len(w)))
		for _, x := range w {
			n, _ := strconv.Atoi(x)
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
		return Frame('P', b...), nil
	case "B":
		b := append(cstr(part(0)), cstr(part(1))...)
		b = append(b, shorts(part(2))...)
		w := strings.Fields(part(3))
		b = binary.BigEndian.AppendUint16(b, uint16(len(w)))
		for _, x := range w {
			v := []byte(x)
			if x == "NULL" {
				b = binary.BigEndian.AppendUint32(b, 0xffffffff)
				continue
			}
			if h, ok := strings.CutPrefix(x, "x"); ok {
				var err error
				if v, err = hex.DecodeString(h); err != nil {
					return nil, err
				}
			}
			b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
			b = append(b, v...)
		}
		return Frame('B', append(b, shorts(part(4))...)...), nil
	case "D", "C":
		kind, name, _ := strings.Cut(rest, " ")
		return Frame(cmd[0], append([]byte(kind), cstr(name)...)...), nil
	case "E":
		name, rows, _ := strings.Cut(rest, " ")
		if name == "-" {
			name = ""
		}
		n, _ := strconv.Atoi(rows)
		return Frame('E', binary.BigEndian.AppendUint32(cstr(name), uint32(n))...), nil
	case "H", "S", "X":
		return Frame(cmd[0]), nil
	case "q": // Query, "text as in Go"
		b, err := strconv.Unquote(rest)
		return Frame('Q', cstr(b)...), err
	case "F": // FunctionCall, the body in hexadecimal digits
		b, err := hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
		return Frame('F', b...), err
	case "d": // CopyData
		b, err := strconv.Unquote(rest)
		return Frame('d', []byte(b)...), err
	case "c":
		return Frame('c'), nil
	case "f":
		return Frame('f', cstr(rest)...), nil
	case "raw":
		return hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
	}
	return nil, fmt.Errorf("unknown command %q", line)
}

// Play runs a transcript on a connection and returns it with the answers that
// came: blocks of frontend messages, "----" and the answers, divided by blank
// lines. Answers are read up to ReadyForQuery, or to what a line "until ..."
// names ("until -" reads nothing).
func Play(t testing.TB, c *Client, src string) string {
	return PlayAll(t, func(...string) *Client { return c }, src)
}

// PlayAll is Play with several connections, which open makes of further start-up
// parameters, logged in. A block that begins with "as NAME" is another
// connection's; words after the name are parameters of its first use, name=value
// with + for a blank. Without such a line it is that of the connection "a". In the
// answers process ids have these names, and the OIDs of tables are numbered.
//
// A line "wait QUERY" asks on a connection of its own until the query answers t:
// for what another connection does in the meantime. "cancel NAME" sends a
// CancelRequest for a connection.
func PlayAll(t testing.TB, open func(params ...string) *Client, src string) string {
	names, conns := map[uint32]string{}, map[string]*Client{}
	conn := func(name string, params ...string) *Client {
		c := conns[name]
		if c == nil {
			c = open(params...)
			c.names = names
			if c.PID != 0 {
				names[c.PID] = name
			}
			conns[name] = c
		}
		return c
	}
	var out strings.Builder
	ended, tables := false, map[string]string{}
	defer func() {
		if !ended {
			t.Log("the transcript came to this point:\n", out.String())
		}
	}()
	for _, block := range strings.Split(strings.TrimRight(src, "\n"), "\n\n") {
		sent, _, _ := strings.Cut(block, "\n----")
		fmt.Fprintln(&out, sent)
		var msg []byte
		until := []string{"ReadyForQuery"}
		comment := true
		var c *Client
		for _, line := range strings.Split(sent, "\n") {
			if strings.HasPrefix(line, "#") || line == "" {
				continue
			}
			cmd, rest, _ := strings.Cut(line, " ")
			switch cmd {
			case "as":
				w := strings.Fields(rest)
				var params []string
				for _, p := range w[1:] {
					k, v, _ := strings.Cut(p, "=")
					params = append(params, k, strings.ReplaceAll(v, "+", " "))
				}
				c = conn(w[0], params...)
				continue
			case "wait":
				await(t, open(), rest)
				continue
			case "cancel":
				x := conn(rest)
				k := Dial(t, x.NC.RemoteAddr().String())
				b := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 16}, 80877102)
				k.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, x.PID), x.Secret))
				k.Until("closed")
				continue
			}
			comment = false
			if cmd == "until" {
				until = strings.Fields(rest)
				continue
			}
			b, err := EncodeLine(line)
			if err != nil {
				t.Fatal(err)
			}
			msg = append(msg, b...)
		}
		if !comment {
			if c == nil {
				c = conn("a")
			}
			if len(msg) > 0 {
				c.Write(msg)
			}
			fmt.Fprintln(&out, "----")
			if until[0] != "-" {
				for _, m := range c.Until(until...) {
					fmt.Fprintln(&out, placed(m, tables))
				}
			}
		}
		fmt.Fprintln(&out)
	}
	ended = true
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// await asks until the query's first answer is t.
func await(t testing.TB, c *Client, sql string) {
	t.Helper()
	defer c.NC.Close() //nolint:errcheck // it has said what it had to
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c.Write(Frame('Q', append([]byte(sql), 0)...))
		var got []string
		for _, m := range c.Until("ReadyForQuery", "closed") {
			if m == `DataRow "t"` {
				return
			}
			got = append(got, m)
		}
		if time.Now().After(end) {
			t.Fatalf("%s is not true: %q", sql, got)
		}
	}
}

// Diff shows the blocks of two runs of a transcript that differ: the messages
// sent, and the answers of both with the lines that differ marked.
func Diff(want, got string) string {
	w, g := strings.Split(want, "\n\n"), strings.Split(got, "\n\n")
	var out strings.Builder
	for i := range max(len(w), len(g)) {
		var a, b string
		if i < len(w) {
			a = strings.TrimRight(w[i], "\n")
		}
		if i < len(g) {
			b = strings.TrimRight(g[i], "\n")
		}
		if a == b {
			continue
		}
		sent, x, _ := strings.Cut(a, "\n----\n")
		_, y, _ := strings.Cut(b, "\n----\n")
		fmt.Fprintf(&out, "%s\n", sent)
		marked(&out, "-", x, y)
		marked(&out, "+", y, x)
	}
	return out.String()
}

func marked(out *strings.Builder, mark, text, other string) {
	has := map[string]bool{}
	for _, l := range strings.Split(other, "\n") {
		has[l] = true
	}
	for _, l := range strings.Split(text, "\n") {
		if !has[l] {
			fmt.Fprintf(out, "%s %s\n", mark, l)
		}
	}
}

// ReadByte reads one byte, as the answer to an encryption request.
func (c *Client) ReadByte() (byte, error) { return c.br.ReadByte() }
