package aggregate

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// nested_update treats ARRAY<ROW> as a table inside of a row. Without nested-key
// rows are appended, up to count-limit; with it they are put in by key, new keys up
// to the limit, and, with nested-sequence-field, only where those fields are not
// smaller. nested-key-null-strategy says what becomes of rows without a key: merge
// (NULL is a key as any other), ignore or error. A retraction removes equal rows,
// or keys. Rows keep the order in which their keys came (in Java it is not
// defined). Source: FieldNestedUpdateAgg.java (2.1; 1.4 knows no nested sequence,
// and its limit stops updates of keys as well).
var nestedUpdate = Function{
	Name:  "nested_update",
	Takes: isNested,
	Check: func(s Spec) error {
		_, err := newNestedRules(s)
		return err
	},
	New: func(s Spec) (Aggregate, error) {
		r, err := newNestedRules(s)
		if err != nil {
			return nil, err
		}
		return &listFold{rules: r}, nil
	},
}

func isNested(t types.Type) bool { return isArray(t) && t.Elem.Kind == types.Row }

// nestedKeys are the fields by which rows of a nested table are told apart.
type nestedKeys struct {
	at       []int
	strategy string // for keys with NULLs
	fields   []arrow.Array
	rows     arrow.Array
	seen     elements
}

func newNestedKeys(s Spec) (nestedKeys, error) {
	at, err := nestedFields(s, "nested-key")
	k := nestedKeys{at: at, strategy: strings.ToLower(strings.TrimSpace(s.Option("nested-key-null-strategy", "merge")))}
	if err == nil && k.strategy != "merge" && k.strategy != "ignore" && k.strategy != "error" {
		err = badOption(s, "nested-key-null-strategy", "invalid value for option %q: it is one of merge, ignore, error")
	}
	return k, err
}

func nestedFields(s Spec, option string) ([]int, error) {
	var at []int
	fields := types.Schema(s.Column.Type.Elem.Fields)
	for _, name := range s.list(option) {
		i := fields.Index(name)
		if i < 0 {
			return nil, badOption(s, option, "option %q names %q, which is no field of column %q", name, s.Column.Name)
		}
		at = append(at, i)
	}
	return at, nil
}

func (k *nestedKeys) begin(child arrow.Array) {
	s := child.(*array.Struct)
	k.rows = child
	k.fields = k.fields[:0]
	for _, f := range k.at {
		k.fields = append(k.fields, s.Field(f))
	}
}

// key makes the key of a row that is not NULL, in k.seen.key; ok is false where
// the row is to be left out.
func (k *nestedKeys) key(i int) (ok bool, err error) {
	e := &k.seen
	e.key = e.key[:0]
	for _, f := range k.fields {
		if f.IsNull(i) {
			switch k.strategy {
			case "ignore":
				return false, nil
			case "error":
				return false, &Error{Reason: "NULL in the nested key of a row"}
			}
		}
		e.key = appendValue(e.key, f, i)
	}
	return true, nil
}

type nestedRules struct {
	nestedKeys
	sequence []int
	order    *vec.Keyer
	orders   []vec.KeyColumn
	a, b     []byte
	limit    int
}

func newNestedRules(s Spec) (*nestedRules, error) {
	k, err := newNestedKeys(s)
	if err != nil {
		return nil, err
	}
	r := &nestedRules{nestedKeys: k, limit: math.MaxInt32}
	if r.sequence, err = nestedFields(s, "nested-sequence-field"); err != nil {
		return nil, err
	}
	for _, needs := range []string{"nested-key-null-strategy", "nested-sequence-field"} {
		if len(k.at) == 0 && s.Option(needs, "") != "" {
			return nil, badOption(s, needs, "option %q needs %q", "fields."+s.Column.Name+".nested-key")
		}
	}
	for _, f := range r.sequence {
		t := s.Column.Type.Elem.Fields[f].Type
		if t.IsTextLike() {
			t = types.Of(types.Text) // blanks count
		}
		r.orders = append(r.orders, vec.KeyColumn{Type: t, NullsFirst: true})
	}
	if v := strings.TrimSpace(s.Option("count-limit", "")); v != "" {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil {
			return nil, badOption(s, "count-limit", "invalid value for option %q: %q is not an integer", v)
		}
		r.limit = int(n)
	}
	return r, nil
}

