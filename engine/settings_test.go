package engine

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

func TestNormalise(t *testing.T) {
	reg := newRegistry()
	for _, tt := range []struct{ name, in, want, code string }{
		{"statement_timeout", "0", "0", ""},
		{"statement_timeout", "5s", "5s", ""},
		{"statement_timeout", "5000", "5s", ""},
		{"statement_timeout", "90s", "90s", ""},
		{"statement_timeout", "60000", "1min", ""},
		{"statement_timeout", "12345", "12345ms", ""},
		{"statement_timeout", "1.5 min", "90s", ""},
		{"statement_timeout", "1h", "1h", ""},
		{"statement_timeout", "abc", "", `22023 invalid value for parameter "statement_timeout": "abc"`},
		{"statement_timeout", "5 parsecs", "", `22023 invalid value for parameter "statement_timeout": "5 parsecs"`},
		{"statement_timeout", "-1", "", `22023 -1 ms is outside the valid range for parameter "statement_timeout" (0 .. 2147483647)`},
		{"work_mem", "64MB", "64MB", ""},
		{"work_mem", "1024", "1MB", ""},
		{"work_mem", "1GB", "1GB", ""},
		{"work_mem", "63kB", "", `22023 63 kB is outside the valid range for parameter "work_mem" (64 .. 2147483647)`},
		{"extra_float_digits", "3", "3", ""},
		{"extra_float_digits", "4", "", `22023 4 is outside the valid range for parameter "extra_float_digits" (-15 .. 3)`},
		{"jit", "TRUE", "on", ""},
		{"jit", "n", "off", ""},
		{"jit", "maybe", "", `22023 parameter "jit" requires a Boolean value`},
		{"bytea_output", "ESCAPE", "escape", ""},
		{"bytea_output", "base64", "", `22023 invalid value for parameter "bytea_output": "base64"`},
		{"client_encoding", "utf-8", "UTF8", ""},
		{"client_encoding", "'utf-8'", "UTF8", ""},
		{"client_encoding", "NOPE", "", `22023 invalid value for parameter "client_encoding": "NOPE"`},
		{"TimeZone", "europe/berlin", "Europe/Berlin", ""},
		{"TimeZone", "2", "<+02>-02", ""},
		{"TimeZone", "-3.5", "<-03:30>+03:30", ""},
		{"TimeZone", "utc", "UTC", ""},
		{"TimeZone", "Mars/Olympus", "", `22023 invalid value for parameter "TimeZone": "Mars/Olympus"`},
		{"DateStyle", "ISO", "ISO, MDY", ""},
		{"DateStyle", "sql, dmy", "SQL, DMY", ""},
		{"DateStyle", "German", "German, DMY", ""},
		{"DateStyle", "ISO, SQL", "", `22023 invalid value for parameter "DateStyle": "ISO, SQL"`},
		{"paimon.insert_mode", "strict", "strict", ""},
		{"synchronous_commit", "true", "on", ""},
	} {
		got, err := reg.find(tt.name).normalise(tt.in)
		code := ""
		if err != nil {
			c, _ := pgerr.CodeOf(err)
			code = c.String() + " " + err.Error()
		}
		if got != tt.want || code != tt.code {
			t.Errorf("%s = %q: got %q %q, want %q %q", tt.name, tt.in, got, code, tt.want, tt.code)
		}
	}
}

// TestDefaultsNormal: every default must be in the form that SHOW prints.
func TestDefaultsNormal(t *testing.T) {
	reg := newRegistry()
	for i := range reg.list {
		s := &reg.list[i]
		if s.Doc == "" || s.Category == "" {
			t.Errorf("%s has no documentation or category", s.Name)
		}
		if s.Kind == KindInt && s.Min > s.number(s.Default) {
			t.Errorf("%s: default %s below the minimum", s.Name, s.Default)
		}
		got, err := s.normalise(s.Default)
		if err != nil || got != s.Default {
			t.Errorf("%s: default %q is %q (%v)", s.Name, s.Default, got, err)
		}
	}
}

