package sqllogic

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Mode is the protocol that statements are sent by.
type Mode uint8

// The modes.
const (
	Simple   Mode = iota
	Extended      // Parse, Bind, Describe, Execute; text results
)

func (m Mode) String() string { return [...]string{"simple", "extended"}[m] }

// Options say how files are run.
type Options struct {
	DSN     string
	Mode    Mode
	Timeout time.Duration // per statement; 0 = 30 s
	// Refusals makes 0A000 something else than a failure: the record counts as
	// refused, and later records that name a table whose CREATE was refused are
	// skipped.
	Refusals bool
	// Only, when set, skips the records that it does not want.
	Only func(*Record) bool
	// Types checks the columns' types as well: I and R stand for what PostgreSQL
	// would have.
	Types bool
	// Plain sends CREATE TABLE without table options and partitions: for PostgreSQL.
	Plain bool
	// Setup runs first on every connection.
	Setup []string
}

// Failure is a record that did not hold.
type Failure struct {
	File string
	Line int
	SQL  string
	Why  string
	Code string // SQLSTATE of an error that came instead
}

// Result counts the records of a file or of several.
type Result struct {
	Passed, Failed, Refused, Skipped int
	Failures                         []Failure
	Refusals                         []Failure
}

// Add adds up.
func (r *Result) Add(o Result) {
	r.Passed += o.Passed
	r.Failed += o.Failed
	r.Refused += o.Refused
	r.Skipped += o.Skipped
	r.Failures = append(r.Failures, o.Failures...)
	r.Refusals = append(r.Refusals, o.Refusals...)
}

func (r Result) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d refused, %d skipped", r.Passed, r.Failed, r.Refused, r.Skipped)
}

// answer is what a server said to one record's SQL.
type answer struct {
	rows [][]Value
	cols []pgconn.FieldDescription
	tag  string
	err  *pgconn.PgError
	lost error // no answer: a time-out, a lost connection
}

type runner struct {
	opt   Options
	conns map[string]*pgconn.PgConn
	// waiting are the answers to come of records that block, by connection.
	waiting map[string]*pending
}

// pending is a record that waits for a lock.
type pending struct {
	rec    *Record
	answer chan answer
}

// RunFile runs one file on connections of its own.
func RunFile(ctx context.Context, path string, opt Options) (Result, error) {
	recs, err := ParseFile(path)
	if err != nil {
		return Result{}, err
	}
	r, err := newRunner(ctx, opt)
	if err != nil {
		return Result{}, err
	}
	defer r.close()
	return r.run(ctx, path, recs), nil
}

func newRunner(ctx context.Context, opt Options) (*runner, error) {
	if opt.Timeout == 0 {
		opt.Timeout = 30 * time.Second
	}
	r := &runner{opt: opt, conns: map[string]*pgconn.PgConn{}, waiting: map[string]*pending{}}
	_, err := r.open(ctx, "")
	return r, err
}

// open returns a connection, which it makes when there is none.
func (r *runner) open(ctx context.Context, name string) (*pgconn.PgConn, error) {
	if c := r.conns[name]; c != nil && !c.IsClosed() {
		return c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.opt.Timeout)
	defer cancel()
	c, err := pgconn.Connect(ctx, r.opt.DSN)
	if err != nil {
		return nil, err
	}
	r.conns[name] = c
	for _, s := range r.opt.Setup {
		if _, err := c.Exec(ctx, s).ReadAll(); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	return c, nil
}

func (r *runner) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, c := range r.conns {
		c.Close(ctx) //nolint:errcheck // the file is done
	}
	clear(r.conns)
}

// monitor is the connection that looks at who waits.
const monitor = "\x00monitor"

// block sends a record that has to wait for a lock, and returns when it does. It
// returns why when it does not.
func (r *runner) block(ctx context.Context, rec *Record) string {
	c, err := r.open(ctx, rec.Conn)
	if err != nil {
		return "no connection: " + err.Error()
	}
	p := &pending{rec, make(chan answer, 1)}
	r.waiting[rec.Conn] = p
	go func() { p.answer <- r.ask(ctx, c, rec.SQL) }()
	m, err := r.open(ctx, monitor)
	if err != nil {
		return "no connection: " + err.Error()
	}
	look := fmt.Sprintf("SELECT 1 FROM pg_stat_activity WHERE pid = %d AND wait_event_type = 'Lock'", c.PID())
	for end := time.Now().Add(r.opt.Timeout); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if a := r.ask(ctx, m, look); len(a.rows) > 0 {
			return ""
		}
		if len(p.answer) > 0 {
			return "did not wait for a lock"
		}
	}
	return "does not wait for a lock"
}

