package pgcopy

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

const (
	// blockRows is how many lines are split before their values are read.
	blockRows = 1024
	// batchBytes ends a batch of wide rows early.
	batchBytes = 8 << 20
)

// Config says what a Decoder reads.
type Config struct {
	// Options are from ParseOptions for COPY FROM.
	Options *Options
	// Relation is the table's name, for the context of errors.
	Relation string
	// Columns are those of the data, in its order; at least one.
	Columns types.Schema
	// Style reads dates and times; nil = the default.
	Style *pgtext.Style
	// Rows are those of a batch; 0 = 8,192.
	Rows int
	// MaxLine bounds a line, or a field of the binary format, in bytes; 0 = 1 GB.
	MaxLine int64
	// Account is charged for the window over the data once that is large, not for
	// the batches.
	Account *mem.Account
}

// Decoder turns the data of COPY FROM into batches. Errors are *pgerr.Error with
// PostgreSQL's code, words and context. After an error it must not be used. Not
// safe for concurrent use.
type Decoder struct {
	o        *Options
	relation string
	schema   types.Schema
	style    *pgtext.Style
	zone     *pgtext.Zone
	cols     []column
	src      source
	maxRows  int
	maxLine  int64

	exact bool // tests: every line takes the slow way
	eol   eol
	line  int64 // number of the line framed last, from 1
	begun bool  // the header has been dealt with
	ended bool  // nothing follows
	nl    finder
	cr    finder
	bs    finder
	qu    finder
	saved []byte // the raw line, where unescaping has spoilt it

	// spans are the fields of a block, column by column: field c of row i is
	// spans[c*blockRows+i].
	spans []span
	lines []int64 // of the batch's rows; nil in text format, where they are consecutive
	first int64   // line of the batch's first row
	rows  int     // in the batch
	block int     // the batch's rows before this block
	bytes int     // a measure of the batch's size
}

// span is where a field lies in the window; from is -1 for NULL.
type span struct{ from, to int32 }

var nullSpan = span{-1, -1}

// Rows are a batch and the lines that its rows were on.
type Rows struct {
	*vec.Batch
	first int64
	lines []int64
}

// Line returns the number of the line that row i was on, from 1.
func (r *Rows) Line(i int) int64 {
	if r.lines != nil {
		return r.lines[i]
	}
	return r.first + int64(i)
}

// NewDecoder makes a Decoder of the data that in yields up to io.EOF. Close frees
// what it has charged.
func NewDecoder(in io.Reader, c Config) *Decoder {
	d := &Decoder{
		o: c.Options, relation: c.Relation, schema: c.Columns, style: c.Style, maxRows: c.Rows, maxLine: c.MaxLine,
		src: source{in: in, account: c.Account, binary: c.Options.Format == Binary, latin1: c.Options.Encoding == Latin1 && c.Options.Format != Binary},
		nl:  finder{c: '\n', at: -1}, cr: finder{c: '\r', at: -1}, bs: finder{c: '\\', at: -1}, qu: finder{c: c.Options.Quote, at: -1},
	}
	if d.maxRows <= 0 {
		d.maxRows = 8192
	}
	d.maxRows = min(d.maxRows, vec.MaxRows)
	if d.maxLine <= 0 || d.maxLine > maxLine {
		d.maxLine = maxLine
	}
	if d.style == nil {
		d.style = &pgtext.Style{}
	}
	d.saved = []byte{} // an empty line has a text, too
	d.zone = pgtext.NewZone(d.style.Location)
	d.cols = make([]column, len(c.Columns))
	for i, f := range c.Columns {
		d.cols[i] = newColumn(f, c.Options)
	}
	if !d.src.binary {
		d.spans = make([]span, len(d.cols)*blockRows)
	}
	return d
}

// Close gives back what was charged to the account.
func (d *Decoder) Close() { d.src.close() }

// Next returns the next rows, nil at the end. The batch is the caller's.
func (d *Decoder) Next() (*Rows, error) {
	if d.src.binary {
		return d.nextBinary()
	}
	if !d.begun {
		if err := d.header(); err != nil {
			return nil, err
		}
		d.begun = true
	}
	if d.ended {
		return nil, nil
	}
	d.start()
	for d.rows < d.maxRows && d.bytes < batchBytes && !d.ended {
		if err := d.work(); err != nil {
			return nil, err
		}
	}
	return d.finish(), nil
}

// work splits and reads one block.
func (d *Decoder) work() error {
	from := d.src.r
	n, st, fail := d.split(min(blockRows, d.maxRows-d.rows))
	d.block = d.rows
	if err := d.values(n); err != nil {
		return err
	}
	d.rows += n
	d.bytes += d.src.r - from
	if fail != nil {
		return fail()
	}
	switch st {
	case frameMore:
		return d.more()
	case frameEnd, frameMarker:
		d.ended = true
		return d.drain()
	}
	return nil
}

// split finds the fields of up to most lines. fail, when not nil, makes the error
// of the line that follows them: it is called when their values have been read,
// since a wrong value in an earlier line comes first.
func (d *Decoder) split(most int) (n int, st frameState, fail func() error) {
	if d.o.Format == CSV {
		return d.splitCSV(most)
	}
	return d.splitText(most)
}

// more reads on after a line that is not whole.
func (d *Decoder) more() error {
	s := &d.src
	if s.bad != nil {
		d.line++
		return d.inLine(s.bad, nil)
	}
	have := int64(s.ok - s.r)
	if have > d.maxLine {
		d.line++
		return d.inLine(pgerr.New(pgerr.ProgramLimitExceeded, "out of memory").
			WithDetail("A line of the data is longer than %d bytes.", d.maxLine), nil)
	}
	moved, err := s.fill(int(min(max(2*have, readSize), d.maxLine+1)))
	d.moved(moved)
	if err != nil {
		d.line++
		return d.inLine(err, nil)
	}
	return nil
}

