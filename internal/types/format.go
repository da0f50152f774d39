package types

import "fmt"

func formatType(t Type) string {
	i := t.Info()
	if t.Mod == 0 {
		if t.Kind == BpChar {
			return "bpchar" // format_type says so when there is no length
		}
		return i.SQLName
	}
	switch t.Kind {
	case Varchar, BpChar:
		return fmt.Sprintf("%s(%d)", i.SQLName, t.Mod-4)
	case Numeric:
		m := t.Mod - 4
		return fmt.Sprintf("numeric(%d,%d)", m>>16&0xffff, m&0xffff)
	case Time, Timestamp:
		return fmt.Sprintf("%s(%d) without time zone", i.Name, t.Mod-1)
	case TimeTZ, TimestampTZ:
		n := "time"
		if t.Kind == TimestampTZ {
			n = "timestamp"
		}
		return fmt.Sprintf("%s(%d) with time zone", n, t.Mod-1)
	}
	return i.SQLName
}

// PlainName returns the name without modifiers, as PostgreSQL prints it in
// `operator does not exist: integer + text`.
func (t Type) PlainName() string {
	if t.Kind == Array && t.Elem != nil && !t.OnWireAsJSON() {
		return t.Elem.PlainName() + "[]"
	}
	if t.Kind == BpChar {
		return "character"
	}
	return t.Info().SQLName
}
