package engine

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones must not depend on the machine

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
)

// settings are one session's values: the registry's defaults, what the
// connection asked for at start, what SET changed, and what SET LOCAL changed
// until the transaction ends. The layers are immutable maps that are replaced,
// so that a savepoint is a copy of three pointers.
//
// Safe for concurrent use: functions read settings from worker goroutines.
type settings struct {
	reg *registry

	mu    sync.RWMutex
	start map[string]string // start-up parameters: what RESET goes back to
	// known are the names of the form a.b that were ever set: they stay, empty.
	known map[string]string // by name in lower case: as it was spelled first
	fixed map[string]string // values of this session for settings that are facts
	now   layers
	saved []layers // at BEGIN, then one per savepoint
	told  map[string]string
	// toldAt is the version of now when clients were last told of all, + 1, toldReg
	// that of the registry.
	toldAt, toldReg uint64
	memo            *derived // nil = compute again
	// starting: the connection's own parameters are being set.
	starting bool
	// stored: what ALTER ROLE and ALTER DATABASE keep is being set.
	stored bool
	// isSuper reports whether a user is a superuser: the setting is_superuser. It must
	// not ask for settings. nil = everybody is.
	isSuper func(user string) bool
	tx      txModes
}

type layers struct {
	session, local map[string]string
	version        uint64 // of the maps: counts up with every change
}

// txModes are the modes of the current transaction, shown as settings.
type txModes struct {
	active               bool
	isolation            string
	readOnly, deferrable bool
}

// derived are the values that statements need in typed form.
type derived struct {
	text             TextSettings
	style            *pgtext.Style
	loc              *time.Location
	path             []string
	statementTimeout time.Duration
	idleTimeout      time.Duration
	idleTxTimeout    time.Duration
	slowStatement    time.Duration // negative = off
	minMessages      int
	freshReads       bool
	scanVersion      string
	vectorSize       int
	workers          int
	lockTimeout      time.Duration
	strictInsert     bool  // paimon.insert_mode
	oneTableCommit   bool  // paimon.multi_table_commit = error
	copyMaxLine      int64 // bytes
	workMem          int64 // bytes
	maxDepth         int
	disabled         map[string]bool
	modes            txModes // of a transaction that begins
	socket           SocketOptions
	// meaning identifies the settings that change what a text means, for the
	// plan cache.
	meaning string
	reg     uint64 // version of the registry
	// logStatement is a level of log_statement; trackNone, trackUtility: what
	// pg_stat_statements leaves out, and takes in.
	logStatement            int
	trackNone, trackUtility bool
}

func newSettings(reg *registry) *settings {
	return &settings{reg: reg, start: map[string]string{}, fixed: map[string]string{}, told: map[string]string{}}
}

func asPG(err error, target **pgerr.Error) bool { return errors.As(err, target) }

// get returns the value of a setting as SHOW prints it. Names of the form a.b
// that nobody knows exist once they are set.
func (s *settings) get(name string) (string, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.value(strings.ToLower(name))
}

func (s *settings) value(key string) (string, bool) {
	if strings.HasPrefix(key, "transaction_") {
		switch key {
		case "transaction_isolation":
			if s.tx.active {
				return s.tx.isolation, true
			}
			key = "default_transaction_isolation"
		case "transaction_read_only":
			if s.tx.active {
				return onOff(s.tx.readOnly), true
			}
			key = "default_transaction_read_only"
		case "transaction_deferrable":
			if s.tx.active {
				return onOff(s.tx.deferrable), true
			}
			key = "default_transaction_deferrable"
		}
	}
	if key == "is_superuser" && s.isSuper != nil {
		user, _ := s.value("role")
		if user == "none" || user == "" {
			user, _ = s.value("session_authorization")
		}
		return onOff(s.isSuper(user)), true
	}
	for _, m := range []map[string]string{s.now.local, s.now.session, s.fixed, s.start} {
		if v, ok := m[key]; ok {
			return v, true
		}
	}
	if d := s.reg.byName[key]; d != nil {
		return s.reg.def(d), true
	}
	_, ok := s.known[key]
	return "", ok
}

