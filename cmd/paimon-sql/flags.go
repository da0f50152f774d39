package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// errHelp says that --help was given and answered.
var errHelp = errors.New("help")

// flags are those of one subcommand. A value comes from the command line, else
// from the environment variable PAIMON_SQL_<NAME>, else from the file that
// --config names (YAML, or the syntax of postgresql.conf where its name ends in
// .conf), else it is the default.
type flags struct {
	*flag.FlagSet
	a    *app
	name string
	doc  string          // what --help says before the flags; may be empty
	set  map[string]bool // given on the command line
	file map[string]any
}

func newFlags(a *app, name string) *flags {
	fs := &flags{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), a: a, name: name, set: map[string]bool{}}
	fs.SetOutput(io.Discard) // parse says what is wrong, once
	return fs
}

// help lists the flags. A value in parentheses is the default.
func (fs *flags) help(w io.Writer) {
	fmt.Fprint(w, fs.doc)
	fmt.Fprintf(w, "flags of paimon-sql %s (also as environment variables, such as %s):\n", fs.name, envName("warehouse"))
	fs.VisitAll(func(f *flag.Flag) {
		def := f.DefValue
		switch def {
		case "", "0", "false", "[]":
			def = ""
		default:
			def = " (" + def + ")"
		}
		fmt.Fprintf(w, "  %-22s %s%s\n", dashed(f.Name), f.Usage, def)
	})
}

// dashed is a flag as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// flagNames finds the flag in an error of package flag, which writes one dash.
var flagNames = regexp.MustCompile(`(flag |defined: |argument: )-+([\w-]+)`)

func envName(flagName string) string {
	return "PAIMON_SQL_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// parse reads the command line, then fills in what was not given.
func (fs *flags) parse(args []string) error {
	if err := fs.FlagSet.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.help(fs.a.out)
			return errHelp
		}
		msg := flagNames.ReplaceAllStringFunc(err.Error(), func(s string) string {
			m := flagNames.FindStringSubmatch(s)
			return m[1] + dashed(m[2])
		})
		return usagef("%s; paimon-sql %s --help lists the flags", msg, fs.name)
	}
	if fs.NArg() > 0 {
		return usagef("unexpected argument %q", fs.Arg(0))
	}
	fs.Visit(func(f *flag.Flag) { fs.set[f.Name] = true })
	if fs.Lookup("config") != nil {
		if err := fs.readFile(); err != nil {
			return err
		}
	}
	var err error
	fs.VisitAll(func(f *flag.Flag) {
		if err != nil || fs.set[f.Name] || len(f.Name) == 1 {
			return
		}
		if v := fs.a.env(envName(f.Name)); v != "" {
			if e := f.Value.Set(v); e != nil {
				err = usagef("environment variable %s: invalid value %q: %v", envName(f.Name), v, e)
			}
			return
		}
		if v, ok := fs.fromFile(f.Name); ok {
			if e := f.Value.Set(v); e != nil {
				err = usagef("%s in the configuration file: invalid value %q: %v", f.Name, v, e)
			}
		}
	})
	return err
}

// fileKeys are what the configuration file may hold besides flags.
var fileKeys = map[string]bool{"settings": true, "maintenance": true, "insert-mode": true}

func (fs *flags) readFile() error {
	name := fs.Lookup("config").Value.String()
	if name == "" {
		name = fs.a.env(envName("config"))
	}
	if name == "" {
		return nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return usagef("configuration file: %v", err)
	}
	fs.file = map[string]any{}
	if strings.HasSuffix(name, ".conf") {
		return fs.readConf(name, string(b))
	}
	raw := map[string]any{}
	if err := yaml.Unmarshal(b, &raw); err != nil {
		return usagef("configuration file %s: %v", name, err)
	}
	for k, v := range raw {
		key := strings.ReplaceAll(k, "_", "-")
		if fs.Lookup(key) == nil && !fileKeys[key] {
			return usagef("configuration file %s: unknown key %q", name, k)
		}
		fs.file[key] = v
	}
	return nil
}

func (fs *flags) fromFile(name string) (string, bool) {
	v, ok := fs.file[name]
	if !ok || v == nil {
		return "", false
	}
	return fmt.Sprint(v), true
}

// settings are the server-wide defaults of the file: the map under settings, and
// insert_mode at the top.
func (fs *flags) settings() (map[string]string, error) {
	out := map[string]string{}
	if v, ok := fs.fromFile("insert-mode"); ok {
		out["paimon.insert_mode"] = v
	}
	switch m := fs.file["maintenance"].(type) {
	case nil:
	case bool:
		out["paimon.maintenance"] = map[bool]string{true: "on", false: "off"}[m]
	case []any:
		var tables []string
		for _, t := range m {
			tables = append(tables, fmt.Sprint(t))
		}
		out["paimon.maintenance_tables"] = strings.Join(tables, ", ")
	default:
		out["paimon.maintenance"] = fmt.Sprint(m)
	}
	switch m := fs.file["settings"].(type) {
	case nil:
	case map[string]any:
		for k, v := range m {
			switch v := v.(type) {
			case bool:
				out[k] = map[bool]string{true: "on", false: "off"}[v]
			default:
				out[k] = fmt.Sprint(v)
			}
		}
	default:
		return nil, usagef("configuration file: settings is not a map")
	}
	return out, nil
}

// names lists the flags.
func (fs *flags) names() []string {
	var out []string
	fs.VisitAll(func(f *flag.Flag) { out = append(out, f.Name) })
	return out
}

func (fs *flags) value(name string) string { return fs.Lookup(name).Value.String() }

func (fs *flags) on(name string) bool {
	b, _ := strconv.ParseBool(fs.value(name))
	return b
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return fmt.Sprint([]string(*l)) }
func (l *list) Set(v string) error {
	*l = append(*l, v)
	return nil
}

// pairs are name=value flags.
type pairs map[string]string

func (p pairs) String() string {
	keys := make([]string, 0, len(p))
	for k, v := range p {
		keys = append(keys, k+"="+v)
	}
	sort.Strings(keys)
	return fmt.Sprint(keys)
}

func (p pairs) Set(v string) error {
	k, val, ok := strings.Cut(v, "=")
	if !ok || strings.TrimSpace(k) == "" {
		return fmt.Errorf("%q is not name=value", v)
	}
	p[strings.TrimSpace(k)] = strings.TrimSpace(val)
	return nil
}

// sizeValue reads 512MB, 4GB, or a number of bytes.
func sizeValue(v string) (int64, error) {
	s := strings.TrimSpace(v)
	mult := int64(1)
	for _, u := range []struct {
		name string
		size int64
	}{{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}} {
		if len(s) > len(u.name) && strings.EqualFold(s[len(s)-len(u.name):], u.name) {
			s, mult = strings.TrimSpace(s[:len(s)-len(u.name)]), u.size
			break
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f*float64(mult) > 1<<52 {
		return 0, fmt.Errorf("%q is not a size such as 512MB or 4GB", v)
	}
	return int64(f * float64(mult)), nil
}
