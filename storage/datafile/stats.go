package datafile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// mode says how much of a column's statistics goes into the manifest.
type mode struct {
	kind  modeKind
	chars int // of truncate: code points of text, bytes of binary values
}

type modeKind uint8

const (
	modeNone modeKind = iota // not even the number of NULLs
	modeCounts
	modeTruncate
	modeFull
)

// systemMode is what keys and system columns have, whatever the options say.
var systemMode = mode{modeTruncate, 128}

// parseMode reads none, counts, full or truncate(n), in any case.
func parseMode(key, v string) (mode, error) {
	s := strings.ToLower(strings.TrimSpace(v))
	switch s {
	case "none":
		return mode{kind: modeNone}, nil
	case "counts":
		return mode{kind: modeCounts}, nil
	case "full":
		return mode{kind: modeFull}, nil
	}
	if n, ok := strings.CutPrefix(s, "truncate("); ok {
		if n, ok = strings.CutSuffix(n, ")"); ok {
			if c, err := strconv.Atoi(n); err == nil && c > 0 {
				return mode{modeTruncate, c}, nil
			}
		}
	}
	return mode{}, fmt.Errorf("option %q is %q, not none, counts, full or truncate(n)", key, v)
}

// statsModes returns the mode of each field of s. A column's own option counts
// first; then columns behind metadata.stats-keep-first-n-columns have none; then
// the level's mode; then the table's. key are the columns of the trimmed key
// when the file has no columns of its own for it.
// Source: StatsCollectorFactories.java.
func statsModes(s types.Schema, key []string, o schema.Options, level int32) ([]mode, error) {
	name, text := "metadata.stats-mode", o.String("metadata.stats-mode", "truncate(16)")
	per, err := perLevel(o, "metadata.stats-mode.per.level", level)
	if err != nil {
		return nil, err
	}
	if per != "" {
		name, text = "metadata.stats-mode.per.level", per
	}
	def, err := parseMode(name, text)
	if err != nil {
		return nil, err
	}
	first, err := o.Int("metadata.stats-keep-first-n-columns", -1)
	if err != nil {
		return nil, err
	}
	out := make([]mode, len(s))
	count := int64(0)
	for i, f := range s {
		k := "fields." + f.Name + ".stats-mode"
		v, own := o[k]
		switch {
		case own:
			if out[i], err = parseMode(k, v); err != nil {
				return nil, err
			}
			count++
		case contains(key, f.Name):
			out[i] = systemMode
		default:
			if out[i] = def; first >= 0 && count >= first {
				out[i] = mode{kind: modeNone}
			}
			count++
		}
	}
	return out, nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// perLevel returns what a map option such as "0:none,5:full" says of a level, ""
// for nothing.
func perLevel(o schema.Options, key string, level int32) (string, error) {
	out := ""
	for _, item := range o.List(key) {
		l, v, ok := strings.Cut(item, ":")
		n, err := strconv.ParseInt(strings.TrimSpace(l), 10, 32)
		if !ok || err != nil {
			return "", fmt.Errorf("option %q is %q, not a list such as '0:x,5:y'", key, o[key])
		}
		if int32(n) == level {
			out = strings.TrimSpace(v)
		}
	}
	return out, nil
}

// column is what a manifest says of one column.
type column struct {
	lo, hi types.Datum
	nulls  int64 // -1 = unknown: then nothing is known
}

// reduce applies a mode to what the format collected.
func reduce(t types.Type, st format.ColumnStats, m mode) column {
	if st.NullCount < 0 || m.kind == modeNone {
		return column{nulls: -1}
	}
	c := column{nulls: st.NullCount}
	if m.kind == modeCounts || st.Min == nil || st.Max == nil || t.Lake == types.LakeGeometry || t.Lake == types.LakeGeography {
		return c
	}
	c.lo, c.hi = st.Min, st.Max
	if m.kind == modeTruncate {
		c.lo = truncateMin(c.lo, m.chars)
		var ok bool
		if c.hi, ok = truncateMax(c.hi, m.chars); !ok {
			c.lo, c.hi = nil, nil
		}
	}
	return c
}

// truncateMin returns a value not above d: the first n code points or bytes.
func truncateMin(d types.Datum, n int) types.Datum {
	switch v := d.(type) {
	case string:
		return v[:runeEnd(v, n)]
	case []byte:
		return v[:min(n, len(v))]
	}
	return d
}

// truncateMax returns a value not below d: what was cut is made up for by adding
// one to the last code point or byte that can be incremented, and dropping those
// behind it. False when none can. Code points above the surrogates follow those
// below: Java writes '?' there, which is smaller.
// Source: TruncateSimpleColStatsCollector.java.
func truncateMax(d types.Datum, n int) (types.Datum, bool) {
	switch v := d.(type) {
	case string:
		end := runeEnd(v, n)
		if end == len(v) {
			return v, true
		}
		for end > 0 {
			r, size := utf8.DecodeLastRuneInString(v[:end])
			end -= size
			if r == utf8.RuneError && size <= 1 {
				return nil, false // not text: byte order says nothing of code points
			}
			if r++; r == 0xd800 {
				r = 0xe000
			}
			if r <= utf8.MaxRune {
				return v[:end] + string(r), true
			}
		}
		return nil, false
	case []byte:
		if len(v) <= n {
			return v, true
		}
		out := append([]byte(nil), v[:n]...)
		for i := n - 1; i >= 0; i-- {
			if out[i] != 0xff {
				out[i]++
				return out[:i+1], true
			}
		}
		return nil, false
	}
	return d, true
}

// runeEnd is where the first n code points of s end.
func runeEnd(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// encodeStats writes statistics of the columns in keep.
func encodeStats(s types.Schema, cols []column, keep []int) (manifest.Stats, error) {
	var st manifest.Stats
	ts := make([]types.Type, len(keep))
	lo, hi := make([]types.Datum, len(keep)), make([]types.Datum, len(keep))
	st.NullCounts = make([]int64, len(keep))
	for i, k := range keep {
		ts[i], lo[i], hi[i], st.NullCounts[i] = s[k].Type, cols[k].lo, cols[k].hi, cols[k].nulls
	}
	var err error
	if st.Min, err = binrow.Encode(ts, lo); err != nil {
		return st, fmt.Errorf("statistics: %w", err)
	}
	if st.Max, err = binrow.Encode(ts, hi); err != nil {
		return st, fmt.Errorf("statistics: %w", err)
	}
	return st, nil
}
