package pgwire

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// HBARule is one line of an access file in the format of PostgreSQL 15's
// pg_hba.conf: who may connect from where to what, and how he proves himself.
// The first rule that fits decides.
type HBARule struct {
	Line int
	// Type is local, host, hostssl, hostnossl, hostgssenc or hostnogssenc. There are
	// no Unix sockets here and no GSS: local and hostgssenc never fit.
	Type             string
	Databases, Users []HBAName
	// Address is all, samehost, samenet or an address without its prefix length,
	// Netmask its mask; both as pg_hba_file_rules shows them.
	Address, Netmask string
	Method           string
	Options          []string // name=value
	// Err says what is wrong with the line, in PostgreSQL's words; such a file is
	// not used.
	Err string

	prefix     netip.Prefix
	clientCert string // verify-ca, verify-full or ""
}

// HBAName is a database or user of a rule. Quoted words have no special meaning.
type HBAName struct {
	Name   string
	Quoted bool
}

// maxHBABytes bounds an access file.
const maxHBABytes = 4 << 20

// ReadHBA reads an access file. The error is that of the file, or names the first
// line that is wrong; the rules, with the wrong ones, come back all the same.
func ReadHBA(name string) ([]HBARule, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if st.Size() > maxHBABytes {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxHBABytes)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rules := ParseHBA(b)
	for _, r := range rules {
		if r.Err != "" {
			return rules, fmt.Errorf("%s, line %d: %s", name, r.Line, r.Err)
		}
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("%s contains no entries", name)
	}
	return rules, nil
}

