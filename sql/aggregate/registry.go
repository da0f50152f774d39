package aggregate

import (
	_ "embed"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// oids.txt holds PostgreSQL's OIDs of aggregates and window functions.
//
//go:embed oids.txt
var oidText string

var (
	all, byName         = register()
	allWindows, windows = registerWindows()
	known               map[string]uint32
)

// Lookup returns the aggregates by lower-case name.
func Lookup(name string) []*Def { return byName[name] }

// All returns every aggregate in a fixed order, for pg_proc.
func All() []*Def { return all }

// LookupWindow returns the pure window functions by name.
func LookupWindow(name string) []*WindowDef { return windows[name] }

// AllWindows returns every window function, for pg_proc.
func AllWindows() []*WindowDef { return allWindows }

// oid is PostgreSQL's OID of a function, or one of our own derived from its
// signature, below the OIDs of user objects.
func oid(name string, args []types.Type) uint32 {
	if known == nil {
		known = map[string]uint32{}
		for _, l := range strings.Split(oidText, "\n") {
			if sig, n, ok := strings.Cut(l, " "); ok {
				if i := strings.LastIndexByte(l, ' '); i > 0 {
					sig, n = l[:i], l[i+1:]
				}
				v, _ := strconv.ParseUint(n, 10, 32)
				known[sig] = uint32(v)
			}
		}
	}
	var ts []string
	for _, t := range args {
		ts = append(ts, t.PlainName())
	}
	sig := name + "/" + strings.Join(ts, ",")
	if v, ok := known[sig]; ok {
		return v
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(sig))
	return 10000 + h.Sum32()%6000
}

func register() ([]*Def, map[string][]*Def) {
	var list []*Def
	m := map[string][]*Def{}
	for _, family := range builtin() {
		for i := range family {
			d := &family[i]
			if d.OID == 0 {
				d.OID = oid(d.Name, d.Args)
			}
			list = append(list, d)
			m[d.Name] = append(m[d.Name], d)
		}
	}
	return list, m
}

func registerWindows() ([]*WindowDef, map[string][]*WindowDef) {
	var list []*WindowDef
	m := map[string][]*WindowDef{}
	for i := range windowDefs {
		d := &windowDefs[i]
		args := d.Args[:len(d.Args)-d.Defaults]
		d.OID = oid(d.Name, args)
		list = append(list, d)
		m[d.Name] = append(m[d.Name], d)
	}
	return list, m
}