// resetValue is what RESET goes back to.
func (s *settings) resetValue(key string) (string, bool) {
	for _, m := range []map[string]string{s.fixed, s.start} {
		if v, ok := m[key]; ok {
			return v, true
		}
	}
	if d := s.reg.byName[key]; d != nil {
		return s.reg.def(d), true
	}
	_, ok := s.known[key]
	return "", ok
}

// source says where a setting's value is from, as pg_settings.source does.
func (s *settings) source(d *Setting) string {
	key := strings.ToLower(d.Name)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, m := range []map[string]string{s.now.local, s.now.session} {
		if _, ok := m[key]; ok {
			return "session"
		}
	}
	if _, ok := s.start[key]; ok {
		return "client"
	}
	return s.reg.source(d)
}

// set changes a setting; local ends with the transaction. The value is that of
// SET or set_config: a list is one text.
func (s *settings) set(name, value string, local bool) error {
	value, err := s.checked(name, value)
	if err != nil {
		return err
	}
	key := strings.ToLower(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reg.byName[key] == nil && !has(s.known, key) {
		if s.known == nil {
			s.known = map[string]string{}
		}
		s.known[key] = name
	}
	s.put(key, value, local)
	return nil
}

// checked returns a value as it is kept, when the session may set it.
func (s *settings) checked(name, value string) (string, error) {
	key := strings.ToLower(name)
	d := s.reg.byName[key]
	if d == nil {
		return value, customName(name)
	}
	if err := s.settable(d); err != nil {
		return "", err
	}
	if key == "datestyle" {
		cur, _ := s.get(key)
		v, err := checkDateStyle(cur, value)
		if err != nil {
			return "", err
		}
		value = v
	}
	if key == "search_path" {
		if _, ok := splitNames(value); !ok {
			return "", invalidSetting(d.Name, value).WithDetail("List syntax is invalid.")
		}
	}
	return d.normaliseAs(name, value)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func (s *settings) put(key, value string, local bool) {
	switch key {
	case "transaction_isolation":
		s.tx.isolation = value
		return
	case "transaction_read_only":
		s.tx.readOnly = value == "on"
		return
	case "transaction_deferrable":
		s.tx.deferrable = value == "on"
		return
	}
	s.changed()
	with := func(m map[string]string) map[string]string {
		c := maps.Clone(m)
		if c == nil {
			c = map[string]string{}
		}
		c[key] = value
		return c
	}
	if local {
		s.now.local = with(s.now.local)
		return
	}
	s.now.session = with(s.now.session)
	s.now.local = without(s.now.local, key)
}

func without(m map[string]string, key string) map[string]string {
	if _, ok := m[key]; !ok {
		return m
	}
	c := maps.Clone(m)
	delete(c, key)
	return c
}

// reset undoes SET; local does so until the transaction ends.
func (s *settings) reset(name string, local bool) error {
	key := strings.ToLower(name)
	d := s.reg.byName[key]
	if d == nil {
		if err := customName(name); err != nil {
			return err
		}
	} else if err := s.settable(d); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if local || strings.HasPrefix(key, "transaction_") {
		v, _ := s.resetValue(key)
		s.put(key, v, true)
		return nil
	}
	s.changed()
	if d == nil { // a placeholder stays known
		s.put(key, s.start[key], false)
		return nil
	}
	s.now.session = without(s.now.session, key)
	s.now.local = without(s.now.local, key)
	return nil
}

func (s *settings) changed() {
	s.memo = nil
	s.now.version++
}

// resetAll is RESET ALL.
func (s *settings) resetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := map[string]string{}
	for _, k := range []string{"role", "session_authorization"} {
		if v, ok := s.now.session[k]; ok {
			keep[k] = v
		}
	}
	s.now.session, s.now.local = keep, nil
	s.changed()
}

// customName checks a name that the registry does not know.
func customName(name string) error {
	class, rest, ok := strings.Cut(name, ".")
	if !ok {
		return unknownSetting(name)
	}
	for _, p := range append([]string{class}, strings.Split(rest, ".")...) {
		if p == "" {
			return pgerr.New(pgerr.InvalidName, "invalid configuration parameter name %q", name).
				WithDetail("Custom parameter names must be two or more simple identifiers separated by dots.")
		}
		for i, c := range p {
			letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
			if !letter && (i == 0 || !(c >= '0' && c <= '9' || c == '$')) {
				return pgerr.New(pgerr.InvalidName, "invalid configuration parameter name %q", name).
					WithDetail("Custom parameter names must be two or more simple identifiers separated by dots.")
			}
		}
	}
	if strings.EqualFold(class, "paimon") {
		return pgerr.New(pgerr.InvalidName, "invalid configuration parameter name %q", name).
			WithDetail(`"paimon" is a reserved prefix.`)
	}
	return nil
}

func has(m map[string]string, key string) bool { _, ok := m[key]; return ok }

// settable says why a session may not change a setting now.
func (s *settings) settable(d *Setting) error {
	switch d.Scope {
	case ScopeInternal:
		return pgerr.New(pgerr.CantChangeRuntimeParam, "parameter %q cannot be changed", d.Name)
	case ScopeStart:
		return pgerr.New(pgerr.CantChangeRuntimeParam, "parameter %q cannot be changed without restarting the server", d.Name)
	case ScopeReload:
		return pgerr.New(pgerr.CantChangeRuntimeParam, "parameter %q cannot be changed now", d.Name)
	case ScopeSuperBackend, ScopeSuper:
		if s.stored {
			return nil // who stored it might
		}
		if d.Scope == ScopeSuperBackend && !s.starting {
			return pgerr.New(pgerr.CantChangeRuntimeParam, "parameter %q cannot be set after connection start", d.Name)
		}
		if v, _ := s.get("is_superuser"); v != "on" {
			return pgerr.New(pgerr.InsufficientPrivilege, "permission denied to set parameter %q", d.Name)
		}
	}
	return nil
}

// begin remembers the state that a rollback goes back to, and fixes the modes.
func (s *settings) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = append(s.saved[:0], s.now)
	if s.memo == nil {
		s.memo = s.derive()
	}
	s.tx = s.memo.modes
}

