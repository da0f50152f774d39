package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/peterh/liner"
)

const shellHelp = `  \d [NAME]    list tables, or describe one        \dt \dv [PATTERN]  tables, views
  \dn          schemas                             \l             databases
  \x           expanded output on or off           \timing        time of statements on or off
  \i FILE      run a file                          \format NAME   table, csv, json, jsonl, markdown
  \r           forget the statement begun          \p             show it
  \q           quit                                ;              ends a statement
`

// sh is the state of an interactive shell.
type sh struct {
	a        *app
	c        client
	ctx      context.Context
	out      *bufio.Writer
	format   string
	expanded bool
	timing   bool
	failed   bool // the last statement
	tty      bool // a person is waiting
}

// lineReader reads one line; io.EOF ends the input, liner.ErrPromptAborted is
// Ctrl-C.
type lineReader func(prompt string) (string, error)

// shell reads statements from the terminal until \q, or from a pipe until its
// end. A pipe's first failed statement ends it.
func (a *app) shell(ctx context.Context, c client, format string, overWire bool) error {
	s := &sh{a: a, c: c, ctx: ctx, out: bufio.NewWriterSize(a.out, 64<<10), format: format}
	f, isFile := a.in.(*os.File)
	if !isFile || !liner.TerminalSupported() || !isTerminal(f) {
		in := bufio.NewReader(a.in)
		err := s.loop(func(string) (string, error) {
			line, err := in.ReadString('\n')
			if err == io.EOF && line != "" {
				err = nil
			}
			return strings.TrimRight(line, "\r\n"), err
		}, true)
		return err
	}
	s.tty = true
	l := liner.NewLiner()
	defer l.Close() //nolint:errcheck // the terminal is put back as far as it goes
	l.SetCtrlCAborts(true)
	l.SetMultiLineMode(true)
	history := historyFile(a)
	if h, err := os.Open(history); err == nil {
		l.ReadHistory(h) //nolint:errcheck // history is a convenience
		h.Close()        //nolint:errcheck // only read
	}
	fmt.Fprintf(a.out, "paimon-sql %s. Type \\? for help.\n", version)
	err := s.loop(func(prompt string) (string, error) {
		line, err := l.Prompt(prompt)
		if err == nil && strings.TrimSpace(line) != "" {
			l.AppendHistory(line)
		}
		return line, err
	}, false)
	if history != "" {
		if os.MkdirAll(filepath.Dir(history), 0o700) == nil {
			if h, herr := os.OpenFile(history, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); herr == nil {
				l.WriteHistory(h) //nolint:errcheck // history is a convenience
				h.Close()         //nolint:errcheck // likewise
			}
		}
	}
	return err
}

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

func historyFile(a *app) string {
	dir := a.env("XDG_STATE_HOME")
	if dir == "" {
		home := a.env("HOME")
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "paimon-sql", "history")
}

