package catalog

import (
	"encoding/json"
	"fmt"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// storedKinds are the names of kinds in stored definitions.
var storedKinds = map[types.Kind]string{
	types.Bool: "bool", types.TinyInt: "tinyint", types.Int2: "int2", types.Int4: "int4", types.Int8: "int8", types.Float4: "float4",
	types.Float8: "float8", types.Numeric: "numeric", types.Text: "text", types.Varchar: "varchar", types.BpChar: "bpchar",
	types.Name: "name", types.Char: "char", types.Bytea: "bytea", types.Date: "date", types.Time: "time", types.TimeTZ: "timetz",
	types.Timestamp: "timestamp", types.TimestampTZ: "timestamptz", types.Interval: "interval", types.UUID: "uuid", types.JSON: "json",
	types.JSONB: "jsonb", types.OID: "oid", types.RegClass: "regclass", types.RegProc: "regproc", types.RegType: "regtype",
	types.RegNamespace: "regnamespace", types.RegRole: "regrole", types.RegOper: "regoper", types.XID: "xid", types.Void: "void",
	types.Array: "array", types.Map: "map", types.Row: "row", types.Record: "record", types.Variant: "variant",
	types.Int2Vector: "int2vector", types.OIDVector: "oidvector", types.AclItem: "aclitem", types.NodeTree: "pg_node_tree",
	types.Inet: "inet", types.PgLSN: "pg_lsn", types.TID: "tid", types.Unknown: "unknown",
}

var kindsOfNames = func() map[string]types.Kind {
	out := map[string]types.Kind{}
	for k, n := range storedKinds {
		out[n] = k
	}
	return out
}()

// StoredType is a type as stored definitions spell it. It holds what Paimon's
// spelling cannot, PostgreSQL's own types among it.
type StoredType struct{ types.Type }

type typeJSON struct {
	Kind     string      `json:"kind"`
	NotNull  bool        `json:"notNull,omitempty"`
	Prec     uint8       `json:"prec,omitempty"`
	Scale    uint8       `json:"scale,omitempty"`
	Mod      int32       `json:"mod,omitempty"`
	Elem     *StoredType `json:"elem,omitempty"`
	Key      *StoredType `json:"key,omitempty"`
	Fields   []fieldJSON `json:"fields,omitempty"`
	Multiset bool        `json:"multiset,omitempty"`
	Fixed    int32       `json:"fixed,omitempty"`
	Lake     types.Lake  `json:"lake,omitempty"`
	Len      int32       `json:"len,omitempty"`
}

type fieldJSON struct {
	Name string     `json:"name"`
	Type StoredType `json:"type"`
}

// MarshalJSON implements json.Marshaler.
func (t StoredType) MarshalJSON() ([]byte, error) {
	name, ok := storedKinds[t.Kind]
	if !ok {
		return nil, fmt.Errorf("type %s cannot be stored", t.Type)
	}
	j := typeJSON{Kind: name, NotNull: t.NotNull, Prec: t.Prec, Scale: t.Scale, Mod: t.Mod, Multiset: t.Multiset, Fixed: t.Fixed, Lake: t.Lake, Len: t.Len}
	if t.Elem != nil {
		j.Elem = &StoredType{*t.Elem}
	}
	if t.Key != nil {
		j.Key = &StoredType{*t.Key}
	}
	for _, f := range t.Type.Fields {
		j.Fields = append(j.Fields, fieldJSON{f.Name, StoredType{f.Type}})
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *StoredType) UnmarshalJSON(b []byte) error {
	var j typeJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	k, ok := kindsOfNames[j.Kind]
	if !ok {
		return fmt.Errorf("type %q is not known", j.Kind)
	}
	t.Type = types.Type{Kind: k, NotNull: j.NotNull, Prec: j.Prec, Scale: j.Scale, Mod: j.Mod, Multiset: j.Multiset, Fixed: j.Fixed, Lake: j.Lake, Len: j.Len}
	if j.Elem != nil {
		t.Elem = &j.Elem.Type
	}
	if j.Key != nil {
		t.Key = &j.Key.Type
	}
	if need := k == types.Array || k == types.Map; need && t.Elem == nil || k == types.Map && t.Key == nil {
		return fmt.Errorf("type %q has no element type", j.Kind)
	}
	for _, f := range j.Fields {
		t.Type.Fields = append(t.Type.Fields, types.Field{ID: -1, Name: f.Name, Type: f.Type.Type})
	}
	return nil
}