func (s *settings) modes() txModes {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tx
}

// savepoint remembers the state once more; rollbackTo goes back to the n-th
// (from 0) and keeps it; release forgets the n-th and later ones.
func (s *settings) savepoint() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = append(s.saved, s.now)
}

func (s *settings) rollbackTo(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restore(s.saved[n+1])
	s.saved = s.saved[:n+2]
}

func (s *settings) restore(l layers) {
	if l.version != s.now.version {
		v := s.now.version
		s.now = l
		s.now.version = v
		s.changed()
	}
}

func (s *settings) release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = s.saved[:n+1]
}

// failed undoes what was set since the last savepoint: PostgreSQL does so at the error,
// not at the ROLLBACK.
func (s *settings) failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.saved); n > 0 {
		s.restore(s.saved[n-1])
	}
}

// end closes the transaction.
func (s *settings) end(commit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !commit && len(s.saved) > 0 {
		s.restore(s.saved[0])
	}
	if len(s.now.local) > 0 {
		s.now.local = nil
		s.changed()
	}
	s.saved = s.saved[:0]
	s.tx = txModes{}
}

// changes returns the reported settings whose values clients have not been told
// yet, and takes them as told.
func (s *settings) changes() [][2]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	reg := s.reg.version()
	if s.toldAt == s.now.version+1 && s.toldReg == reg {
		return nil
	}
	s.toldAt, s.toldReg = s.now.version+1, reg
	var out [][2]string
	for _, n := range reportOrder {
		v, _ := s.value(strings.ToLower(n))
		if old, ok := s.told[n]; !ok || old != v {
			s.told[n] = v
			out = append(out, [2]string{n, v})
		}
	}
	return out
}

