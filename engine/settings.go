package engine

import (
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// Scope says when a setting may change. PostgreSQL's words, in pg_settings.
type Scope uint8

// The scopes, from fixed to free.
const (
	ScopeInternal     Scope = iota // never: a fact about the server
	ScopeStart                     // with the server: flag, environment or file
	ScopeReload                    // server-wide, not by a session
	ScopeSuperBackend              // by a superuser who connects, then fixed
	ScopeSuper                     // SET, by superusers
	ScopeSession                   // SET
)

// String returns the word that pg_settings.context shows.
func (s Scope) String() string {
	switch s {
	case ScopeInternal:
		return "internal"
	case ScopeStart:
		return "postmaster"
	case ScopeReload:
		return "sighup"
	case ScopeSuperBackend:
		return "superuser-backend"
	case ScopeSuper:
		return "superuser"
	}
	return "user"
}

// SettingKind is the type of a setting's value.
type SettingKind uint8

// The kinds. pg_settings.vartype has a word for each.
const (
	KindString SettingKind = iota
	KindBool
	KindInt
	KindReal
	KindEnum
)

// String returns the word that pg_settings.vartype shows.
func (k SettingKind) String() string {
	return [...]string{"string", "bool", "integer", "real", "enum"}[k]
}

// Setting describes one setting: the row of the list that feeds SET, SHOW,
// pg_settings, flags and documentation.
type Setting struct {
	Name    string // as SHOW prints it
	Kind    SettingKind
	Unit    string // ms, s, min, kB, B or "": what a bare number means
	Default string // in the form that SHOW prints
	Scope   Scope
	Min     int64
	Max     int64
	// MinReal and MaxReal are the bounds of a real one; both 0 = none.
	MinReal, MaxReal float64
	Enum             []string // the values that are listed in errors
	Hidden           []string // further spellings that are accepted; a=b is kept as b
	// Unlisted ones are in neither SHOW ALL nor pg_settings.
	Unlisted bool
	// Ignored: PostgreSQL's, accepted and without effect here.
	Ignored bool
	// Report: clients are told of changes by ParameterStatus.
	Report   bool
	Category string
	// Doc is one sentence.
	Doc string

	// check normalises a string value; nil keeps it. It returns an error that
	// only needs to say more than `invalid value for parameter`.
	check func(v string) (string, error)
	// list: several values may be given, joined by commas; quote says that each
	// is an identifier.
	list, quote bool
}

const maxInt = 1<<31 - 1

var (
	isolationLevels = []string{"serializable", "repeatable read", "read committed", "read uncommitted"}
	messageLevels   = []string{"debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"}
)

// Categories, in PostgreSQL's words where it has them.
const (
	catClient  = "Client Connection Defaults / Statement Behavior"
	catLocale  = "Client Connection Defaults / Locale and Formatting"
	catPreset  = "Preset Options"
	catConn    = "Connections and Authentication / Connection Settings"
	catAuth    = "Connections and Authentication / Authentication"
	catMem     = "Resource Usage / Memory"
	catPlan    = "Query Tuning / Planner Method Configuration"
	catCost    = "Query Tuning / Planner Cost Constants"
	catGeqo    = "Query Tuning / Genetic Query Optimizer"
	catPlanO   = "Query Tuning / Other Planner Options"
	catLog     = "Reporting and Logging / What to Log"
	catCompat  = "Version and Platform Compatibility / Previous PostgreSQL Versions"
	catWrite   = "Write-Ahead Log / Settings"
	catStats   = "Customized Options"
	catPaimon  = "Paimon / Reading and Writing"
	catPaimonX = "Paimon / Execution"
)

// optimizerRules are the planner's rules that a session may turn off; the setting
// is paimon.rule_<name>.
var optimizerRules = planner.Rules()

func baseSettings() []Setting {
	b := func(name, def string, scope Scope, cat, doc string) Setting {
		return Setting{Name: name, Kind: KindBool, Default: def, Scope: scope, Category: cat, Doc: doc}
	}
	i := func(name, def string, scope Scope, min, max int64, unit, cat, doc string) Setting {
		return Setting{Name: name, Kind: KindInt, Default: def, Scope: scope, Min: min, Max: max, Unit: unit, Category: cat, Doc: doc}
	}
	s := func(name, def string, scope Scope, cat, doc string) Setting {
		return Setting{Name: name, Kind: KindString, Default: def, Scope: scope, Category: cat, Doc: doc}
	}
	e := func(name, def string, scope Scope, enum []string, cat, doc string) Setting {
		return Setting{Name: name, Kind: KindEnum, Default: def, Scope: scope, Enum: enum, Category: cat, Doc: doc}
	}
	r := func(name, def string, scope Scope, min, max float64, cat, doc string) Setting {
		return Setting{Name: name, Kind: KindReal, Default: def, Scope: scope, MinReal: min, MaxReal: max, Category: cat, Doc: doc}
	}
	unlisted := func(x Setting) Setting { x.Unlisted = true; return x }
	report := func(x Setting) Setting { x.Report = true; return x }
	checked := func(x Setting, f func(string) (string, error)) Setting { x.check = f; return x }

	list := []Setting{
		i("authentication_timeout", "1min", ScopeReload, 1, 600, "s", catAuth, "The time that a client may take from connecting to being let in."),
		i("client_connection_check_interval", "0", ScopeSession, 0, maxInt, "ms", catConn, "How long a statement runs before the server looks whether its client is still there; 0 means 200ms here."),
		i("deadlock_timeout", "1s", ScopeSuper, 1, maxInt, "ms", "Lock Management", "Accepted and ignored: deadlocks are found at once."),
		report(s("application_name", "", ScopeSession, catLog, "Sets the application name to be reported in statistics and logs.")),
		e("backslash_quote", "safe_encoding", ScopeSession, []string{"safe_encoding", "on", "off"}, catCompat, `Sets whether "\'" is allowed in string literals.`),
		e("bytea_output", "hex", ScopeSession, []string{"escape", "hex"}, catClient, "Sets the output format for bytea."),
		b("check_function_bodies", "on", ScopeSession, catClient, "Accepted and ignored: there are no functions to check."),
		report(checked(s("client_encoding", "UTF8", ScopeSession, catLocale, "Sets the client's character set encoding."), checkEncoding)),
		e("client_min_messages", "notice", ScopeSession, messageLevels, catClient, "Sets the message levels that are sent to the client."),
		e("constraint_exclusion", "partition", ScopeSession, []string{"partition", "on", "off"}, catPlanO, "Accepted and ignored."),
		r("cursor_tuple_fraction", "0.1", ScopeSession, 0, 1, catPlanO, "Accepted and ignored."),
		report(checked(Setting{Name: "DateStyle", Default: "ISO, MDY", Scope: ScopeSession, Category: catLocale, list: true,
			Doc: "Sets the display format for date and time values."}, nil)),
		s("default_table_access_method", "heap", ScopeSession, catClient, "Accepted and ignored: every table is a Paimon table."),
		s("default_tablespace", "", ScopeSession, catClient, "Accepted and ignored: there are no tablespaces."),
		s("default_text_search_config", "pg_catalog.simple", ScopeSession, catLocale, "Accepted and ignored."),
		e("default_toast_compression", "pglz", ScopeSession, []string{"pglz", "lz4"}, catClient, "Accepted and ignored."),
		b("default_transaction_deferrable", "off", ScopeSession, catClient, "Sets the default deferrable status of new transactions."),
		e("default_transaction_isolation", "read committed", ScopeSession, isolationLevels, catClient, "Sets the transaction isolation level of each new transaction."),
		report(b("default_transaction_read_only", "off", ScopeSession, catClient, "Sets the default read-only status of new transactions.")),
		b("default_with_oids", "off", ScopeSession, catCompat, "Accepted and ignored."),
		i("effective_cache_size", "4GB", ScopeSession, 1, maxInt, "8kB", catCost, "Accepted and ignored."),
		b("escape_string_warning", "on", ScopeSession, catCompat, "Accepted and ignored."),
		i("extra_float_digits", "1", ScopeSession, -15, 3, "", catLocale, "Sets the number of digits displayed for floating-point values."),
		b("exit_on_error", "off", ScopeSession, "Error Handling", "Accepted and ignored."),
		i("from_collapse_limit", "8", ScopeSession, 1, maxInt, "", catPlanO, "Accepted and ignored."),
		i("gin_fuzzy_search_limit", "0", ScopeSession, 0, maxInt, "", "Client Connection Defaults / Other Defaults", "Accepted and ignored."),
		i("geqo_threshold", "12", ScopeSession, 2, maxInt, "", catGeqo, "Accepted and ignored."),
		b("geqo", "on", ScopeSession, catGeqo, "Accepted and ignored."),
		i("idle_in_transaction_session_timeout", "0", ScopeSession, 0, maxInt, "ms", catClient, "Ends a session that is idle within a transaction for this long; 0 turns it off."),
		i("idle_session_timeout", "0", ScopeSession, 0, maxInt, "ms", catClient, "Ends a session that is idle outside of a transaction for this long; 0 turns it off."),
		report(b("in_hot_standby", "off", ScopeInternal, catPreset, "Whether the server is a standby; always off.")),
		report(b("integer_datetimes", "on", ScopeInternal, catPreset, "Whether binary timestamps are integers; always on.")),
		report(e("IntervalStyle", "postgres", ScopeSession, []string{"postgres", "postgres_verbose", "sql_standard", "iso_8601"}, catLocale, "Sets the display format for interval values.")),
		report(unlisted(b("is_superuser", "on", ScopeInternal, catPreset, "Whether the session's user is a superuser."))),
		b("jit", "off", ScopeSession, catPlanO, "Accepted and ignored: there is no JIT compiler."),
		i("join_collapse_limit", "8", ScopeSession, 1, maxInt, "", catPlanO, "Accepted and ignored."),
		s("lc_collate", "C", ScopeInternal, catPreset, "The collation of the database; text compares by bytes."),
		s("lc_ctype", "C.UTF-8", ScopeInternal, catPreset, "The character classification of the database."),
		s("lc_messages", "C", ScopeSuper, catLocale, "Accepted and ignored: messages are in English."),
		s("lc_monetary", "C", ScopeSession, catLocale, "Accepted and ignored."),
		s("lc_numeric", "C", ScopeSession, catLocale, "Accepted and ignored."),
		s("lc_time", "C", ScopeSession, catLocale, "Accepted and ignored."),
		s("listen_addresses", "localhost", ScopeStart, catConn, "The address that the server listens on."),
		b("lo_compat_privileges", "off", ScopeSuper, catCompat, "Accepted and ignored."),
		i("lock_timeout", "0", ScopeSession, 0, maxInt, "ms", catClient, "Sets how long a statement waits for a lock; 0 waits without limit."),
		b("log_connections", "off", ScopeSuperBackend, catLog, "Logs each connection: when it is received and when it is let in."),
		b("log_disconnections", "off", ScopeSuperBackend, catLog, "Logs the end of each session, with how long it was there."),
		i("log_min_duration_statement", "-1", ScopeSuper, -1, maxInt, "ms", "Reporting and Logging / When to Log", "Logs statements that run at least this long, without their constants; 0 logs all, -1 none."),
		e("log_statement", "none", ScopeSuper, []string{"none", "ddl", "mod", "all"}, catLog, "Logs statements of a kind when they begin, without their constants."),
		i("maintenance_work_mem", "64MB", ScopeSession, 1024, maxInt, "kB", catMem, "Accepted and ignored."),
		i("max_connections", "100", ScopeStart, 1, 262143, "", catConn, "Sets the maximum number of concurrent connections."),
		i("max_identifier_length", "63", ScopeInternal, 63, 63, "", catPreset, "The maximum length of identifiers, in bytes."),
		i("max_index_keys", "32", ScopeInternal, 32, 32, "", catPreset, "The maximum number of columns of an index."),
		i("max_memory", "0", ScopeStart, 0, 1<<52, "B", catMem, "The memory that all queries together may use. Unless set, half of the machine's. Caches come on top, each with a part of it as its bound: pages of files an eighth; tables for lookups by key an eighth, at most 1GB; manifests an eighth and folded rows a sixteenth, at most 512MB; indexes of keys (dynamic buckets) a sixteenth and file indexes a thirty-second, at most 256MB; deletion vectors, the rows that they leave and what merges come to a sixty-fourth each, at most 64MB."),
		i("max_parallel_workers_per_gather", "0", ScopeSession, 0, 1024, "", catPlanO, "Workers per query; 0 uses every CPU."),
		i("max_prepared_transactions", "0", ScopeStart, 0, 262143, "", catMem, "Two-phase commit is not offered: always 0."),
		i("max_stack_depth", "1024", ScopeSession, 64, 100000, "", catMem, "How deep expressions and queries may nest."),
		e("password_encryption", "scram-sha-256", ScopeSession, []string{"md5", "scram-sha-256"}, catAuth, "How passwords are kept; only scram-sha-256 verifiers are made."),
		i("pg_stat_statements.max", "5000", ScopeStart, 100, 1<<30, "", catStats, "The most statements that pg_stat_statements has; those called least go first."),
		e("pg_stat_statements.track", "top", ScopeSuper, []string{"none", "top", "all"}, catStats, "Which statements pg_stat_statements counts; all is the same as top, because there are no functions with statements in them."),
		b("pg_stat_statements.track_utility", "on", ScopeSuper, catStats, "Whether pg_stat_statements counts statements other than SELECT, INSERT, UPDATE, DELETE and MERGE."),
		e("plan_cache_mode", "auto", ScopeSession, []string{"auto", "force_generic_plan", "force_custom_plan"}, catPlanO, "Accepted and ignored."),
		i("port", "5432", ScopeStart, 1, 65535, "", catConn, "The TCP port that the server listens on."),
		b("quote_all_identifiers", "off", ScopeSession, catCompat, "Accepted and ignored."),
		r("random_page_cost", "4", ScopeSession, 0, math.MaxFloat64, catCost, "Accepted and ignored."),
		unlisted(s("role", "none", ScopeSession, catClient, "The current role.")),
		b("row_security", "on", ScopeSession, catClient, "Accepted and ignored: there is no row security."),
		{Name: "search_path", Default: `"$user", public`, Scope: ScopeSession, Category: catClient, list: true, quote: true,
			Doc: "Sets the schemas that unqualified names are looked for in."},
		r("seq_page_cost", "1", ScopeSession, 0, math.MaxFloat64, catCost, "Accepted and ignored."),
		report(s("server_encoding", "UTF8", ScopeInternal, catPreset, "The server's character set encoding.")),
		report(s("server_version", "", ScopeInternal, catPreset, "The server's version.")),
		i("server_version_num", "150000", ScopeInternal, 150000, 150000, "", catPreset, "The server's version as an integer."),
		report(unlisted(s("session_authorization", "", ScopeSession, catClient, "The session's user."))),
		e("session_replication_role", "origin", ScopeSuper, []string{"origin", "replica", "local"}, catClient, "Accepted and ignored."),
		i("shared_buffers", "128MB", ScopeStart, 16, 1<<30-1, "8kB", catMem, "Accepted and ignored."),
		e("sql_dialect", "postgres", ScopeSession, []string{"postgres"}, catPaimon, "The grammar of the session's statements."),
		b("ssl", "off", ScopeStart, "Connections and Authentication / SSL", "Whether the server offers TLS."),
		report(b("standard_conforming_strings", "on", ScopeSession, catCompat, `Backslashes in '...' literals are plain; always on.`)),
		i("statement_timeout", "0", ScopeSession, 0, maxInt, "ms", catClient, "Cancels any statement that takes longer; 0 turns it off."),
		e("synchronous_commit", "on", ScopeSession, []string{"local", "remote_write", "remote_apply", "on", "off"}, catWrite, "Accepted and ignored: every commit is durable."),
		b("synchronize_seqscans", "on", ScopeSession, catCompat, "Accepted and ignored."),
		i("tcp_keepalives_count", "0", ScopeSession, 0, maxInt, "", catConn, "How many TCP keepalives may be lost before the connection counts as dead; 0 takes the server's 4."),
		i("tcp_keepalives_idle", "0", ScopeSession, 0, maxInt, "s", catConn, "How long a connection is silent before a TCP keepalive is sent; 0 takes the server's minute."),
		i("tcp_keepalives_interval", "0", ScopeSession, 0, maxInt, "s", catConn, "The time between TCP keepalives that are not answered; 0 takes the server's 15 seconds."),
		i("tcp_user_timeout", "0", ScopeSession, 0, maxInt, "ms", catConn, "How long sent data may stay unacknowledged before the connection is closed; 0 takes the system's."),
		s("temp_tablespaces", "", ScopeSession, catClient, "Accepted and ignored."),
		report(checked(s("TimeZone", "UTC", ScopeSession, catLocale, "Sets the time zone for displaying and interpreting time stamps."), checkTimeZone)),
		s("timezone_abbreviations", "Default", ScopeSession, catLocale, "Accepted and ignored."),
		b("trace_notify", "off", ScopeSession, "Developer Options", "Accepted and ignored."),
		b("transaction_deferrable", "off", ScopeSession, catClient, "Whether the current transaction is deferrable."),
		e("transaction_isolation", "read committed", ScopeSession, isolationLevels, catClient, "The current transaction's isolation level."),
		b("transaction_read_only", "off", ScopeSession, catClient, "Whether the current transaction is read-only."),
		b("transform_null_equals", "off", ScopeSession, "Version and Platform Compatibility / Other Platforms and Clients", "Accepted and ignored."),
		i("work_mem", "4MB", ScopeSession, 64, maxInt, "kB", catMem, "The memory that one query may use; one that needs more fails. Unless set, a quarter of max_memory, at least 64MB."),
		e("xmlbinary", "base64", ScopeSession, []string{"base64", "hex"}, catClient, "Accepted and ignored."),
		e("xmloption", "content", ScopeSession, []string{"content", "document"}, catClient, "Accepted and ignored."),

		b("paimon.server_files", "off", ScopeStart, catPaimon, "Whether superusers may COPY to and from files of the server's machine."),
		i("paimon.copy_max_line", "1GB", ScopeSession, 1024, 1<<30, "B", catPaimon, "The longest line of COPY FROM, or field of its binary format."),
		i("paimon.default_bucket", "1", ScopeSession, -1, 1<<20, "", catPaimon, "The bucket option written out for new primary-key tables that name none."),
		b("paimon.fresh_reads", "on", ScopeSession, catPaimon, "Reads level-0 rows of deletion-vector and first-row tables too; off gives the batch view of other engines."),
		e("paimon.insert_mode", "upsert", ScopeSession, []string{"upsert", "strict"}, catPaimon, "What INSERT does with an existing key: merge it, or raise 23505."),
		b("paimon.maintenance", "on", ScopeStart, catPaimon, "Compacts tables that the server writes and expires their snapshots in the background."),
		i("paimon.maintenance_rate", "0", ScopeStart, 0, maxInt, "kB", catPaimon, "The most that background compactions write per second; 0 sets no limit."),
		s("paimon.maintenance_tables", "", ScopeStart, catPaimon, "Tables that are maintained although the server does not write them: schema.table, with * and ?, divided by commas."),
		i("paimon.maintenance_workers", "1", ScopeStart, 1, 64, "", catPaimon, "How many tables are maintained at once."),
		e("paimon.multi_table_commit", "allow", ScopeSession, []string{"allow", "error"}, catPaimon, "Whether a transaction may write several tables, whose commits a crash can part."),
		s("paimon.scan_version", "", ScopeSession, catPaimon, "A tag or snapshot that the whole session reads; empty reads the present."),
		i("paimon.snapshot_poll_interval", "2s", ScopeReload, 0, maxInt, "ms", catPaimon, "How often tables are looked at for snapshots of other processes while a session listens to paimon_snapshot; 0 announces those of this server only."),
		e("paimon.unenforced_constraints", "warn", ScopeSession, []string{"warn", "error", "ignore"}, catPaimon, "What to do with constraints that are kept but not enforced."),
		i("paimon.vector_size", "2048", ScopeSession, 1, 65536, "", catPaimonX, "The rows of a batch."),
		s("paimon.version", "", ScopeInternal, catPreset, "The version of paimon-sql."),
		s("paimon.warehouse", "", ScopeInternal, catPreset, "The warehouse that the server opened."),
		i("paimon.workers", "0", ScopeSession, 0, 1024, "", catPaimonX, "Workers per query; 0 uses every CPU."),
	}
	for _, n := range []string{"async_append", "bitmapscan", "gathermerge", "group_by_reordering", "hashagg", "hashjoin", "incremental_sort", "indexonlyscan",
		"indexscan", "material", "memoize", "mergejoin", "nestloop", "parallel_append", "parallel_hash", "partition_pruning",
		"partitionwise_aggregate", "partitionwise_join", "seqscan", "sort", "tidscan"} {
		def := "on"
		if strings.HasPrefix(n, "partitionwise") {
			def = "off"
		}
		list = append(list, b("enable_"+n, def, ScopeSession, catPlan, "Accepted and ignored."))
	}
	have := map[string]bool{}
	for i := range list {
		have[strings.ToLower(list[i].Name)] = true
	}
	for _, x := range postgresSettings() {
		if !have[strings.ToLower(x.Name)] {
			list = append(list, x)
		}
	}
	for _, n := range optimizerRules {
		list = append(list, b("paimon.rule_"+n, "on", ScopeSession, catPlan, "Turns the optimiser rule "+n+" off and on."))
	}
	for k := range list {
		switch strings.ToLower(list[k].Name) {
		case "datestyle":
			list[k].check = func(v string) (string, error) { return checkDateStyle("ISO, MDY", v) }
		case "standard_conforming_strings":
			list[k].check = func(v string) (string, error) {
				if v != "on" {
					return "", fmt.Errorf("only on is supported")
				}
				return v, nil
			}
		case "application_name":
			list[k].check = func(v string) (string, error) { return cleanASCII(v), nil }
		case "client_min_messages":
			list[k].Hidden = []string{"debug=debug2", "info"}
		case "array_nulls":
			list[k].check = func(v string) (string, error) {
				if v != "on" {
					return "", fmt.Errorf("only on is supported")
				}
				return v, nil
			}
		case "paimon.workers":
			list[k].Max = int64(max(1024, cores.Count()))
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return strings.ToLower(list[i].Name) < strings.ToLower(list[j].Name) })
	return list
}

// settings_postgres.txt holds the settings of PostgreSQL 15 that sessions may SET, or
// that tools read, and that have no meaning here: name, type, context, unit, default
// and bounds in that unit, values, category, description.
//
//go:embed settings_postgres.txt
var postgresSettingsText string

// postgresSettings are accepted, checked and shown as PostgreSQL does, and ignored.
func postgresSettings() []Setting {
	var out []Setting
	for _, line := range strings.Split(strings.TrimRight(postgresSettingsText, "\n"), "\n") {
		f := strings.Split(line, "\t")
		x := Setting{Name: f[0], Unit: f[3], Default: f[4], Category: f[8], Doc: f[9], Scope: ScopeSession, Ignored: true}
		switch f[2] {
		case "superuser":
			x.Scope = ScopeSuper
		case "internal":
			x.Scope = ScopeInternal
		}
		for k := KindString; k <= KindEnum; k++ {
			if k.String() == f[1] {
				x.Kind = k
			}
		}
		switch x.Kind {
		case KindInt:
			x.Min, _ = strconv.ParseInt(f[5], 10, 64)
			x.Max, _ = strconv.ParseInt(f[6], 10, 64)
		case KindReal:
			x.MinReal, _ = strconv.ParseFloat(f[5], 64)
			x.MaxReal, _ = strconv.ParseFloat(f[6], 64)
		case KindEnum:
			x.Enum = strings.Split(f[7], ",")
		}
		if x.Kind == KindInt || x.Kind == KindReal {
			if v, err := x.normalise(x.Default); err == nil {
				x.Default = v
			}
		}
		out = append(out, x)
	}
	return out
}

// cleanASCII puts ? in the place of what is not printable ASCII.
func cleanASCII(v string) string {
	b := []byte(v)
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}

// reportOrder is the order of ParameterStatus messages at start.
var reportOrder = []string{
	"application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby", "integer_datetimes",
	"IntervalStyle", "is_superuser", "server_encoding", "server_version", "session_authorization",
	"standard_conforming_strings", "TimeZone",
}

// registry is the list of settings of one Engine. The list is immutable; the
// server's defaults that are laid over the built-in ones can be changed by lay.
type registry struct {
	list   []Setting
	byName map[string]*Setting // lower case
	laid   atomic.Pointer[laid]
}

// laid are the server's defaults. Immutable.
type laid struct {
	version uint64 // counts up with each change
	values  map[string]string
	source  map[string]string // where a value is from, in pg_settings' words
}

func newRegistry() *registry {
	r := &registry{list: baseSettings(), byName: map[string]*Setting{}}
	for i := range r.list {
		r.byName[strings.ToLower(r.list[i].Name)] = &r.list[i]
	}
	r.laid.Store(&laid{})
	return r
}

func (r *registry) find(name string) *Setting { return r.byName[strings.ToLower(name)] }

// def is the server's default of a setting.
func (r *registry) def(d *Setting) string {
	if v, ok := r.laid.Load().values[strings.ToLower(d.Name)]; ok {
		return v
	}
	return d.Default
}

// source says where def is from.
func (r *registry) source(d *Setting) string {
	if v, ok := r.laid.Load().source[strings.ToLower(d.Name)]; ok {
		return v
	}
	return "default"
}

// number is the server's default of an integer setting.
func (r *registry) number(name string) int64 {
	d := r.find(name)
	return d.number(r.def(d))
}

func (r *registry) version() uint64 { return r.laid.Load().version }

// setDefault changes the built-in default of a setting at start.
func (r *registry) setDefault(name, value string) error {
	s := r.find(name)
	if s == nil {
		return unknownSetting(name)
	}
	v, err := s.normalise(value)
	if err != nil {
		return err
	}
	s.Default = v
	return nil
}

// normal checks values, and returns them as SHOW prints them.
func (r *registry) normal(values map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		s := r.find(name)
		if s == nil {
			return nil, unknownSetting(name)
		}
		v, err := s.normalise(values[name])
		if err != nil {
			return nil, err
		}
		out[strings.ToLower(name)] = v
	}
	return out, nil
}

// lay replaces the server's defaults: of the configuration file, and those of the
// command line, which win.
func (r *registry) lay(file, line map[string]string) {
	l := &laid{version: r.version() + 1, values: map[string]string{}, source: map[string]string{}}
	for k, v := range file {
		l.values[k], l.source[k] = v, "configuration file"
	}
	for k, v := range line {
		l.values[k], l.source[k] = v, "command line"
	}
	r.laid.Store(l)
}

// Settings lists every setting, by name. For documentation and flags.
func Settings() []Setting { return baseSettings() }