// answer sends a record and returns what comes back.
func (r *runner) answer(ctx context.Context, rec *Record) answer {
	c, err := r.open(ctx, rec.Conn)
	if err != nil {
		return answer{lost: err}
	}
	if copies.MatchString(rec.SQL) {
		return r.copy(ctx, c, rec)
	}
	return r.ask(ctx, c, rec.SQL)
}

// copies are the statements whose data passes beside them.
var copies = regexp.MustCompile(`(?is)^\s*copy\s.*\b(from\s+stdin|to\s+stdout)\b`)

// copy runs COPY: a statement sends the lines below its ----, a query returns each
// line of what it gets as a row of one column.
func (r *runner) copy(ctx context.Context, c *pgconn.PgConn, rec *Record) answer {
	ctx, cancel := context.WithTimeout(ctx, r.opt.Timeout)
	defer cancel()
	var a answer
	var err error
	var tag pgconn.CommandTag
	if rec.Kind == Statement {
		var data string
		if len(rec.Want) > 0 {
			data = strings.Join(rec.Want, "\n") + "\n"
		}
		tag, err = c.CopyFrom(ctx, strings.NewReader(data), rec.SQL)
	} else {
		var out strings.Builder
		tag, err = c.CopyTo(ctx, &out, rec.SQL)
		for _, l := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
			a.rows = append(a.rows, []Value{&l})
		}
		a.cols = []pgconn.FieldDescription{{Name: "copy", DataTypeOID: 25}}
	}
	a.tag = tag.String()
	if err == nil {
		return a
	}
	var pe *pgconn.PgError
	if errors.As(err, &pe) && !c.IsClosed() {
		return answer{err: pe}
	}
	c.Close(ctx) //nolint:errcheck // it is lost already
	return answer{lost: err}
}

// ask sends SQL and reads everything that comes back; of several results the
// last one counts.
func (r *runner) ask(ctx context.Context, c *pgconn.PgConn, sql string) answer {
	ctx, cancel := context.WithTimeout(ctx, r.opt.Timeout)
	defer cancel()
	if r.opt.Plain {
		sql = plain(sql)
	}
	var a answer
	var err error
	if r.opt.Mode == Simple {
		m := c.Exec(ctx, sql)
		for m.NextResult() {
			a = read(m.ResultReader())
		}
		err = m.Close()
	} else {
		a = read(c.ExecParams(ctx, sql, nil, nil, nil, nil))
		err = a.lost
		a.lost = nil
	}
	if err == nil {
		return a
	}
	var pe *pgconn.PgError
	if errors.As(err, &pe) && !c.IsClosed() {
		return answer{err: pe}
	}
	c.Close(ctx) //nolint:errcheck // it is lost already
	return answer{lost: err}
}

var (
	creates = regexp.MustCompile(`(?is)^\s*create\s+table\s`)
	options = regexp.MustCompile(`(?is)\s+(partitioned\s+by|with)\s*\([^()]*\)`)
)

// plain takes out of CREATE TABLE what PostgreSQL does not know.
func plain(sql string) string {
	if !creates.MatchString(sql) {
		return sql
	}
	return options.ReplaceAllString(sql, "")
}

func read(rr *pgconn.ResultReader) answer {
	var a answer
	a.cols = append(a.cols, rr.FieldDescriptions()...)
	for rr.NextRow() {
		vs := rr.Values()
		row := make([]Value, len(vs))
		for i, v := range vs {
			if v != nil {
				s := string(v)
				row[i] = &s
			}
		}
		a.rows = append(a.rows, row)
	}
	a.cols = append(a.cols[:0], rr.FieldDescriptions()...)
	tag, err := rr.Close()
	a.tag = tag.String()
	a.lost = err
	return a
}

var (
	created  = regexp.MustCompile(`(?is)^\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unlogged\s+|recursive\s+|materialized\s+)*(?:table|view)\s+(?:if\s+not\s+exists\s+)?("?[\w.]+"?)`)
	affected = regexp.MustCompile(`(\d+)$`)
)