// use returns the typed values.
func (s *settings) use() *derived {
	reg := s.reg.version()
	s.mu.RLock()
	m := s.memo
	s.mu.RUnlock()
	if m != nil && m.reg == reg {
		return m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memo == nil || s.memo.reg != reg {
		s.memo = s.derive()
	}
	return s.memo
}

func (s *settings) derive() *derived {
	str := func(k string) string { v, _ := s.value(k); return v }
	num := func(k string) int64 { return s.reg.byName[k].number(str(k)) }
	ms := func(k string) time.Duration { return time.Duration(num(k)) * time.Millisecond }
	d := &derived{
		reg: s.reg.version(),
		text: TextSettings{
			TimeZone: str("timezone"), DateStyle: str("datestyle"), IntervalStyle: str("intervalstyle"),
			ByteaOutput: str("bytea_output"), ExtraFloatDigits: int(num("extra_float_digits")),
		},
		statementTimeout: ms("statement_timeout"),
		idleTimeout:      ms("idle_session_timeout"),
		idleTxTimeout:    ms("idle_in_transaction_session_timeout"),
		slowStatement:    ms("log_min_duration_statement"),
		lockTimeout:      ms("lock_timeout"),
		strictInsert:     str("paimon.insert_mode") == "strict",
		oneTableCommit:   str("paimon.multi_table_commit") == "error",
		copyMaxLine:      num("paimon.copy_max_line"),
		freshReads:       str("paimon.fresh_reads") == "on",
		scanVersion:      str("paimon.scan_version"),
		vectorSize:       int(num("paimon.vector_size")),
		workers:          int(num("paimon.workers")),
		workMem:          num("work_mem") << 10,
		maxDepth:         int(num("max_stack_depth")),
	}
	d.modes = txModes{active: true, isolation: str("default_transaction_isolation"), readOnly: str("default_transaction_read_only") == "on",
		deferrable: str("default_transaction_deferrable") == "on"}
	d.logStatement = slices.Index(s.reg.byName["log_statement"].Enum, str("log_statement"))
	d.trackNone, d.trackUtility = str("pg_stat_statements.track") == "none", str("pg_stat_statements.track_utility") == "on"
	d.socket = SocketOptions{
		KeepIdle: time.Duration(num("tcp_keepalives_idle")) * time.Second, KeepInterval: time.Duration(num("tcp_keepalives_interval")) * time.Second,
		KeepCount: int(num("tcp_keepalives_count")), UserTimeout: ms("tcp_user_timeout"), CheckInterval: ms("client_connection_check_interval"),
	}
	if _, loc, err := zone(d.text.TimeZone); err == nil {
		d.loc = loc
	} else {
		d.loc = time.UTC
	}
	dateStyle, dateOrder, _ := strings.Cut(d.text.DateStyle, ", ")
	d.style = &pgtext.Style{
		Location: d.loc, DateStyle: dateStyle, DateOrder: dateOrder, IntervalStyle: d.text.IntervalStyle,
		ByteaOutput: d.text.ByteaOutput, RoundFloats: d.text.ExtraFloatDigits <= 0, ExtraFloatDigits: d.text.ExtraFloatDigits,
	}
	for i, l := range messageLevels {
		if l == str("client_min_messages") {
			d.minMessages = i
		}
	}
	d.path, _ = splitNames(str("search_path"))
	var off strings.Builder
	for _, r := range optimizerRules {
		if str("paimon.rule_"+r) == "off" {
			if d.disabled == nil {
				d.disabled = map[string]bool{}
			}
			d.disabled[r] = true
			off.WriteString(r + ",")
		}
	}
	d.meaning = strings.Join([]string{str("search_path"), d.text.TimeZone, d.text.DateStyle, d.text.IntervalStyle, str("bytea_output"),
		str("extra_float_digits"), str("paimon.fresh_reads"), d.scanVersion, str("role"), str("session_authorization"), off.String(), str("sql_dialect"), str("max_stack_depth")}, "\x00")
	return d
}