// loop reads lines, gathers statements and runs them.
func (s *sh) loop(read lineReader, stopOnError bool) error {
	var buf strings.Builder
	for {
		prompt := "paimon=# "
		if strings.TrimSpace(buf.String()) != "" {
			prompt = "paimon-# "
		}
		line, err := read(prompt)
		if errors.Is(err, liner.ErrPromptAborted) {
			buf.Reset()
			continue
		}
		if err != nil {
			if strings.TrimSpace(buf.String()) != "" {
				s.run(buf.String())
			}
			if !errors.Is(err, io.EOF) {
				return err
			}
			if s.failed && stopOnError {
				return errReported
			}
			return nil
		}
		trimmed := strings.TrimSpace(line)
		if s.tty && buf.Len() == 0 {
			switch strings.ToLower(strings.TrimSuffix(trimmed, ";")) {
			case "help":
				trimmed = `\?`
			case "exit", "quit":
				trimmed = `\q`
			}
		}
		if strings.HasPrefix(trimmed, `\`) && !open(buf.String()) {
			switch trimmed {
			case `\r`:
				buf.Reset()
				fmt.Fprintln(s.a.out, "Query buffer reset (cleared).")
				continue
			case `\p`:
				fmt.Fprint(s.a.out, buf.String())
				continue
			}
			quit := s.meta(trimmed)
			if quit {
				return nil
			}
			if s.failed && stopOnError {
				return errReported
			}
			continue
		}
		buf.WriteString(line + "\n")
		rest := buf.String()
		for {
			st, tail, ok := cutStatement(rest)
			if !ok {
				break
			}
			rest = tail
			s.run(st)
			if s.failed && stopOnError {
				return errReported
			}
		}
		buf.Reset()
		if strings.TrimSpace(rest) != "" {
			buf.WriteString(rest)
		}
	}
}

// run runs one statement; Ctrl-C cancels it.
func (s *sh) run(sql string) {
	ctx, stop := signal.NotifyContext(s.ctx, os.Interrupt)
	defer stop()
	p, err := newPrinter(s.format, s.out)
	if err != nil {
		fmt.Fprintln(s.a.err, err)
		return
	}
	if t, ok := p.(*tablePrinter); ok {
		t.expanded = s.expanded
	}
	began := time.Now()
	sql = strings.TrimLeft(sql, " \t\n")
	r := &results{p: p, out: s.out, err: s.a.err}
	done := func() {}
	if s.tty {
		done = s.progress(began)
		r.began = done
	}
	s.failed = s.a.runText(ctx, s.c, sql, r) != nil
	done()
	if s.timing {
		fmt.Fprintf(s.out, "Time: %.3f ms\n", float64(time.Since(began).Microseconds())/1000)
	}
	s.out.Flush() //nolint:errcheck // a terminal that is gone ends the loop
}

// progress shows how long a statement has been running, from one second on,
// until the function it returns is called: at the first row or at the end.
func (s *sh) progress(began time.Time) (done func()) {
	stop, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		shown := false
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(s.a.err, "\r\x1b[K")
				}
				return
			case now := <-t.C:
				shown = true
				fmt.Fprintf(s.a.err, "\rrunning for %d s, Ctrl-C cancels", int(now.Sub(began).Seconds()))
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-gone
	})
}

// meta runs a backslash command; true means quit.
func (s *sh) meta(line string) bool {
	cmd, arg, _ := strings.Cut(strings.TrimSuffix(line, ";"), " ")
	arg = strings.TrimSpace(arg)
	quoted := "'" + strings.ReplaceAll(arg, "'", "''") + "'"
	s.failed = false
	switch strings.TrimSuffix(cmd, "+") {
	case `\q`, `\quit`:
		return true
	case `\?`, `\h`, `\help`:
		fmt.Fprint(s.out, shellHelp)
		s.out.Flush() //nolint:errcheck // a terminal
	case `\timing`:
		s.timing = toggle(s.timing, arg)
		fmt.Fprintf(s.out, "Timing is %s.\n", map[bool]string{true: "on", false: "off"}[s.timing])
		s.out.Flush() //nolint:errcheck // a terminal
	case `\x`:
		s.expanded = toggle(s.expanded, arg)
		fmt.Fprintf(s.out, "Expanded display is %s.\n", map[bool]string{true: "on", false: "off"}[s.expanded])
		s.out.Flush() //nolint:errcheck // a terminal
	case `\format`:
		if _, err := newPrinter(arg, io.Discard); err != nil {
			fmt.Fprintln(s.a.err, strings.TrimPrefix(err.Error(), "--"))
			s.failed = true
			break
		}
		s.format = arg
	case `\d`:
		if arg == "" {
			s.run("SHOW TABLES")
		} else {
			if s.run("DESCRIBE " + arg); !s.failed {
				s.run("SHOW CREATE TABLE " + arg)
			}
		}
	case `\dt`:
		s.listing("SHOW TABLES", arg, quoted)
	case `\dv`:
		s.listing("SHOW VIEWS", arg, quoted)
	case `\dn`:
		s.listing("SHOW SCHEMAS", arg, quoted)
	case `\l`:
		s.run("SELECT current_database() AS database")
	case `\i`:
		b, err := os.ReadFile(arg)
		if err != nil {
			fmt.Fprintln(s.a.err, err)
			s.failed = true
			break
		}
		for _, st := range splitStatements(string(b)) {
			if s.run(st); s.failed {
				break
			}
		}
	default:
		fmt.Fprintf(s.a.err, "unknown command %s; \\? lists commands\n", cmd)
		s.failed = true
	}
	return false
}

func (s *sh) listing(sql, arg, quoted string) {
	switch {
	case arg == "":
	case strings.HasSuffix(arg, ".*"):
		sql += " FROM " + strings.TrimSuffix(arg, ".*")
	default:
		sql += " LIKE " + quoted
	}
	s.run(sql)
}

func toggle(now bool, arg string) bool {
	switch arg {
	case "on":
		return true
	case "off":
		return false
	}
	return !now
}

// splitStatements cuts a text at the semicolons that end statements.
func splitStatements(text string) []string {
	var out []string
	for {
		st, rest, ok := cutStatement(text)
		if !ok {
			if strings.TrimSpace(stripComments(text)) != "" {
				out = append(out, text)
			}
			return out
		}
		if strings.TrimSpace(stripComments(strings.TrimSuffix(strings.TrimSpace(st), ";"))) != "" {
			out = append(out, st)
		}
		text = rest
	}
}

// cutStatement returns the text up to and with the first semicolon that is not
// inside a literal, a quoted name, a comment or parentheses of a dollar quote.
func cutStatement(s string) (statement, rest string, ok bool) {
	for i := 0; i < len(s); {
		if n := skip(s, i); n > i {
			i = n
			continue
		}
		if s[i] == ';' {
			return s[:i+1], s[i+1:], true
		}
		i++
	}
	return "", s, false
}

// open reports whether a text ends inside a literal, a quoted name or a comment.
func open(s string) bool {
	if s == "" {
		return false
	}
	_, _, ok := cutStatement(s + ";")
	return !ok
}

// stripComments replaces comments by blanks.
func stripComments(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n := skip(s, i)
		if n == i {
			b.WriteByte(s[i])
			i++
			continue
		}
		if s[i] == '-' || s[i] == '/' {
			b.WriteByte(' ')
		} else {
			b.WriteString(s[i:n])
		}
		i = n
	}
	return b.String()
}

// skip returns the end of the literal, quoted name or comment that begins at i,
// or i when none does. One that is not closed reaches to the end.
func skip(s string, i int) int {
	rest := s[i:]
	switch {
	case strings.HasPrefix(rest, "--"):
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			return i + n + 1
		}
		return len(s)
	case strings.HasPrefix(rest, "/*"):
		depth := 0
		for j := i; j < len(s); {
			switch {
			case strings.HasPrefix(s[j:], "/*"):
				depth++
				j += 2
			case strings.HasPrefix(s[j:], "*/"):
				if depth--; depth == 0 {
					return j + 2
				}
				j += 2
			default:
				j++
			}
		}
		return len(s)
	case rest[0] == '\'' || rest[0] == '"' || rest[0] == '`':
		escapes := rest[0] == '\'' && i > 0 && (s[i-1] == 'E' || s[i-1] == 'e') && (i < 2 || !wordByte(s[i-2]))
		for j := i + 1; j < len(s); j++ {
			if escapes && s[j] == '\\' {
				j++
				continue
			}
			if s[j] == rest[0] {
				if j+1 < len(s) && s[j+1] == rest[0] {
					j++
					continue
				}
				return j + 1
			}
		}
		return len(s)
	case rest[0] == '$' && (i == 0 || !wordByte(s[i-1])):
		end := strings.IndexByte(rest[1:], '$')
		if end < 0 {
			return i
		}
		tag := rest[:end+2]
		for k := 1; k < len(tag)-1; k++ {
			if !wordByte(tag[k]) || k == 1 && tag[k] >= '0' && tag[k] <= '9' {
				return i
			}
		}
		if n := strings.Index(rest[len(tag):], tag); n >= 0 {
			return i + len(tag) + n + len(tag)
		}
		return len(s)
	}
	return i
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
