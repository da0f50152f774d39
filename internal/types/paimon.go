package types

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// MaxLength is the length of STRING and BYTES in Paimon's type strings.
const MaxLength = 1<<31 - 1

// Further Paimon spellings of Bytea; the values are well-known binary. Their
// parameters (coordinate system, algorithm) are the names of Type.Fields.
const (
	LakeGeometry Lake = iota + 16
	LakeGeography
)

// maxTypeDepth bounds the nesting of a type read from a schema file.
const maxTypeDepth = 64

// ParsePaimon reads a type as Paimon's schema files hold it: a JSON string for
// atomic types, an object for ARRAY, MAP, MULTISET, VECTOR and ROW.
func ParsePaimon(raw json.RawMessage) (Type, error) { return parsePaimon(raw, 0) }

func parsePaimon(raw json.RawMessage, depth int) (Type, error) {
	raw = bytes.TrimSpace(raw)
	if depth > maxTypeDepth {
		return Type{}, fmt.Errorf("type is nested deeper than %d levels", maxTypeDepth)
	}
	if len(raw) == 0 {
		return Type{}, fmt.Errorf("type is missing")
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return Type{}, err
		}
		return ParsePaimonText(s)
	}
	var o struct {
		Type    string            `json:"type"`
		Element json.RawMessage   `json:"element"`
		Key     json.RawMessage   `json:"key"`
		Value   json.RawMessage   `json:"value"`
		Length  int32             `json:"length"`
		Fields  []json.RawMessage `json:"fields"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return Type{}, fmt.Errorf("type %.40s: %w", raw, err)
	}
	name := strings.ToUpper(strings.TrimSpace(o.Type))
	notNull := strings.Contains(name, "NOT NULL")
	var t Type
	switch {
	case strings.HasPrefix(name, "ARRAY"), strings.HasPrefix(name, "VECTOR"):
		e, err := parsePaimon(o.Element, depth+1)
		if err != nil {
			return Type{}, err
		}
		t = ArrayOf(e)
		if name[0] == 'V' {
			if o.Length < 1 {
				return Type{}, fmt.Errorf("type VECTOR has length %d", o.Length)
			}
			t.Fixed = o.Length
		}
	case strings.HasPrefix(name, "MULTISET"):
		e, err := parsePaimon(o.Element, depth+1)
		if err != nil {
			return Type{}, err
		}
		t = MapOf(e, Of(Int4).WithNotNull(true))
		t.Multiset = true
	case strings.HasPrefix(name, "MAP"):
		k, err := parsePaimon(o.Key, depth+1)
		if err != nil {
			return Type{}, err
		}
		v, err := parsePaimon(o.Value, depth+1)
		if err != nil {
			return Type{}, err
		}
		t = MapOf(k, v)
	case strings.HasPrefix(name, "ROW"):
		t = Type{Kind: Row, Fields: make([]Field, len(o.Fields))}
		for i, f := range o.Fields {
			var err error
			if t.Fields[i], err = parsePaimonField(f, depth+1); err != nil {
				return Type{}, err
			}
		}
	default:
		return Type{}, fmt.Errorf("unknown type %q", o.Type)
	}
	t.NotNull = notNull
	return t, nil
}

// ParsePaimonField reads one entry of "fields": id, name, type and the optional
// description and defaultValue.
func ParsePaimonField(raw json.RawMessage) (Field, error) { return parsePaimonField(raw, 0) }

func parsePaimonField(raw json.RawMessage, depth int) (Field, error) {
	var o struct {
		ID          *int32          `json:"id"`
		Name        string          `json:"name"`
		Type        json.RawMessage `json:"type"`
		Description string          `json:"description"`
		Default     *string         `json:"defaultValue"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return Field{}, fmt.Errorf("field: %w", err)
	}
	if o.ID == nil {
		return Field{}, fmt.Errorf("field %q has no id", o.Name)
	}
	t, err := parsePaimon(o.Type, depth)
	if err != nil {
		return Field{}, fmt.Errorf("field %q: %w", o.Name, err)
	}
	f := Field{ID: *o.ID, Name: o.Name, Type: t, Description: o.Description}
	if o.Default != nil {
		f.Default, f.HasDefault = *o.Default, true
	}
	return f, nil
}

// typeScanner cuts a type string into words, numbers and punctuation; blanks and
// case do not matter.
type typeScanner struct {
	s   string
	pos int
	tok string // current token, upper case; "" at the end
	raw string // as written
}

func (p *typeScanner) next() {
	for p.pos < len(p.s) && (p.s[p.pos] == ' ' || p.s[p.pos] == '\t' || p.s[p.pos] == '\n') {
		p.pos++
	}
	if p.pos >= len(p.s) {
		p.tok, p.raw = "", ""
		return
	}
	start := p.pos
	switch c := p.s[p.pos]; {
	case strings.IndexByte("(),<>", c) >= 0:
		p.pos++
	default:
		for p.pos < len(p.s) && strings.IndexByte("(),<> \t\n", p.s[p.pos]) < 0 {
			p.pos++
		}
	}
	p.raw = p.s[start:p.pos]
	p.tok = strings.ToUpper(p.raw)
}