// TestSettingsNeeded: what clients SHOW and SET must exist.
func TestSettingsNeeded(t *testing.T) {
	reg := newRegistry()
	for _, n := range strings.Fields(`server_version server_version_num server_encoding client_encoding application_name DateStyle
		IntervalStyle TimeZone extra_float_digits standard_conforming_strings bytea_output search_path transaction_isolation
		default_transaction_isolation transaction_read_only default_transaction_read_only default_transaction_deferrable statement_timeout
		lock_timeout idle_in_transaction_session_timeout idle_session_timeout client_min_messages max_index_keys max_identifier_length
		is_superuser session_authorization role lc_collate lc_ctype lc_messages lc_monetary row_security synchronize_seqscans jit
		enable_seqscan enable_hashjoin password_encryption in_hot_standby integer_datetimes ssl work_mem xmloption check_function_bodies
		default_table_access_method default_tablespace paimon.fresh_reads paimon.scan_version paimon.insert_mode paimon.default_bucket
		paimon.unenforced_constraints paimon.multi_table_commit paimon.version`) {
		if reg.find(n) == nil {
			t.Errorf("setting %s is missing", n)
		}
	}
}

func TestSettingsTransactions(t *testing.T) {
	s := newSettings(newRegistry())
	get := func(n string) string { v, _ := s.get(n); return v }
	set := func(n, v string, local bool) {
		t.Helper()
		if err := s.set(n, v, local); err != nil {
			t.Fatal(err)
		}
	}
	want := func(n, v string) {
		t.Helper()
		if got := get(n); got != v {
			t.Fatalf("%s is %q, want %q", n, got, v)
		}
	}
	s.changes()
	s.begin()
	set("TimeZone", "Asia/Tokyo", false)
	want("timezone", "Asia/Tokyo")
	s.savepoint()
	set("timezone", "Europe/Paris", true)
	want("TIMEZONE", "Europe/Paris")
	s.rollbackTo(0)
	want("timezone", "Asia/Tokyo")
	set("timezone", "Europe/Paris", true)
	s.end(true)
	want("timezone", "Asia/Tokyo")
	if c := s.changes(); len(c) != 1 || c[0] != [2]string{"TimeZone", "Asia/Tokyo"} {
		t.Fatalf("changes: %v", c)
	}
	s.begin()
	set("timezone", "UTC", false)
	if loc := s.use().loc.String(); loc != "UTC" {
		t.Fatalf("location %s", loc)
	}
	s.end(false)
	want("timezone", "Asia/Tokyo")
	if loc := s.use().loc.String(); loc != "Asia/Tokyo" {
		t.Fatalf("location %s after rollback", loc)
	}
	if err := s.reset("timezone", false); err != nil {
		t.Fatal(err)
	}
	want("timezone", "UTC")
	set("my.custom", "1", false)
	want("my.custom", "1")
	for name, code := range map[string]pgerr.Code{
		"nope": pgerr.UndefinedObject, "server_version": pgerr.CantChangeRuntimeParam, "max_connections": pgerr.CantChangeRuntimeParam,
		"paimon.nope": pgerr.InvalidName, "a.b-c": pgerr.InvalidName,
	} {
		if err := s.set(name, "1", false); !pgerr.Is(err, code) {
			t.Errorf("set %s: %v, want %s", name, err, code)
		}
	}
	s.resetAll()
	want("timezone", "UTC")
}

func TestSplitNames(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want string
		ok   bool
	}{
		{`"$user", public`, "$user|public", true},
		{`A, "B c" ,d`, "a|B c|d", true},
		{`"a""b"`, `a"b`, true},
		{``, "", true},
		{`a,`, "", false},
		{`"a`, "", false},
		{`a b`, "", false},
	} {
		got, ok := splitNames(tt.in)
		if ok != tt.ok || ok && strings.Join(got, "|") != tt.want {
			t.Errorf("%q: %v %v", tt.in, got, ok)
		}
	}
}

var rewrite = flag.Bool("rewrite", false, "write generated files anew")

// TestSettingsDoc: docs/settings.md is what the list says. -rewrite writes it.
func TestSettingsDoc(t *testing.T) {
	var b bytes.Buffer
	WriteSettings(&b)
	const name = "../docs/settings.md"
	if *rewrite {
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b.Bytes()) {
		t.Errorf("%s is old: go test ./engine -run TestSettingsDoc -rewrite", name)
	}
}