func (d *Decoder) moved(by int) {
	for _, f := range []*finder{&d.nl, &d.cr, &d.bs, &d.qu} {
		f.moved(by)
	}
}

// drain reads what follows the end of the data: after \. PostgreSQL's servers
// ignore the rest.
func (d *Decoder) drain() error {
	s := &d.src
	s.r, s.w, s.ok = 0, 0, 0
	for !s.eof && s.bad == nil {
		_, err := s.in.Read(s.buf)
		if errors.Is(err, io.EOF) {
			s.eof = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

// header reads the first line, if it is one of names.
func (d *Decoder) header() error {
	if d.o.Header == NoHeader {
		return nil
	}
	for {
		end, next, more, st, err := d.frame()
		if err != nil {
			d.line += 1 + more
			return d.inLine(err, nil)
		}
		if st == frameMore {
			if err := d.more(); err != nil {
				return err
			}
			continue
		}
		d.line += 1 + more
		if d.o.Header == MatchHeader {
			if err := d.match(end); err != nil {
				return err
			}
		}
		d.src.r = next
		if st != frameLine {
			d.ended = true
			return d.drain()
		}
		return nil
	}
}

func (d *Decoder) match(end int) error {
	line := append([]byte{}, d.src.buf[d.src.r:end]...)
	d.saved = line
	n, err := d.fields(d.src.r, end, 0)
	if err != nil {
		return d.inLine(err, line)
	}
	if n != len(d.cols) {
		return d.inLine(pgerr.New(pgerr.BadCopyFileFormat, "wrong number of fields in header line: got %d, expected %d", n, len(d.cols)), line)
	}
	for c := range d.cols {
		sp, want := d.spans[c*blockRows], d.schema[c].Name
		if sp.from < 0 {
			return d.inLine(pgerr.New(pgerr.BadCopyFileFormat,
				"column name mismatch in header line field %d: got null value (\"%s\"), expected \"%s\"", c+1, d.o.Null, want), line)
		}
		if got := string(d.src.buf[sp.from:sp.to]); got != want {
			return d.inLine(pgerr.New(pgerr.BadCopyFileFormat,
				"column name mismatch in header line field %d: got \"%s\", expected \"%s\"", c+1, got, want), line)
		}
	}
	return nil
}

// fields splits one framed line, as row i of the block, into as many fields as it
// has; those beyond the columns are only counted.
func (d *Decoder) fields(from, end, i int) (int, error) {
	if d.o.Format == CSV {
		return d.fieldsCSV(from, end, i)
	}
	return d.fieldsText(from, end, i)
}

// short makes the error of a line with another number of fields than columns: the
// fields that are there are read first, as PostgreSQL does.
func (d *Decoder) short(n, row int, line []byte) error {
	if n > len(d.cols) {
		return d.inLine(pgerr.New(pgerr.BadCopyFileFormat, "extra data after last expected column"), line)
	}
	for c := range d.cols[:n] {
		sp := d.spans[c*blockRows+row]
		if sp.from < 0 {
			continue
		}
		f := d.src.buf[sp.from:sp.to]
		if _, err := pgtext.Parse(d.cols[c].typ, string(f), d.style); err != nil {
			return d.inField(err, d.line, c, f)
		}
	}
	return d.inLine(pgerr.New(pgerr.BadCopyFileFormat, "missing data for column \"%s\"", d.schema[n].Name), line)
}

// inLine adds the context of the line framed last; line is its text, nil when it
// was not read whole.
func (d *Decoder) inLine(err error, line []byte) error {
	ctx := fmt.Sprintf("COPY %s, line %d", d.relation, d.line)
	if line != nil {
		ctx += fmt.Sprintf(": \"%s\"", clip(line))
	}
	return withContext(err, ctx)
}

// inField adds the context of a value.
func (d *Decoder) inField(err error, line int64, c int, f []byte) error {
	return withContext(err, fmt.Sprintf("COPY %s, line %d, column %s: \"%s\"", d.relation, line, d.schema[c].Name, clip(f)))
}

func withContext(err error, ctx string) error {
	var e *pgerr.Error
	if !errors.As(err, &e) {
		return err // the connection's, the account's
	}
	c := *e
	if c.Context != "" {
		ctx = c.Context + "\n" + ctx
	}
	c.Context = ctx
	return &c
}

// clip shortens what a context shows to 100 bytes, as PostgreSQL does.
func clip(b []byte) []byte {
	if len(b) <= 100 {
		return b
	}
	n := 100
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return append(append([]byte(nil), b[:n]...), "..."...)
}

// start makes the arrays of a batch.
func (d *Decoder) start() {
	d.rows, d.bytes = 0, 0
	d.first = d.line + 1
	d.lines = nil
	if d.o.Format == CSV {
		d.lines = make([]int64, d.maxRows)
	}
	for i := range d.cols {
		d.cols[i].start(d.maxRows)
	}
}

// finish wraps the arrays; nil when there is no row.
func (d *Decoder) finish() *Rows {
	if d.rows == 0 {
		return nil
	}
	b := &vec.Batch{Schema: d.schema, N: d.rows, Cols: make([]arrow.Array, len(d.cols))}
	for i := range d.cols {
		b.Cols[i] = d.cols[i].finish(d.rows)
	}
	return &Rows{Batch: b, first: d.first, lines: d.lines}
}