func (p *typeScanner) accept(words ...string) bool {
	pos, tok, raw := p.pos, p.tok, p.raw
	for _, w := range words {
		if p.tok != w {
			p.pos, p.tok, p.raw = pos, tok, raw
			return false
		}
		p.next()
	}
	return true
}

// params reads "(a, b, ...)", or nothing.
func (p *typeScanner) params() ([]string, error) {
	if !p.accept("(") {
		return nil, nil
	}
	var out []string
	for {
		if p.tok == "" || p.tok == ")" {
			return nil, fmt.Errorf("type %q: parameter expected", p.s)
		}
		out = append(out, p.raw)
		p.next()
		if p.accept(")") {
			return out, nil
		}
		if !p.accept(",") {
			return nil, fmt.Errorf("type %q: \")\" expected", p.s)
		}
	}
}

// number returns parameter i of ps, def when there is none.
func (p *typeScanner) number(ps []string, i, def, lo, hi int) (int, error) {
	if i >= len(ps) {
		return def, nil
	}
	n, err := strconv.Atoi(ps[i])
	if err != nil || n < lo || n > hi {
		return 0, fmt.Errorf("type %q: parameter %s is not in %d to %d", p.s, ps[i], lo, hi)
	}
	return n, nil
}

// ParsePaimonText reads a type in Paimon's text form, such as
// `DECIMAL(10, 2) NOT NULL`, with the aliases that Paimon's own parser takes and
// the generic spellings ARRAY<T>, MAP<K, V>, MULTISET<T>, VECTOR<T, n>.
func ParsePaimonText(s string) (Type, error) {
	p := &typeScanner{s: s}
	p.next()
	t, err := p.parse(0)
	if err != nil {
		return Type{}, err
	}
	if p.tok != "" {
		return Type{}, fmt.Errorf("type %q: unexpected %q", s, p.raw)
	}
	return t, nil
}

func (p *typeScanner) parse(depth int) (Type, error) {
	if depth > maxTypeDepth {
		return Type{}, fmt.Errorf("type %q is nested too deep", p.s)
	}
	t, err := p.base(depth)
	if err != nil {
		return Type{}, err
	}
	if p.accept("NOT", "NULL") {
		t.NotNull = true
	} else {
		p.accept("NULL")
	}
	return t, nil
}

func (p *typeScanner) base(depth int) (Type, error) {
	word := p.tok
	p.next()
	switch word {
	case "ARRAY", "MAP", "MULTISET", "VECTOR":
		return p.generic(word, depth)
	}
	ps, err := p.params()
	if err != nil {
		return Type{}, err
	}
	plain := func(k Kind) (Type, error) {
		if len(ps) > 0 {
			return Type{}, fmt.Errorf("type %q takes no parameters", p.s)
		}
		return Of(k), nil
	}
	switch word {
	case "BOOLEAN":
		return plain(Bool)
	case "TINYINT":
		return plain(TinyInt)
	case "SMALLINT":
		return plain(Int2)
	case "INT", "INTEGER":
		return plain(Int4)
	case "BIGINT":
		return plain(Int8)
	case "FLOAT":
		return plain(Float4)
	case "DOUBLE":
		p.accept("PRECISION")
		return plain(Float8)
	case "DATE":
		return plain(Date)
	case "STRING":
		return plain(Text)
	case "BYTES":
		return plain(Bytea)
	case "VARIANT":
		return plain(Variant)
	case "BLOB":
		t, err := plain(Bytea)
		t.Lake = LakeBlob
		return t, err
	case "CHAR", "VARCHAR", "BINARY", "VARBINARY":
		n, err := p.number(ps, 0, 1, 0, MaxLength)
		if err != nil {
			return Type{}, err
		}
		return lengthType(word, int32(n)), nil
	case "DECIMAL", "NUMERIC", "DEC":
		prec, err := p.number(ps, 0, 10, 1, 38)
		if err != nil {
			return Type{}, err
		}
		scale, err := p.number(ps, 1, 0, 0, prec)
		if err != nil {
			return Type{}, err
		}
		return NumericOf(prec, scale), nil
	case "TIME":
		prec, err := p.number(ps, 0, 0, 0, 9)
		if err != nil {
			return Type{}, err
		}
		p.accept("WITHOUT", "TIME", "ZONE")
		return Type{Kind: Time, Prec: uint8(prec), Mod: int32(prec) + 1}, nil
	case "TIMESTAMP", "TIMESTAMP_LTZ":
		prec, err := p.number(ps, 0, 6, 0, 9)
		if err != nil {
			return Type{}, err
		}
		kind := Timestamp
		if word == "TIMESTAMP_LTZ" || p.accept("WITH", "LOCAL", "TIME", "ZONE") {
			kind = TimestampTZ
		} else {
			p.accept("WITHOUT", "TIME", "ZONE")
		}
		return TimestampOf(kind, prec), nil
	case "GEOMETRY", "GEOGRAPHY":
		t := Type{Kind: Bytea, Lake: LakeGeometry}
		if word == "GEOGRAPHY" {
			t.Lake = LakeGeography
		}
		for _, s := range ps {
			t.Fields = append(t.Fields, Field{ID: -1, Name: s})
		}
		return t, nil
	}
	return Type{}, fmt.Errorf("unknown type %q", p.s)
}

