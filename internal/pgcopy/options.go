package pgcopy

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// Format is the format of the data.
type Format uint8

// The formats.
const (
	Text Format = iota
	CSV
	Binary
)

// Header says what the first line is.
type Header uint8

// The kinds of first line: data, passed over, or names that must be those of the
// columns.
const (
	NoHeader Header = iota
	HasHeader
	MatchHeader
)

// Encoding is that of the data; the server's is UTF-8.
type Encoding uint8

// The encodings. SQL_ASCII means that the data is not converted, so it is UTF-8.
const (
	UTF8 Encoding = iota
	Latin1
)

// Options are those of COPY with PostgreSQL's defaults filled in.
type Options struct {
	Format                     Format
	Header                     Header
	Delimiter, Quote, Escape   byte
	Null                       string
	ForceQuoteAll              bool
	ForceQuote                 []string // column names
	ForceNotNull, ForceNull    []string
	Encoding                   Encoding
	quote, escape, delim, null *string
}

// Option is one option as it was written.
type Option struct {
	Name  string
	Value string // the text of its value
	Given bool   // there is a value
	Star  bool   // the value is *
	List  []string
	// IsList: the value is a list in parentheses.
	IsList bool
	// Position points into the statement, as pgerr has it; 0 = unknown.
	Position int
}

func (o *Option) fail(c pgerr.Code, format string, args ...any) error {
	return pgerr.New(c, format, args...).WithPosition(o.Position)
}

// text is the value of an option that must have one.
func (o *Option) text() (string, error) {
	switch {
	case !o.Given:
		return "", pgerr.New(pgerr.SyntaxError, "%s requires a parameter", o.Name)
	case o.Star:
		return "*", nil
	case o.IsList:
		return strings.Join(o.List, "."), nil // PostgreSQL's NameListToString
	}
	return o.Value, nil
}

// boolean reads the value of a switch; not given is true.
func (o *Option) boolean() (v, ok bool) {
	if !o.Given {
		return true, true
	}
	switch strings.ToLower(o.Value) {
	case "true", "on", "1":
		return true, true
	case "false", "off", "0":
		return false, true
	}
	return false, false
}

// ParseOptions checks the options of COPY FROM (from) or COPY TO. The order of the
// checks is PostgreSQL's: it decides which of two mistakes is reported.
func ParseOptions(from bool, opts []Option) (*Options, error) {
	o := &Options{}
	seen := map[string]bool{}
	for i := range opts {
		if err := o.read(from, &opts[i], seen); err != nil {
			return nil, err
		}
	}
	if err := o.check(from); err != nil {
		return nil, err
	}
	return o, nil
}

func (o *Options) read(from bool, opt *Option, seen map[string]bool) error {
	// Names are known before doubles are complained of.
	var err error
	switch opt.Name {
	case "format", "freeze", "delimiter", "null", "header", "quote", "escape", "force_quote", "force_not_null", "force_null",
		"convert_selectively", "encoding":
	default:
		return opt.fail(pgerr.SyntaxError, "option \"%s\" not recognized", opt.Name)
	}
	if seen[opt.Name] {
		return opt.fail(pgerr.SyntaxError, "conflicting or redundant options")
	}
	seen[opt.Name] = true
	str := func(to **string) {
		var v string
		v, err = opt.text()
		*to = &v
	}
	names := func(to *[]string) error {
		if !opt.IsList {
			return opt.fail(pgerr.InvalidParameterValue, "argument to option \"%s\" must be a list of column names", opt.Name)
		}
		*to = opt.List
		return nil
	}
	switch opt.Name {
	case "format":
		v, err := opt.text()
		if err != nil {
			return err
		}
		switch v {
		case "text":
		case "csv":
			o.Format = CSV
		case "binary":
			o.Format = Binary
		default:
			return opt.fail(pgerr.InvalidParameterValue, "COPY format \"%s\" not recognized", v)
		}
	case "freeze":
		if _, ok := opt.boolean(); !ok {
			return pgerr.New(pgerr.SyntaxError, "freeze requires a Boolean value")
		}
	case "delimiter":
		str(&o.delim)
	case "null":
		str(&o.null)
	case "quote":
		str(&o.quote)
	case "escape":
		str(&o.escape)
	case "header":
		return o.header(from, opt)
	case "force_quote":
		if opt.Star {
			o.ForceQuoteAll = true
			return nil
		}
		return names(&o.ForceQuote)
	case "force_not_null":
		return names(&o.ForceNotNull)
	case "force_null":
		return names(&o.ForceNull)
	case "convert_selectively":
		// For PostgreSQL's file_fdw only: it says which columns need converting.
		var ignored []string
		return names(&ignored)
	case "encoding":
		return o.encoding(opt)
	}
	return err
}

