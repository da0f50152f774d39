// Command paimon-sql serves Apache Paimon tables to PostgreSQL clients, and runs
// SQL on them without a server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// version is set by the linker.
var version = "dev"

// Exit codes.
const (
	exitOK    = 0
	exitSQL   = 1 // the SQL, or the server, failed
	exitUsage = 2
)

// usageError is an error of how the program was called.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// errReported is an error that has been printed already.
var errReported = errors.New("reported")

// app is what a subcommand may use of the process, so that tests can run one.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
}

type command struct {
	name, args, doc string
	run             func(a *app, ctx context.Context, args []string) error
}

var commands = []command{
	{"serve", "--warehouse URI [--listen ADDR] ...", "serve the warehouse to PostgreSQL clients", (*app).serve},
	{"sql", "[--warehouse URI | --dsn URL] [-c SQL]... [-f FILE]", "run SQL, or an interactive shell", (*app).sql},
	{"compact", "--warehouse URI --table db.t [--full] [--where P] [--watch]", "compact a table, once or again and again", (*app).compact},
	{"demo", "--warehouse URI", "make the demo tables", (*app).demo},
	{"version", "", "print the version", (*app).version},
}

func main() {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv}
	os.Exit(a.main(context.Background(), os.Args[1:]))
}

// main runs one subcommand and returns the exit code.
func (a *app) main(ctx context.Context, args []string) int {
	if len(args) == 0 {
		a.usage(a.err)
		return exitUsage
	}
	if args[0] == "help" && len(args) == 2 {
		args = []string{args[1], "--help"}
	}
	switch args[0] {
	case "help", "-h", "--help", "-help":
		a.usage(a.out)
		return exitOK
	case "--version", "-version", "-V":
		args[0] = "version"
	}
	for _, c := range commands {
		if c.name != args[0] {
			continue
		}
		err := c.run(a, ctx, args[1:])
		var ue *usageError
		switch {
		case err == nil:
			return exitOK
		case errors.Is(err, errHelp):
			return exitOK
		case errors.Is(err, errReported):
			return exitSQL
		case errors.As(err, &ue):
			fmt.Fprintf(a.err, "paimon-sql %s: %s\n", c.name, ue)
			return exitUsage
		}
		fmt.Fprintf(a.err, "paimon-sql %s: %s\n", c.name, errorText(err))
		return exitSQL
	}
	fmt.Fprintf(a.err, "paimon-sql: unknown command %q\n", args[0])
	a.usage(a.err)
	return exitUsage
}

func (a *app) usage(w io.Writer) {
	fmt.Fprintln(w, "usage: paimon-sql COMMAND [flags]")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-8s %s\n           %s\n", c.name, c.args, c.doc)
	}
	fmt.Fprintln(w, "paimon-sql COMMAND --help lists a command's flags.")
}

func (a *app) version(context.Context, []string) error {
	_, err := fmt.Fprintf(a.out, "paimon-sql %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// untilSignal is ctx, which also ends at SIGINT or SIGTERM.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// onHangup calls f at each SIGHUP, and when asked is sent to, until the returned
// function is called.
func (a *app) onHangup(asked <-chan struct{}, f func()) (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-c:
				f()
			case <-asked:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(c)
		close(done)
	}
}