func (p *typeScanner) generic(word string, depth int) (Type, error) {
	if !p.accept("<") {
		return Type{}, fmt.Errorf("type %q: \"<\" expected after %s", p.s, word)
	}
	first, err := p.parse(depth + 1)
	if err != nil {
		return Type{}, err
	}
	t := ArrayOf(first)
	switch word {
	case "MULTISET":
		t = MapOf(first, Of(Int4).WithNotNull(true))
		t.Multiset = true
	case "MAP":
		if !p.accept(",") {
			return Type{}, fmt.Errorf("type %q: \",\" expected", p.s)
		}
		v, err := p.parse(depth + 1)
		if err != nil {
			return Type{}, err
		}
		t = MapOf(first, v)
	case "VECTOR":
		if !p.accept(",") {
			return Type{}, fmt.Errorf("type %q: \",\" expected", p.s)
		}
		n, err := p.number([]string{p.tok}, 0, 0, 1, MaxLength)
		if err != nil {
			return Type{}, err
		}
		p.next()
		t.Fixed = int32(n)
	}
	if !p.accept(">") {
		return Type{}, fmt.Errorf("type %q: \">\" expected", p.s)
	}
	return t, nil
}

func lengthType(word string, n int32) Type {
	switch word {
	case "CHAR":
		return Type{Kind: BpChar, Len: n, Mod: n + 4}
	case "VARCHAR":
		if n == MaxLength {
			return Type{Kind: Text}
		}
		mod := n + 4
		if n > MaxLength-4 {
			mod = 0
		}
		return Type{Kind: Varchar, Len: n, Mod: mod}
	case "BINARY":
		return Type{Kind: Bytea, Lake: LakeBinary, Len: n}
	}
	if n == MaxLength {
		return Type{Kind: Bytea}
	}
	return Type{Kind: Bytea, Lake: LakeVarbinary, Len: n}
}

// TimestampOf makes TIMESTAMP(prec), with or without local time zone. Six digits
// are what PostgreSQL's plain timestamp has, so that one carries no typmod.
func TimestampOf(k Kind, prec int) Type {
	t := Type{Kind: k, Prec: uint8(prec), Mod: int32(prec) + 1}
	if prec == 6 {
		t.Mod = 0
	}
	return t
}

// AppendPaimonJSON appends t as Paimon's schema files hold it.
func AppendPaimonJSON(dst []byte, t Type) ([]byte, error) {
	name := func(s string) []byte {
		if t.NotNull {
			s += " NOT NULL"
		}
		return strconv.AppendQuote(dst, s)
	}
	var err error
	switch t.Kind {
	case Array, Map:
		if t.Elem == nil || t.Kind == Map && t.Key == nil {
			return nil, fmt.Errorf("type %s has no element type", t)
		}
		dst = append(dst, `{"type":`...)
		switch {
		case t.Kind == Map && t.Multiset:
			dst = append(name("MULTISET"), `,"element":`...)
			dst, err = AppendPaimonJSON(dst, *t.Key)
		case t.Kind == Map:
			dst = append(name("MAP"), `,"key":`...)
			if dst, err = AppendPaimonJSON(dst, *t.Key); err != nil {
				return nil, err
			}
			dst = append(dst, `,"value":`...)
			dst, err = AppendPaimonJSON(dst, *t.Elem)
		case t.Fixed > 0:
			dst = append(name("VECTOR"), `,"element":`...)
			if dst, err = AppendPaimonJSON(dst, *t.Elem); err != nil {
				return nil, err
			}
			dst = append(dst, `,"length":`...)
			dst = strconv.AppendInt(dst, int64(t.Fixed), 10)
		default:
			dst = append(name("ARRAY"), `,"element":`...)
			dst, err = AppendPaimonJSON(dst, *t.Elem)
		}
		if err != nil {
			return nil, err
		}
		return append(dst, '}'), nil
	case Row:
		dst = append(dst, `{"type":`...)
		dst = append(name("ROW"), `,"fields":[`...)
		for i, f := range t.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = AppendPaimonField(dst, f); err != nil {
				return nil, err
			}
		}
		return append(dst, "]}"...), nil
	}
	s, err := paimonName(t)
	if err != nil {
		return nil, err
	}
	return name(s), nil
}