func (o *Options) header(from bool, opt *Option) error {
	if on, ok := opt.boolean(); ok {
		if on {
			o.Header = HasHeader
		}
		return nil
	}
	if !strings.EqualFold(opt.Value, "match") {
		return pgerr.New(pgerr.SyntaxError, "header requires a Boolean value or \"match\"")
	}
	if !from {
		return pgerr.New(pgerr.FeatureNotSupported, "cannot use \"match\" with HEADER in COPY TO")
	}
	o.Header = MatchHeader
	return nil
}

// encodings are PostgreSQL's names, letters and digits only, in lower case.
const encodings = " abc alt big5 euccn eucjis2004 eucjp euckr euctw gb18030 gbk iso88591 iso885910 iso885913 iso885914 iso885915 iso885916 iso88592" +
	" iso88593 iso88594 iso88595 iso88596 iso88597 iso88598 iso88599 johab koi8 koi8r koi8u latin1 latin10 latin2 latin3 latin4 latin5" +
	" latin6 latin7 latin8 latin9 mskanji muleinternal shiftjis shiftjis2004 sjis sqlascii tcvn tcvn5712 uhc unicode utf8 vscii win" +
	" win1250 win1251 win1252 win1253 win1254 win1255 win1256 win1257 win1258 win866 win874 win932 win936 win949 win950" +
	" windows1250 windows1251 windows1252 windows1253 windows1254 windows1255 windows1256 windows1257 windows1258 windows866 windows874" +
	" windows932 windows936 windows949 windows950 "

func (o *Options) encoding(opt *Option) error {
	v, err := opt.text()
	if err != nil {
		return err
	}
	var key []byte
	for _, c := range []byte(v) {
		switch {
		case c >= 'A' && c <= 'Z':
			key = append(key, c|0x20)
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			key = append(key, c)
		}
	}
	switch string(key) {
	case "utf8", "unicode", "sqlascii":
	case "latin1", "iso88591":
		o.Encoding = Latin1
	default:
		if len(key) > 0 && strings.Contains(encodings, " "+string(key)+" ") {
			return opt.fail(pgerr.FeatureNotSupported, "COPY with encoding \"%s\" is not supported", v)
		}
		return opt.fail(pgerr.InvalidParameterValue, "argument to option \"encoding\" must be a valid encoding name")
	}
	return nil
}

func (o *Options) check(from bool) error {
	csv := o.Format == CSV
	bad := func(format string, args ...any) error { return pgerr.New(pgerr.InvalidParameterValue, format, args...) }
	not := func(format string, args ...any) error { return pgerr.New(pgerr.FeatureNotSupported, format, args...) }
	if o.Format == Binary {
		if o.delim != nil {
			return pgerr.New(pgerr.SyntaxError, "cannot specify DELIMITER in BINARY mode")
		}
		if o.null != nil {
			return pgerr.New(pgerr.SyntaxError, "cannot specify NULL in BINARY mode")
		}
	}
	delim, quote, escape := "\t", `"`, ""
	o.Null = `\N`
	if csv {
		delim, o.Null = ",", ""
	}
	for _, x := range []struct{ from, to *string }{{o.delim, &delim}, {o.null, &o.Null}, {o.quote, &quote}} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	escape = quote
	if o.escape != nil {
		escape = *o.escape
	}
	switch {
	case len(delim) != 1:
		return not("COPY delimiter must be a single one-byte character")
	case delim == "\r" || delim == "\n":
		return bad("COPY delimiter cannot be newline or carriage return")
	case strings.ContainsAny(o.Null, "\r\n"):
		return bad("COPY null representation cannot use newline or carriage return")
	case !csv && strings.Contains(`\.abcdefghijklmnopqrstuvwxyz0123456789`, delim):
		return bad("COPY delimiter cannot be \"%s\"", delim)
	case o.Format == Binary && o.Header != NoHeader:
		return not("cannot specify HEADER in BINARY mode")
	case !csv && o.quote != nil:
		return not("COPY quote available only in CSV mode")
	case csv && len(quote) != 1:
		return not("COPY quote must be a single one-byte character")
	case csv && delim == quote:
		return bad("COPY delimiter and quote must be different")
	case !csv && o.escape != nil:
		return not("COPY escape available only in CSV mode")
	case csv && len(escape) != 1:
		return not("COPY escape must be a single one-byte character")
	}
	forces := []struct {
		name string
		on   bool
		from bool
	}{
		{"quote", o.ForceQuoteAll || o.ForceQuote != nil, false},
		{"not null", o.ForceNotNull != nil, true},
		{"null", o.ForceNull != nil, true},
	}
	for _, f := range forces {
		if f.on && !csv {
			return not("COPY force %s available only in CSV mode", f.name)
		}
		if f.on && f.from != from {
			way := "TO"
			if f.from {
				way = "FROM"
			}
			return not("COPY force %s only available using COPY %s", f.name, way)
		}
	}
	if strings.Contains(o.Null, delim) {
		return not("COPY delimiter must not appear in the NULL specification")
	}
	if csv && strings.Contains(o.Null, quote) {
		return not("CSV quote character must not appear in the NULL specification")
	}
	o.Delimiter, o.Quote, o.Escape = delim[0], quote[0], escape[0]
	return nil
}