func (r *nestedRules) begin(child arrow.Array) {
	r.nestedKeys.begin(child)
	if len(r.sequence) > 0 {
		cols := make([]arrow.Array, len(r.sequence))
		for i, f := range r.sequence {
			cols[i] = child.(*array.Struct).Field(f)
		}
		r.order = vec.NewKeyer(r.orders, cols)
	}
}

func (r *nestedRules) merge(dst, acc, x []int32, accNull, xNull bool) ([]int32, bool, error) {
	if xNull {
		return append(dst, acc...), !accNull, nil
	}
	if len(r.at) == 0 {
		if !accNull && len(acc) >= r.limit {
			return append(dst, acc...), true, nil
		}
		for _, j := range acc {
			if !r.rows.IsNull(int(j)) {
				dst = append(dst, j)
			}
		}
		room := r.limit - len(acc) // NULLs among acc count here
		for _, j := range x {
			if room <= 0 {
				break
			}
			if !r.rows.IsNull(int(j)) {
				dst = append(dst, j)
				room--
			}
		}
		return dst, true, nil
	}
	r.seen.reset()
	dst, err := r.put(dst, acc, false)
	if err == nil {
		dst, err = r.put(dst, x, true)
	}
	return dst, true, err
}

func (r *nestedRules) put(dst, from []int32, limited bool) ([]int32, error) {
	e := &r.seen
	for _, j := range from {
		i := int(j)
		if r.rows.IsNull(i) {
			continue
		}
		if ok, err := r.key(i); err != nil {
			return dst, err
		} else if !ok {
			continue
		}
		at := e.find()
		switch {
		case at != nil:
			if r.order == nil || r.notBefore(i, int(dst[*at])) {
				dst[*at] = j
			}
		case !limited || e.len() < r.limit:
			e.put(int32(len(dst)))
			dst = append(dst, j)
		}
	}
	return dst, nil
}

func (r *nestedRules) notBefore(i, j int) bool {
	r.a, r.b = r.order.Append(r.a[:0], i), r.order.Append(r.b[:0], j)
	return bytes.Compare(r.a, r.b) >= 0
}

func (r *nestedRules) retract(dst, acc, x []int32, accNull, xNull bool) ([]int32, bool, error) {
	if accNull || xNull {
		return append(dst, acc...), !accNull, nil
	}
	e := &r.seen
	keyOf := func(i int) (bool, error) {
		if r.rows.IsNull(i) {
			return false, nil
		}
		if len(r.at) > 0 {
			return r.key(i)
		}
		e.key = appendValue(e.key[:0], r.rows, i)
		return true, nil
	}
	e.reset()
	for _, j := range x {
		if ok, err := keyOf(int(j)); err != nil {
			return dst, false, err
		} else if ok && e.find() == nil {
			e.put(removed)
		}
	}
	for _, j := range acc {
		ok, err := keyOf(int(j))
		if err != nil {
			return dst, false, err
		}
		if !ok {
			continue
		}
		at := e.find()
		switch {
		case at != nil && *at == removed:
		case len(r.at) == 0:
			dst = append(dst, j)
		case at != nil: // the later row of a key
			dst[*at] = j
		default:
			e.put(int32(len(dst)))
			dst = append(dst, j)
		}
	}
	return dst, true, nil
}

// nested_partial_update puts rows of a nested table in by nested-key, field by
// field: a NULL leaves what was there. Source: FieldNestedPartialUpdateAgg.java.
var nestedPartialUpdate = Function{
	Name:  "nested_partial_update",
	Takes: isNested,
	Check: func(s Spec) error {
		_, err := newPartialNested(s)
		return err
	},
	New: func(s Spec) (Aggregate, error) { return newPartialNested(s) },
}

func newPartialNested(s Spec) (Aggregate, error) {
	k, err := newNestedKeys(s)
	if err != nil {
		return nil, err
	}
	if len(k.at) == 0 {
		return nil, badOption(s, "nested-key", "aggregate function nested_partial_update needs option %q")
	}
	return &partialNestedFold{nestedKeys: k, width: len(s.Column.Type.Elem.Fields)}, nil
}