// ParseHBA reads the lines of an access file.
func ParseHBA(b []byte) []HBARule {
	var out []HBARule
	lines := strings.Split(string(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))), "\n")
	for i := 0; i < len(lines); i++ {
		start, l := i+1, lines[i]
		for strings.HasSuffix(l, `\`) && i+1 < len(lines) {
			i++
			l = l[:len(l)-1] + lines[i]
		}
		fields, err := hbaFields(l)
		if len(fields) == 0 && err == "" {
			continue
		}
		r := HBARule{Line: start, Err: err}
		if err == "" {
			r.Err = r.parse(fields)
		}
		out = append(out, r)
	}
	return out
}

// hbaFields cuts a line at blanks, and fields at commas. # begins a comment; in
// double quotes everything is itself, and "" is a quote.
func hbaFields(l string) (fields [][]HBAName, problem string) {
	var field []HBAName
	comma := false // the field goes on behind blanks
	for i := 0; i < len(l); {
		switch c := l[i]; {
		case isBlank(c):
			i++
			continue
		case c == '#':
			i = len(l)
			continue
		case c == ',':
			comma = true
			i++
			continue
		}
		var t HBAName
		var w []byte
		quoted := false
		for i < len(l) && (quoted || !isBlank(l[i]) && l[i] != ',' && l[i] != '#') {
			if l[i] == '"' {
				if quoted && i+1 < len(l) && l[i+1] == '"' {
					w = append(w, '"')
					i++
				} else {
					quoted = !quoted
					t.Quoted = t.Quoted || len(w) == 0
				}
			} else {
				w = append(w, l[i])
			}
			i++
		}
		if quoted {
			return nil, "unterminated quoted string"
		}
		t.Name = string(w)
		if comma && field != nil {
			field = append(field, t)
			fields[len(fields)-1] = field
		} else {
			field = []HBAName{t}
			fields = append(fields, field)
		}
		comma = false
	}
	return fields, ""
}

// hbaUnsupported are PostgreSQL's methods that are not offered here.
var hbaUnsupported = map[string]string{
	"password": "the password would travel in clear text; use scram-sha-256",
	"gss":      "not supported by this build", "sspi": "not supported by this build", "ident": "not supported by this build",
	"peer": "not supported by this build", "ldap": "not supported by this build", "radius": "not supported by this build",
	"pam": "not supported by this build", "bsd": "not supported by this build",
}

func (r *HBARule) parse(f [][]HBAName) string {
	one := func(what string) (string, string) {
		if len(f) == 0 {
			return "", "end-of-line before " + what
		}
		if len(f[0]) > 1 {
			return "", "multiple values specified for " + what
		}
		v := f[0][0].Name
		f = f[1:]
		return v, ""
	}
	var problem string
	if r.Type, problem = one("connection type"); problem != "" {
		return problem
	}
	switch r.Type {
	case "local", "host", "hostssl", "hostnossl", "hostgssenc", "hostnogssenc":
	default:
		return fmt.Sprintf("invalid connection type \"%s\"", r.Type)
	}
	if len(f) == 0 {
		return "end-of-line before database specification"
	}
	r.Databases, f = f[0], f[1:]
	if len(f) == 0 {
		return "end-of-line before role specification"
	}
	r.Users, f = f[0], f[1:]
	for _, n := range append(append([]HBAName(nil), r.Databases...), r.Users...) {
		if !n.Quoted && strings.HasPrefix(n.Name, "@") {
			return fmt.Sprintf("files of names (\"%s\") are not supported", n.Name)
		}
	}
	if r.Type != "local" {
		addr, problem := one("IP address specification")
		if problem != "" {
			return problem
		}
		if problem = r.parseAddress(addr, func() (string, string) { return one("netmask specification") }); problem != "" {
			return problem
		}
	}
	if r.Method, problem = one("authentication method"); problem != "" {
		return problem
	}
	switch r.Method {
	case "trust", "reject", "scram-sha-256", "cert", "md5": // md5 finds a SCRAM verifier, and SCRAM is done
	default:
		if why, ok := hbaUnsupported[r.Method]; ok {
			return fmt.Sprintf("invalid authentication method \"%s\": %s", r.Method, why)
		}
		return fmt.Sprintf("invalid authentication method \"%s\"", r.Method)
	}
	if r.Method == "cert" {
		if r.Type != "hostssl" {
			return "cert authentication is only supported on hostssl connections"
		}
		r.clientCert = "verify-full"
	}
	for _, o := range f {
		for _, v := range o {
			if problem := r.option(v.Name); problem != "" {
				return problem
			}
		}
	}
	return ""
}

func (r *HBARule) parseAddress(addr string, mask func() (string, string)) string {
	r.Address = addr
	switch addr {
	case "all", "samehost", "samenet":
		return ""
	}
	host, bits, cidr := strings.Cut(addr, "/")
	ip, err := netip.ParseAddr(host)
	if err != nil || ip.Zone() != "" {
		return fmt.Sprintf("invalid IP address \"%s\": host names are not supported", host)
	}
	r.Address = ip.String()
	n := 0
	if cidr {
		p, err := netip.ParsePrefix(addr)
		if err != nil {
			return fmt.Sprintf("invalid CIDR mask in address \"%s\"", addr)
		}
		_ = bits
		n = p.Bits()
	} else {
		m, problem := mask()
		if problem != "" {
			return problem
		}
		ma, err := netip.ParseAddr(m)
		if err != nil {
			return fmt.Sprintf("invalid IP mask \"%s\"", m)
		}
		if ma.Is4() != ip.Is4() {
			return "IP address and mask do not match"
		}
		ones, end := 0, false
		for _, b := range ma.AsSlice() {
			for k := 7; k >= 0; k-- {
				set := b>>k&1 == 1
				if set && end {
					return fmt.Sprintf("invalid IP mask \"%s\"", m)
				}
				if set {
					ones++
				} else {
					end = true
				}
			}
		}
		n = ones
	}
	r.prefix = netip.PrefixFrom(ip, n)
	r.Netmask = netmask(ip, n)
	return ""
}

// netmask is a prefix length as a mask of ip's family.
func netmask(ip netip.Addr, bits int) string {
	b := ip.AsSlice()
	for i := range b {
		b[i] = 0
		for k := range 8 {
			if i*8+k < bits {
				b[i] |= 0x80 >> k
			}
		}
	}
	m, _ := netip.AddrFromSlice(b)
	return m.String()
}

func (r *HBARule) option(o string) string {
	name, value, ok := strings.Cut(o, "=")
	if !ok {
		return fmt.Sprintf("authentication option not in name=value format: %s", o)
	}
	if name != "clientcert" {
		return fmt.Sprintf("unrecognized authentication option name: \"%s\"", name)
	}
	if r.Type != "hostssl" {
		return "clientcert can only be configured for \"hostssl\" rows"
	}
	switch value {
	case "verify-full":
	case "verify-ca":
		if r.Method == "cert" {
			return "clientcert only accepts \"verify-full\" when using \"cert\" authentication"
		}
	default:
		return fmt.Sprintf("invalid value for clientcert: \"%s\"", value)
	}
	r.clientCert = value
	r.Options = append(r.Options, o)
	return ""
}
