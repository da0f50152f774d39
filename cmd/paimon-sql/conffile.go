package main

import (
	"fmt"
	"net"
	"sort"
	"strings"

	"github.com/paimon-sql/paimon-sql/engine"
)

// confAliases are PostgreSQL's names for what flags say here.
var confAliases = map[string]string{
	"hba_file":                 "hba-file",
	"ssl_cert_file":            "tls-cert",
	"ssl_key_file":             "tls-key",
	"ssl_ca_file":              "tls-client-ca",
	"ssl_min_protocol_version": "tls-min-version",
	"max_memory":               "memory",
}

// confEntry is a line of a configuration file.
type confEntry struct {
	name, value string
	line        int
}

// parseConf reads the syntax of postgresql.conf: name = value, the = may be left out,
// values in '...' with two quotes for one, # to the end of the line.
func parseConf(text string) ([]confEntry, error) {
	var out []confEntry
	for n, line := range strings.Split(text, "\n") {
		s := strings.TrimSpace(line)
		if s == "" || s[0] == '#' {
			continue
		}
		i := 0
		for i < len(s) && (s[i] == '_' || s[i] == '.' || s[i] == '-' || s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z') {
			i++
		}
		e := confEntry{name: s[:i], line: n + 1}
		if i == 0 || i < len(s) && s[i] != ' ' && s[i] != '\t' && s[i] != '=' {
			return nil, fmt.Errorf("line %d: syntax error near %q", n+1, s[i:])
		}
		s = strings.TrimSpace(s[i:])
		s = strings.TrimSpace(strings.TrimPrefix(s, "="))
		var rest string
		var err error
		if e.value, rest, err = confValue(s); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
		if rest = strings.TrimSpace(rest); rest != "" && rest[0] != '#' {
			return nil, fmt.Errorf("line %d: syntax error near %q", n+1, rest)
		}
		out = append(out, e)
	}
	return out, nil
}

// confValue reads a value and returns what follows it.
func confValue(s string) (value, rest string, err error) {
	if s == "" || s[0] == '#' {
		return "", "", fmt.Errorf("a value is missing")
	}
	if s[0] != '\'' {
		i := strings.IndexAny(s, " \t#")
		if i < 0 {
			i = len(s)
		}
		return s[:i], s[i:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			if c := strings.IndexByte("ntrbf", s[i]); c >= 0 {
				b.WriteByte("\n\t\r\b\f"[c])
			} else {
				b.WriteByte(s[i])
			}
		case s[i] == '\'' && i+1 < len(s) && s[i+1] == '\'':
			b.WriteByte('\'')
			i++
		case s[i] == '\'':
			return b.String(), s[i+1:], nil
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", fmt.Errorf("a quoted value does not end")
}

// readConf sorts the entries of a file: flags by name, and settings under settings.
// The last of two entries with one name counts.
func (fs *flags) readConf(name, text string) error {
	list, err := parseConf(text)
	if err != nil {
		return usagef("configuration file %s: %v", name, err)
	}
	known := map[string]bool{}
	for _, s := range engine.Settings() {
		known[strings.ToLower(s.Name)] = true
	}
	settings := map[string]any{}
	var host, port string
	for _, e := range list {
		key := strings.ToLower(e.name)
		flag := strings.ReplaceAll(key, "_", "-")
		if a := confAliases[key]; a != "" {
			flag = a
		}
		switch {
		case key == "listen_addresses":
			host = e.value
		case key == "port":
			port = e.value
		case fs.Lookup(flag) != nil && flag != "config" && flag != "check-config" && flag != "set":
			fs.file[flag] = strings.TrimPrefix(e.value, map[bool]string{true: "TLSv"}[flag == "tls-min-version"])
		case key == "ssl":
			// It follows from ssl_cert_file; off is refused where that is there.
			settings["ssl"] = e.value
		case known[strings.ReplaceAll(key, "-", "_")]:
			settings[strings.ReplaceAll(key, "-", "_")] = e.value
		default:
			return usagef("configuration file %s: line %d: unrecognized configuration parameter %q", name, e.line, e.name)
		}
	}
	if v, ok := settings["ssl"]; ok {
		delete(settings, "ssl")
		on := strings.EqualFold(fmt.Sprint(v), "on") || fmt.Sprint(v) == "true"
		if _, cert := fs.file["tls-cert"]; cert != on {
			return usagef("configuration file %s: ssl and ssl_cert_file do not go together", name)
		}
	}
	if host != "" || port != "" {
		if _, both := fs.file["listen"]; both {
			return usagef("configuration file %s: listen says what listen_addresses and port say", name)
		}
		if host == "*" {
			host = "0.0.0.0"
		}
		if host == "" {
			host = "127.0.0.1"
		}
		if port == "" {
			port = "5432"
		}
		if strings.Contains(host, ",") {
			return usagef("configuration file %s: listen_addresses takes one address", name)
		}
		fs.file["listen"] = net.JoinHostPort(host, port)
	}
	fs.file["settings"] = settings
	return nil
}

// changedFlags lists the flags whose values differ, by name.
func changedFlags(a, b *flags) []string {
	var out []string
	for _, name := range a.names() {
		if a.value(name) != b.value(name) {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}
