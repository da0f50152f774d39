package pgcatalog

import (
	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// fillType lists PostgreSQL's base types and the row types of tables.
func fillType(f *Filler) error {
	for _, line := range lines(typesText) {
		w := fields(line)
		f.Row("oid", num(w[0]), "typname", w[1], "typnamespace", nsPgCatalog, "typowner", superuserOID, "typlen", num(w[2]),
			"typbyval", w[3] == "1", "typtype", w[4], "typcategory", w[5], "typispreferred", w[6] == "1", "typisdefined", true,
			"typdelim", w[7], "typelem", num(w[8]), "typarray", num(w[9]), "typinput", num(w[10]), "typoutput", num(w[11]),
			"typreceive", num(w[12]), "typsend", num(w[13]), "typmodin", num(w[14]), "typmodout", num(w[15]),
			"typanalyze", num(w[16]), "typsubscript", num(w[17]), "typalign", w[18], "typstorage", w[19], "typtypmod", -1,
			"typcollation", num(w[20]))
	}
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		f.Row("oid", rowTypeOID(rel), "typname", rel.Name(), "typnamespace", NamespaceOID(rel.Schema()), "typowner", superuserOID,
			"typlen", -1, "typtype", "c", "typcategory", "C", "typisdefined", true, "typdelim", ",", "typrelid", rel.OID(),
			"typinput", 2290, "typoutput", 2291, "typreceive", 2402, "typsend", 2403, "typalign", "d", "typstorage", "x", "typtypmod", -1)
		return nil
	})
}

// fillProc lists the functions that can be called, and the input and output
// functions that pg_type names.
func fillProc(f *Filler) error {
	seen := map[int64]bool{}
	for _, line := range lines(ioprocsText) {
		w := fields(line)
		args := oidList(w[2])
		seen[num(w[0])] = true
		f.Row("oid", num(w[0]), "proname", w[1], "pronamespace", nsPgCatalog, "proowner", superuserOID, "prolang", 12, "procost", 1.0,
			"prokind", "f", "proisstrict", true, "provolatile", w[5], "proparallel", "s", "pronargs", len(args),
			"prorettype", num(w[3]), "proargtypes", args, "prosrc", w[1])
	}
	// The list of what can be called lives above this room.
	src, ok := f.Src.(interface{ Functions() []Function })
	if !ok {
		return nil
	}
	for _, o := range src.Functions() {
		if seen[int64(o.OID)] {
			continue
		}
		seen[int64(o.OID)] = true
		rows := 0.0
		if o.Set {
			rows = 1000
		}
		args := []types.Datum{}
		for _, t := range o.Args {
			args = append(args, int64(t.OID()))
		}
		f.Row("oid", o.OID, "proname", o.Name, "pronamespace", nsPgCatalog, "proowner", superuserOID, "prolang", 12, "procost", 1.0,
			"prorows", rows, "prokind", o.Kind, "proisstrict", o.Strict, "proretset", o.Set, "provolatile", o.Volatile,
			"proparallel", "s", "pronargs", len(args), "pronargdefaults", o.Defaults, "prorettype", o.Ret.OID(),
			"proargtypes", args, "prosrc", o.Name)
	}
	return nil
}

func fillAm(f *Filler) error {
	f.Row("oid", heapAM, "amname", "heap", "amhandler", 3, "amtype", "t")
	f.Row("oid", btreeAM, "amname", "btree", "amhandler", 330, "amtype", "i")
	for _, m := range indexMethods {
		f.Row("oid", methodOID(m), "amname", m, "amhandler", 0, "amtype", "i")
	}
	f.Row("oid", hashAM, "amname", "hash", "amhandler", 331, "amtype", "i")
	return nil
}

func fillOpclass(f *Filler) error {
	for _, line := range lines(opclassesText) {
		w := fields(line)
		f.Row("oid", num(w[0]), "opcmethod", num(w[1]), "opcname", w[2], "opcnamespace", nsPgCatalog, "opcowner", superuserOID,
			"opcfamily", num(w[3]), "opcintype", num(w[4]), "opcdefault", w[5] == "1", "opckeytype", num(w[6]))
	}
	return nil
}

func fillOpfamily(f *Filler) error {
	for _, line := range lines(opfamiliesText) {
		w := fields(line)
		f.Row("oid", num(w[0]), "opfmethod", num(w[1]), "opfname", w[2], "opfnamespace", nsPgCatalog, "opfowner", superuserOID)
	}
	return nil
}

var collations = []struct {
	oid                   int
	name, provider, local string
}{{100, "default", "d", ""}, {950, "C", "c", "C"}, {951, "POSIX", "c", "POSIX"}}

func fillCollation(f *Filler) error {
	for _, c := range collations {
		var local any
		if c.local != "" {
			local = c.local
		}
		f.Row("oid", c.oid, "collname", c.name, "collnamespace", nsPgCatalog, "collowner", superuserOID, "collprovider", c.provider,
			"collisdeterministic", true, "collencoding", -1, "collcollate", local, "collctype", local)
	}
	return nil
}

func fillLanguage(f *Filler) error {
	f.Row("oid", 12, "lanname", "internal", "lanowner", superuserOID)
	f.Row("oid", 14, "lanname", "sql", "lanowner", superuserOID, "lanpltrusted", true)
	return nil
}
