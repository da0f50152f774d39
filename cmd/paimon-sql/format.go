package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// column is a result column as printers see it.
type column struct {
	name  string
	right bool // numbers stand on the right
}

// block is some rows. The functions append a value's form to dst; they are not
// asked for NULLs, except json.
type block struct {
	n    int
	null func(col, row int) bool
	text func(dst []byte, col, row int) []byte
	json func(dst []byte, col, row int) []byte
}

// printer writes results in one format.
type printer interface {
	begin(cols []column) error
	block(b block) error
	// end closes one statement; rows says whether it returned any kind of rows.
	end(tag string, rows bool) error
	close() error
}

func newPrinter(format string, w io.Writer) (printer, error) {
	bw, ok := w.(*bufio.Writer)
	if !ok {
		bw = bufio.NewWriter(w)
	}
	switch format {
	case "table":
		return &tablePrinter{w: bw}, nil
	case "markdown":
		return &tablePrinter{w: bw, markdown: true}, nil
	case "csv":
		return &csvPrinter{w: bw}, nil
	case "json":
		return &jsonPrinter{w: bw}, nil
	case "jsonl":
		return &jsonPrinter{w: bw, lines: true}, nil
	}
	return nil, usagef("--format: %q is none of table, csv, json, jsonl, markdown", format)
}

// tablePrinter aligns columns as psql does. Widths come from the first
// widthRows rows; later rows are wider if they must be.
type tablePrinter struct {
	w        *bufio.Writer
	markdown bool
	expanded bool
	cols     []column
	rows     [][]string
	widths   []int
	headed   bool
	n        int64
}

const widthRows = 5000

func (p *tablePrinter) begin(cols []column) error {
	p.cols, p.rows, p.headed, p.n = cols, nil, false, 0
	return nil
}

func (p *tablePrinter) block(b block) error {
	var buf []byte
	for r := range b.n {
		row := make([]string, len(p.cols))
		for c := range p.cols {
			if b.null(c, r) {
				continue
			}
			buf = b.text(buf[:0], c, r)
			row[c] = string(buf)
			if p.markdown {
				row[c] = strings.NewReplacer("|", `\|`, "\n", "<br>").Replace(row[c])
			}
		}
		p.n++
		p.rows = append(p.rows, row)
	}
	if p.headed || len(p.rows) >= widthRows {
		return p.flush()
	}
	return nil
}

// width is the number of terminal cells of the longest line; wide characters
// count as two.
func width(s string) int {
	best := 0
	for _, line := range strings.Split(s, "\n") {
		n := 0
		for _, r := range line {
			n++
			if r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff ||
				r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd) {
				n++
			}
		}
		best = max(best, n)
	}
	return best
}

func (p *tablePrinter) flush() error {
	if p.expanded {
		return p.flushExpanded()
	}
	if !p.headed {
		p.headed = true
		p.widths = make([]int, len(p.cols))
		for i, c := range p.cols {
			p.widths[i] = width(c.name)
			for _, r := range p.rows {
				p.widths[i] = max(p.widths[i], width(r[i]))
			}
			if p.markdown {
				p.widths[i] = max(p.widths[i], 3)
			}
		}
		p.header()
	}
	for _, r := range p.rows {
		p.row(r)
	}
	p.rows = p.rows[:0]
	return nil
}

func (p *tablePrinter) header() {
	if p.markdown {
		names := make([]string, len(p.cols))
		p.w.WriteString("|")
		for i, c := range p.cols {
			names[i] = pad(strings.ReplaceAll(c.name, "|", `\|`), p.widths[i], false)
			p.w.WriteString(" " + names[i] + " |")
		}
		p.w.WriteString("\n|")
		for i, c := range p.cols {
			line := strings.Repeat("-", p.widths[i]-1)
			if c.right {
				p.w.WriteString(" " + line + ": |")
			} else {
				p.w.WriteString(" " + line + "- |")
			}
		}
		p.w.WriteString("\n")
		return
	}
	for i, c := range p.cols {
		if i > 0 {
			p.w.WriteString("|")
		}
		gap := p.widths[i] - width(c.name)
		left := gap / 2
		s := " " + strings.Repeat(" ", left) + c.name + strings.Repeat(" ", gap-left) + " "
		if i == len(p.cols)-1 {
			s = strings.TrimRight(s, " ")
			s += strings.Repeat(" ", max(0, 1+left+width(c.name)+gap-left-width(s)))
			s += " "
		}
		p.w.WriteString(s)
	}
	p.w.WriteString("\n")
	for i := range p.cols {
		if i > 0 {
			p.w.WriteString("+")
		}
		p.w.WriteString(strings.Repeat("-", p.widths[i]+2))
	}
	p.w.WriteString("\n")
}

func (p *tablePrinter) row(r []string) {
	if p.markdown {
		p.w.WriteString("|")
		for i, v := range r {
			p.w.WriteString(" " + pad(v, p.widths[i], p.cols[i].right) + " |")
		}
		p.w.WriteString("\n")
		return
	}
	lines := make([][]string, len(r))
	most := 1
	for i, v := range r {
		lines[i] = strings.Split(v, "\n")
		most = max(most, len(lines[i]))
	}
	for l := range most {
		for i := range r {
			if i > 0 {
				p.w.WriteString("|")
			}
			v, mark := "", " "
			if l < len(lines[i]) {
				v = lines[i][l]
				if l < len(lines[i])-1 {
					mark = "+"
				}
			}
			if i == len(r)-1 && mark == " " && !p.cols[i].right {
				p.w.WriteString(" " + v)
				continue
			}
			s := " " + pad(v, p.widths[i], p.cols[i].right)
			if i < len(r)-1 || mark == "+" {
				s += mark
			}
			p.w.WriteString(s)
		}
		p.w.WriteString("\n")
	}
}