// partialNestedFold holds a value as the places of its rows' fields, width for each
// row: the place of a field in its own column, or noRow throughout.
type partialNestedFold struct {
	nestedKeys
	width        int
	acc, next, x []int32
	cols         []arrow.Array
}

const (
	nullField = -1
	noRow     = -2 // the row itself is NULL
)

func (f *partialNestedFold) Fold(in *Input) (arrow.Array, error) {
	offs, child := vec.ListParts(in.Col)
	f.begin(child)
	f.cols = f.cols[:0]
	for c := range f.width {
		f.cols = append(f.cols, child.(*array.Struct).Field(c))
	}
	valid, off := vec.Validity(in.Col)
	n := len(in.Ends)
	out, null := make([]int32, n+1), nulls{n: n}
	var places []int32
	i := 0
	for k, e := range in.Ends {
		acc, some := f.acc[:0], false
		for ; i < int(e); i++ {
			op := Add
			if in.Ops != nil {
				op = in.Ops[i]
			}
			ok := vec.BitAt(valid, off+i)
			x := f.x[:0]
			if ok && op != Skip && op != Clear {
				for j := offs[i]; j < offs[i+1]; j++ {
					x = f.load(x, j)
				}
			}
			f.x = x
			var err error
			switch op {
			case Add:
				if ok {
					f.next, err = f.merge(f.next[:0], acc, x)
					acc, f.next, some = f.next, acc, true
				}
			case AddReversed: // nothing of a late row that is NULL, and all of one before NULL
				if !some {
					acc, some = append(acc[:0], x...), ok
				} else {
					f.next, err = f.merge(f.next[:0], x, acc)
					acc, f.next = f.next, acc
				}
			case Retract, SetRetract:
				err = noRetract("nested_partial_update")
			case Set:
				acc, some = append(acc[:0], x...), ok
			case Clear:
				acc, some = acc[:0], false
			}
			if err != nil {
				return nil, err
			}
		}
		f.acc = acc
		if some {
			places = append(places, acc...)
		} else {
			null.set(k)
		}
		if len(places) > maxBytes {
			return nil, errTooLong
		}
		out[k+1] = int32(len(places) / f.width)
	}
	return vec.MakeList(in.Col.DataType(), out, f.build(child.DataType(), places), null.bits), nil
}

// load appends the places of the row at j.
func (f *partialNestedFold) load(x []int32, j int32) []int32 {
	gone := f.rows.IsNull(int(j))
	for _, c := range f.cols {
		switch {
		case gone:
			x = append(x, noRow)
		case c.IsNull(int(j)):
			x = append(x, nullField)
		default:
			x = append(x, j)
		}
	}
	return x
}

func (f *partialNestedFold) merge(dst, a, b []int32) ([]int32, error) {
	e := &f.seen
	e.reset()
	w := f.width
	for _, from := range [2][]int32{a, b} {
		for ; len(from) > 0; from = from[w:] {
			row := from[:w]
			if row[0] == noRow {
				continue
			}
			e.key = e.key[:0]
			whole := true
			for k, at := range f.at {
				if row[at] < 0 {
					whole = false
					e.key = append(e.key, 0)
					continue
				}
				e.key = appendValue(e.key, f.fields[k], int(row[at]))
			}
			if !whole && f.strategy == "ignore" {
				continue
			}
			if !whole && f.strategy == "error" {
				return dst, &Error{Reason: "NULL in the nested key of a row"}
			}
			at := e.find()
			if at == nil {
				e.put(int32(len(dst)))
				dst = append(dst, row...)
				continue
			}
			for c, j := range row {
				if j >= 0 {
					dst[int(*at)+c] = j
				}
			}
		}
	}
	return dst, nil
}

// build makes the rows that places name.
func (f *partialNestedFold) build(dt arrow.DataType, places []int32) arrow.Array {
	n := len(places) / f.width
	null := nulls{n: n}
	cols := make([]arrow.Array, f.width)
	one := make([]int32, n)
	for c := range cols {
		for r := range one {
			p := places[r*f.width+c]
			if p == noRow {
				null.set(r)
			}
			one[r] = max(p, nullField)
		}
		cols[c] = vec.TakeNull(f.cols[c], one)
	}
	return vec.MakeStruct(dt, n, cols, slices.Clone(null.bits))
}