// AppendPaimonField appends one entry of "fields".
func AppendPaimonField(dst []byte, f Field) ([]byte, error) {
	str := func(s string) {
		b, _ := json.Marshal(s) // a string always marshals
		dst = append(dst, b...)
	}
	dst = append(dst, `{"id":`...)
	dst = strconv.AppendInt(dst, int64(f.ID), 10)
	dst = append(dst, `,"name":`...)
	str(f.Name)
	dst = append(dst, `,"type":`...)
	dst, err := AppendPaimonJSON(dst, f.Type)
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", f.Name, err)
	}
	if f.Description != "" {
		dst = append(dst, `,"description":`...)
		str(f.Description)
	}
	if f.HasDefault {
		dst = append(dst, `,"defaultValue":`...)
		str(f.Default)
	}
	return append(dst, '}'), nil
}

// paimonName spells an atomic type without its nullability.
func paimonName(t Type) (string, error) {
	switch t.Kind {
	case Bool:
		return "BOOLEAN", nil
	case TinyInt:
		return "TINYINT", nil
	case Int2:
		return "SMALLINT", nil
	case Int4:
		return "INT", nil
	case Int8:
		return "BIGINT", nil
	case Float4:
		return "FLOAT", nil
	case Float8:
		return "DOUBLE", nil
	case Date:
		return "DATE", nil
	case Text:
		return "STRING", nil
	case Variant:
		return "VARIANT", nil
	case BpChar:
		return fmt.Sprintf("CHAR(%d)", max(lengthOf(t), 1)), nil
	case Varchar:
		if n := lengthOf(t); n > 0 && n < MaxLength {
			return fmt.Sprintf("VARCHAR(%d)", n), nil
		}
		return "STRING", nil
	case Bytea:
		return byteaName(t), nil
	case Numeric:
		if t.Prec < 1 || t.Prec > 38 {
			return "", fmt.Errorf("numeric without a precision of 1 to 38 has no Paimon type")
		}
		return fmt.Sprintf("DECIMAL(%d, %d)", t.Prec, t.Scale), nil
	case Time:
		return fmt.Sprintf("TIME(%d)", t.Prec), nil
	case Timestamp:
		return fmt.Sprintf("TIMESTAMP(%d)", t.Prec), nil
	case TimestampTZ:
		return fmt.Sprintf("TIMESTAMP(%d) WITH LOCAL TIME ZONE", t.Prec), nil
	}
	return "", fmt.Errorf("type %s has no Paimon type", t)
}

func lengthOf(t Type) int32 {
	if t.Len == 0 && t.Mod > 4 {
		return t.Mod - 4
	}
	return t.Len
}

func byteaName(t Type) string {
	switch t.Lake {
	case LakeBinary:
		return fmt.Sprintf("BINARY(%d)", max(t.Len, 1))
	case LakeVarbinary:
		return fmt.Sprintf("VARBINARY(%d)", max(t.Len, 1))
	case LakeBlob:
		return "BLOB"
	case LakeGeometry, LakeGeography:
		s := "GEOMETRY"
		if t.Lake == LakeGeography {
			s = "GEOGRAPHY"
		}
		if len(t.Fields) == 0 {
			return s
		}
		ps := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			ps[i] = f.Name
		}
		return s + "(" + strings.Join(ps, ", ") + ")"
	}
	return "BYTES"
}

// PaimonString spells t as Paimon's SQL engines do, for SHOW CREATE TABLE and
// messages: ARRAY<INT>, ROW<a INT, b STRING NOT NULL>.
func PaimonString(t Type) string {
	var s string
	switch t.Kind {
	case Array:
		s = "ARRAY<?>"
		if t.Elem != nil {
			s = "ARRAY<" + PaimonString(*t.Elem) + ">"
			if t.Fixed > 0 {
				s = fmt.Sprintf("VECTOR<%s, %d>", PaimonString(*t.Elem), t.Fixed)
			}
		}
	case Map:
		if t.Multiset {
			s = "MULTISET<" + PaimonString(*t.Key) + ">"
		} else {
			s = "MAP<" + PaimonString(*t.Key) + ", " + PaimonString(*t.Elem) + ">"
		}
	case Row:
		ms := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			ms[i] = "`" + f.Name + "` " + PaimonString(f.Type)
		}
		s = "ROW<" + strings.Join(ms, ", ") + ">"
	default:
		var err error
		if s, err = paimonName(t); err != nil {
			s = strings.ToUpper(t.String())
		}
	}
	if t.NotNull {
		s += " NOT NULL"
	}
	return s
}