func pad(s string, w int, right bool) string {
	n := w - width(s)
	if n <= 0 {
		return s
	}
	if right {
		return strings.Repeat(" ", n) + s
	}
	return s + strings.Repeat(" ", n)
}

func (p *tablePrinter) flushExpanded() error {
	p.headed = true
	w := 0
	for _, c := range p.cols {
		w = max(w, width(c.name))
	}
	first := p.n - int64(len(p.rows))
	for k, r := range p.rows {
		fmt.Fprintf(p.w, "-[ RECORD %d ]%s\n", first+int64(k)+1, strings.Repeat("-", max(0, w-8)))
		for i, c := range p.cols {
			fmt.Fprintf(p.w, "%s | %s\n", pad(c.name, w, false), strings.ReplaceAll(r[i], "\n", "\n"+strings.Repeat(" ", w)+" | "))
		}
	}
	p.rows = p.rows[:0]
	return nil
}

func (p *tablePrinter) end(tag string, rows bool) error {
	if !rows {
		if !p.markdown {
			p.w.WriteString(tag + "\n")
		}
		return nil
	}
	if err := p.flush(); err != nil {
		return err
	}
	if p.markdown {
		p.w.WriteString("\n")
		return nil
	}
	s := "s"
	if p.n == 1 {
		s = ""
	}
	fmt.Fprintf(p.w, "(%d row%s)\n\n", p.n, s)
	return nil
}

func (p *tablePrinter) close() error { return nil }

// csvPrinter writes RFC 4180 with a header; NULL is an empty field, an empty
// text is "".
type csvPrinter struct {
	w    *bufio.Writer
	cols []column
	buf  []byte
}

func (p *csvPrinter) begin(cols []column) error {
	p.cols = cols
	for i, c := range cols {
		if i > 0 {
			p.w.WriteByte(',')
		}
		p.w.Write(csvField(nil, []byte(c.name)))
	}
	return p.w.WriteByte('\n')
}

func csvField(dst, v []byte) []byte {
	if len(v) > 0 && !bytes.ContainsAny(v, ",\"\r\n") && !bytes.Equal(v, []byte(`\.`)) {
		return append(dst, v...)
	}
	dst = append(dst, '"')
	for _, c := range v {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

func (p *csvPrinter) block(b block) error {
	var line []byte
	for r := range b.n {
		line = line[:0]
		for c := range p.cols {
			if c > 0 {
				line = append(line, ',')
			}
			if b.null(c, r) {
				continue
			}
			p.buf = b.text(p.buf[:0], c, r)
			line = csvField(line, p.buf)
		}
		line = append(line, '\n')
		if _, err := p.w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

func (p *csvPrinter) end(string, bool) error { return nil }
func (p *csvPrinter) close() error           { return nil }

// jsonPrinter writes one object per row: lines, or an array per statement.
type jsonPrinter struct {
	w     *bufio.Writer
	lines bool
	keys  [][]byte // `"name":` with what stands before it
	any   bool
}

func (p *jsonPrinter) begin(cols []column) error {
	p.keys, p.any = nil, false
	for i, c := range cols {
		k := []byte("{")
		if i > 0 {
			k = []byte(",")
		}
		k = appendJSONString(k, []byte(c.name))
		p.keys = append(p.keys, append(k, ':'))
	}
	if !p.lines {
		p.w.WriteByte('[')
	}
	return nil
}

func (p *jsonPrinter) block(b block) error {
	var line []byte
	for r := range b.n {
		line = line[:0]
		if !p.lines {
			if p.any {
				line = append(line, ',')
			}
			line = append(line, '\n')
		}
		p.any = true
		if len(p.keys) == 0 {
			line = append(line, '{')
		}
		for c, k := range p.keys {
			line = append(line, k...)
			if b.null(c, r) {
				line = append(line, "null"...)
			} else {
				line = b.json(line, c, r)
			}
		}
		line = append(line, '}')
		if p.lines {
			line = append(line, '\n')
		}
		if _, err := p.w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

func (p *jsonPrinter) end(_ string, rows bool) error {
	if rows && !p.lines {
		if p.any {
			p.w.WriteByte('\n')
		}
		p.w.WriteString("]\n")
	}
	return nil
}

func (p *jsonPrinter) close() error { return nil }

const hexDigits = "0123456789abcdef"

// appendJSONString appends v as a JSON string; only what must be is escaped.
// Bytes that are not UTF-8 become U+FFFD.
func appendJSONString(dst, v []byte) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(v); {
		c := v[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				dst = append(dst, '\\', c)
			case c == '\n':
				dst = append(dst, '\\', 'n')
			case c == '\r':
				dst = append(dst, '\\', 'r')
			case c == '\t':
				dst = append(dst, '\\', 't')
			case c < 0x20 || c == 0x7f:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			default:
				dst = append(dst, c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(v[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, `\ufffd`...)
		} else {
			dst = append(dst, v[i:i+n]...)
		}
		i += n
	}
	return append(dst, '"')
}
