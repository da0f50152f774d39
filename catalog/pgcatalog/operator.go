package pgcatalog

func fillCast(f *Filler) error {
	known := map[int64]bool{}
	for _, line := range lines(typesText) {
		known[num(fields(line)[0])] = true
	}
	for _, line := range lines(castsText) {
		w := fields(line)
		if known[num(w[1])] && known[num(w[2])] {
			f.Row("oid", num(w[0]), "castsource", num(w[1]), "casttarget", num(w[2]), "castfunc", num(w[3]), "castcontext", w[4], "castmethod", w[5])
		}
	}
	return nil
}

// fillOperator lists the operators that can be used.
func fillOperator(f *Filler) error {
	src, ok := f.Src.(interface{ Operators() []Operator })
	if !ok {
		return nil
	}
	seen := map[uint32]bool{}
	for _, o := range src.Operators() {
		if seen[o.OID] {
			continue
		}
		seen[o.OID] = true
		kind, left := "b", int64(o.Left.OID())
		if o.Prefix {
			kind, left = "l", 0
		}
		f.Row("oid", o.OID, "oprname", o.Name, "oprnamespace", nsPgCatalog, "oprowner", superuserOID, "oprkind", kind,
			"oprcanmerge", o.Name == "=", "oprcanhash", o.Name == "=", "oprleft", left, "oprright", o.Right.OID(), "oprresult", o.Ret.OID())
	}
	return nil
}
