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
	opt  Options
	conn *pgconn.PgConn
}

// RunFile runs one file on a connection of its own.
func RunFile(ctx context.Context, path string, opt Options) (Result, error) {
	recs, err := ParseFile(path)
	if err != nil {
		return Result{}, err
	}
	if opt.Timeout == 0 {
		opt.Timeout = 30 * time.Second
	}
	r := &runner{opt: opt}
	defer r.close()
	if err := r.open(ctx); err != nil {
		return Result{}, err
	}
	return r.run(ctx, path, recs), nil
}

func (r *runner) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.opt.Timeout)
	defer cancel()
	c, err := pgconn.Connect(ctx, r.opt.DSN)
	if err != nil {
		return err
	}
	r.conn = c
	for _, s := range r.opt.Setup {
		if _, err := c.Exec(ctx, s).ReadAll(); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

func (r *runner) close() {
	if r.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		r.conn.Close(ctx) //nolint:errcheck // the file is done
		r.conn = nil
	}
}

// ask sends SQL and reads everything that comes back; of several results the
// last one counts.
func (r *runner) ask(ctx context.Context, sql string) answer {
	if r.conn == nil || r.conn.IsClosed() {
		if err := r.open(ctx); err != nil {
			return answer{lost: err}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.opt.Timeout)
	defer cancel()
	var a answer
	var err error
	if r.opt.Mode == Simple {
		m := r.conn.Exec(ctx, sql)
		for m.NextResult() {
			a = read(m.ResultReader())
		}
		err = m.Close()
	} else {
		a = read(r.conn.ExecParams(ctx, sql, nil, nil, nil, nil))
		err = a.lost
		a.lost = nil
	}
	if err == nil {
		return a
	}
	var pe *pgconn.PgError
	if errors.As(err, &pe) && !r.conn.IsClosed() {
		return answer{err: pe}
	}
	r.close()
	return answer{lost: err}
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
		a := r.ask(ctx, rec.SQL)
		if a.err != nil && r.opt.Refusals && a.err.Code == "0A000" && !(rec.Error && matches(rec.Pattern, a.err.Code, a.err.Message)) {
			if m := created.FindStringSubmatch(rec.SQL); m != nil {
				n := strings.ToLower(strings.Trim(m[1], `"`))
				refused[n[strings.LastIndexByte(n, '.')+1:]] = true
			}
			res.Refused++
			res.Refusals = append(res.Refusals, Failure{File: path, Line: rec.Line, SQL: rec.SQL, Why: a.err.Message, Code: a.err.Code})
			continue
		}
		why := judge(rec, a, wise, sort, r.opt.Types)
		if why == "" {
			res.Passed++
			continue
		}
		res.Failed++
		f := Failure{File: path, Line: rec.Line, SQL: rec.SQL, Why: why}
		if a.err != nil {
			f.Code = a.err.Code
		}
		res.Failures = append(res.Failures, f)
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
