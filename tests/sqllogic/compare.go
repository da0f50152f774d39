package sqllogic

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Value is one value as the wire sends it in text; nil is NULL.
type Value = *string

// rowwise is a value in a rowwise file.
func rowwise(v Value) string {
	if v == nil {
		return "NULL"
	}
	if *v == "" {
		return "(empty)"
	}
	if !strings.ContainsAny(*v, "\n\t\r") {
		return *v
	}
	return strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(*v)
}

// classic is a value of type t in a file of the SQLite corpus.
func classic(v Value, t byte) string {
	if v == nil {
		return "NULL"
	}
	s := *v
	switch t {
	case 'I':
		switch s {
		case "t", "true":
			return "1"
		case "f", "false":
			return "0"
		}
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return strconv.FormatFloat(math.Trunc(f), 'f', 0, 64)
		}
		return "0"
	case 'R':
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return strconv.FormatFloat(f, 'f', 3, 64)
		}
		return "0.000"
	}
	if s == "" {
		return "(empty)"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '@'
		}
		return r
	}, s)
}

var (
	number = regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$`)
	hashed = regexp.MustCompile(`^(\d+) values hashing to ([0-9a-f]{32})$`)
)

func significant(s string) int {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		s = s[:i]
	}
	return len(strings.TrimLeft(strings.ReplaceAll(strings.TrimLeft(s, "+-"), ".", ""), "0"))
}

// closeFloat lets floats of 15 significant digits or more differ by rounding
// noise; shorter ones must be equal as text.
func closeFloat(a, b string) bool {
	if a == b {
		return true
	}
	if !number.MatchString(a) || !number.MatchString(b) || max(significant(a), significant(b)) < 15 {
		return false
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && math.Abs(x-y) <= 1e-12*max(math.Abs(x), math.Abs(y), 1e-3)
}

// check compares rows with a record's; "" when they are equal, else why not.
func check(r *Record, rows [][]Value, cols int, wise bool, sort string) string {
	if len(rows) > 0 && r.Types != "" && len(r.Types) != cols {
		return fmt.Sprintf("%d columns, %d expected", cols, len(r.Types))
	}
	if r.Sort != "" {
		sort = r.Sort
	}
	typ := func(k int) byte {
		if k < len(r.Types) {
			return r.Types[k]
		}
		return 'T'
	}
	want := slices.Clone(r.Want)
	var got []string
	if wise {
		for _, row := range rows {
			f := make([]string, len(row))
			for k, v := range row {
				f[k] = rowwise(v)
			}
			got = append(got, strings.Join(f, "\t"))
		}
		switch sort {
		case "rowsort":
			slices.Sort(got)
			slices.Sort(want)
		case "valuesort":
			got = strings.Split(strings.Join(got, "\t"), "\t")
			want = strings.Split(strings.Join(want, "\t"), "\t")
			slices.Sort(got)
			slices.Sort(want)
		}
		if why, ok := checkHash(want, got, len(rows)*cols); ok {
			return why
		}
		if len(got) == len(want) {
			same := true
			for i := range got {
				if got[i] != want[i] && !closeRow(got[i], want[i], typ, sort == "valuesort") {
					same = false
					break
				}
			}
			if same {
				return ""
			}
		}
		return difference(got, want)
	}
	vals := make([][]string, len(rows))
	for i, row := range rows {
		vals[i] = make([]string, len(row))
		for k, v := range row {
			vals[i][k] = classic(v, typ(k))
		}
	}
	if sort == "rowsort" {
		slices.SortFunc(vals, slices.Compare[[]string])
	}
	for _, v := range vals {
		got = append(got, v...)
	}
	if sort == "valuesort" {
		slices.Sort(got)
	}
	if why, ok := checkHash(want, got, len(got)); ok {
		return why
	}
	if cols > 1 && len(want) > 0 && len(want) == len(rows) {
		got = got[:0] // one row a line, divided by blanks
		for i, v := range vals {
			got = append(got, strings.Join(v, "\t"))
			if !strings.Contains(want[i], "\t") {
				want[i] = strings.Join(strings.Fields(want[i]), "\t")
			}
		}
	}
	if slices.Equal(got, want) {
		return ""
	}
	return difference(got, want)
}

// checkHash compares with "N values hashing to MD5"; ok is false when the record
// is no such line.
func checkHash(want, got []string, values int) (why string, ok bool) {
	if len(want) != 1 {
		return "", false
	}
	m := hashed.FindStringSubmatch(want[0])
	if m == nil {
		return "", false
	}
	h := md5.New()
	for _, s := range got {
		h.Write([]byte(s))
		h.Write([]byte{'\n'})
	}
	if m[1] == strconv.Itoa(values) && m[2] == hex.EncodeToString(h.Sum(nil)) {
		return "", true
	}
	return fmt.Sprintf("hash of %d values differs", values), true
}

func closeRow(got, want string, typ func(int) byte, any bool) bool {
	g, w := strings.Split(got, "\t"), strings.Split(want, "\t")
	if len(g) != len(w) {
		return false
	}
	for k := range g {
		if g[k] != w[k] && !((any || typ(k) == 'R') && closeFloat(g[k], w[k])) {
			return false
		}
	}
	return true
}

func difference(got, want []string) string {
	at := func(s []string, k int) string {
		if k >= len(s) {
			return "<no more>"
		}
		return strconv.Quote(s[k][:min(len(s[k]), 200)])
	}
	for k := range max(len(got), len(want)) {
		if g, w := at(got, k), at(want, k); g != w {
			return fmt.Sprintf("line %d: got %s, expected %s (%d/%d lines)", k+1, g, w, len(got), len(want))
		}
	}
	return "differs"
}

var sqlstate = regexp.MustCompile(`^\(([0-9A-Z]{5})\)$`)

// matches reports whether an error is the expected one.
func matches(pattern, code, message string) bool {
	if pattern == "" {
		return true
	}
	if m := sqlstate.FindStringSubmatch(pattern); m != nil {
		return m[1] == code
	}
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return strings.Contains(message, pattern)
	}
	return re.MatchString(message)
}