func (r *runner) run(ctx context.Context, path string, recs []Record) Result {
	var res Result
	wise, sort := false, "nosort"
	refused := map[string]bool{}
	settle := func(rec *Record, a answer) {
		if a.err != nil && r.opt.Refusals && a.err.Code == "0A000" && !(rec.Error && matches(rec.Pattern, a.err.Code, a.err.Message)) {
			if m := created.FindStringSubmatch(rec.SQL); m != nil {
				n := strings.ToLower(strings.Trim(m[1], `"`))
				refused[n[strings.LastIndexByte(n, '.')+1:]] = true
			}
			res.Refused++
			res.Refusals = append(res.Refusals, Failure{File: path, Line: rec.Line, SQL: rec.SQL, Why: a.err.Message, Code: a.err.Code})
			return
		}
		why := judge(rec, a, wise, sort, r.opt.Types)
		if why == "" {
			res.Passed++
			return
		}
		res.Failed++
		f := Failure{File: path, Line: rec.Line, SQL: rec.SQL, Why: why}
		if a.err != nil {
			f.Code = a.err.Code
		}
		res.Failures = append(res.Failures, f)
	}
	for i := range recs {
		rec := &recs[i]
		if rec.Skip {
			if rec.Kind == Statement || rec.Kind == Query {
				res.Skipped++
			}
			continue
		}
		switch rec.Kind {
		case Halt:
			return res
		case Control:
			w := strings.Fields(rec.SQL)
			if len(w) == 3 && w[0] == "control" {
				switch w[1] {
				case "resultmode":
					wise = w[2] == "rowwise"
				case "sortmode":
					sort = w[2]
				}
			}
			continue
		}
		if r.opt.Only != nil && !r.opt.Only(rec) {
			res.Skipped++
			continue
		}
		if r.opt.Refusals && names(rec.SQL, refused) {
			res.Skipped++
			continue
		}
		if p := r.waiting[rec.Conn]; p != nil {
			delete(r.waiting, rec.Conn)
			settle(p.rec, <-p.answer)
		}
		if rec.Blocks {
			if why := r.block(ctx, rec); why != "" {
				res.Failed++
				res.Failures = append(res.Failures, Failure{File: path, Line: rec.Line, SQL: rec.SQL, Why: why})
			}
			continue
		}
		settle(rec, r.answer(ctx, rec))
	}
	for _, p := range r.waiting {
		settle(p.rec, <-p.answer)
	}
	return res
}

// judge returns "" when the answer is the expected one.
func judge(rec *Record, a answer, wise bool, sort string, types bool) string {
	switch {
	case a.lost != nil:
		return "no answer: " + a.lost.Error()
	case rec.Error && a.err == nil:
		return "succeeded, an error was expected: " + rec.Pattern
	case rec.Error:
		if !matches(rec.Pattern, a.err.Code, a.err.Message) {
			return fmt.Sprintf("error %s: %s, expected %s", a.err.Code, a.err.Message, rec.Pattern)
		}
		return ""
	case a.err != nil:
		return fmt.Sprintf("error %s: %s", a.err.Code, a.err.Message)
	case rec.Kind == Query:
		if why := check(rec, a.rows, len(a.cols), wise, sort); why != "" {
			return why
		}
		if types {
			return checkTypes(rec.Types, a.cols)
		}
		return ""
	case rec.Count >= 0:
		m := affected.FindString(a.tag)
		if n, err := strconv.Atoi(m); err != nil || n != rec.Count {
			return fmt.Sprintf("tag %q, expected count %d", a.tag, rec.Count)
		}
	}
	return ""
}

func checkTypes(want string, cols []pgconn.FieldDescription) string {
	for i := range min(len(want), len(cols)) {
		t := byte('T')
		switch cols[i].DataTypeOID {
		case 20, 21, 23, 26:
			t = 'I'
		case 700, 701:
			t = 'R'
		}
		if want[i] != t {
			return fmt.Sprintf("column %d (%s) has type oid %d, %c expected", i+1, cols[i].Name, cols[i].DataTypeOID, want[i])
		}
	}
	return ""
}

var word = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*`)

// names reports whether SQL names one of the tables.
func names(sql string, tables map[string]bool) bool {
	if len(tables) == 0 {
		return false
	}
	for _, w := range word.FindAllString(sql, -1) {
		if tables[strings.ToLower(w)] {
			return true
		}
	}
	return false
}
