package types

import (
	"encoding/json"
	"testing"
)

func TestPaimonAtomic(t *testing.T) {
	for _, c := range []struct{ in, out, pg string }{
		{"BOOLEAN", "BOOLEAN", "boolean"},
		{"tinyint not null", "TINYINT NOT NULL", "smallint"},
		{"INTEGER", "INT", "integer"},
		{"DOUBLE PRECISION", "DOUBLE", "double precision"},
		{"CHAR", "CHAR(1)", "character(1)"},
		{"VARCHAR", "VARCHAR(1)", "character varying(1)"},
		{"VARCHAR(2147483647)", "STRING", "text"},
		{" varchar ( 20 ) ", "VARCHAR(20)", "character varying(20)"},
		{"VARBINARY", "VARBINARY(1)", "bytea"},
		{"VARBINARY(2147483647)", "BYTES", "bytea"},
		{"BINARY(3) NOT NULL", "BINARY(3) NOT NULL", "bytea"},
		{"DEC", "DECIMAL(10, 0)", "numeric(10,0)"},
		{"NUMERIC(20,2)", "DECIMAL(20, 2)", "numeric(20,2)"},
		{"TIME", "TIME(0)", "time(0) without time zone"},
		{"TIME(3) WITHOUT TIME ZONE", "TIME(3)", "time(3) without time zone"},
		{"TIMESTAMP", "TIMESTAMP(6)", "timestamp without time zone"},
		{"TIMESTAMP(3) WITHOUT TIME ZONE NOT NULL", "TIMESTAMP(3) NOT NULL", "timestamp(3) without time zone"},
		{"TIMESTAMP_LTZ(9)", "TIMESTAMP(9) WITH LOCAL TIME ZONE", "timestamp(9) with time zone"},
		{"TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "timestamp with time zone"},
		{"BLOB", "BLOB", "bytea"},
		{"VARIANT", "VARIANT", "jsonb"},
		{"GEOMETRY(OGC:CRS84)", "GEOMETRY(OGC:CRS84)", "bytea"},
		{"GEOGRAPHY(OGC:CRS84, SPHERICAL) NOT NULL", "GEOGRAPHY(OGC:CRS84, SPHERICAL) NOT NULL", "bytea"},
		{"ARRAY<INT NOT NULL>", "ARRAY<INT NOT NULL>", "integer[]"},
		{"VECTOR<FLOAT, 3>", "VECTOR<FLOAT, 3>", "real[]"},
	} {
		ty, err := ParsePaimonText(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if got := PaimonString(ty); got != c.out {
			t.Errorf("%s: %s, want %s", c.in, got, c.out)
		}
		if got := ty.String(); got != c.pg {
			t.Errorf("%s: %s, want %s", c.in, got, c.pg)
		}
	}
	for _, bad := range []string{"", "FOO", "INT(3)", "DECIMAL(39)", "DECIMAL(5,6)", "VARCHAR(x)", "CHAR(2", "INT INT", "TIMESTAMP(10)", "ARRAY<INT"} {
		if ty, err := ParsePaimonText(bad); err == nil {
			t.Errorf("%q parsed as %s", bad, PaimonString(ty))
		}
	}
}

func TestPaimonNested(t *testing.T) {
	for _, s := range []string{
		`{"type":"ARRAY","element":"STRING"}`,
		`{"type":"MAP NOT NULL","key":"STRING NOT NULL","value":{"type":"ARRAY","element":"INT"}}`,
		`{"type":"MULTISET","element":"INT NOT NULL"}`,
		`{"type":"VECTOR NOT NULL","element":"FLOAT","length":4}`,
		`{"type":"ROW","fields":[{"id":3,"name":"a\"b","type":"INT","description":"d","defaultValue":"1"},{"id":5,"name":"n","type":{"type":"ROW NOT NULL","fields":[{"id":4,"name":"z","type":"DOUBLE"}]}}]}`,
	} {
		ty, err := ParsePaimon(json.RawMessage(s))
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		got, err := AppendPaimonJSON(nil, ty)
		if err != nil || string(got) != s {
			t.Errorf("got  %s (%v)\nwant %s", got, err, s)
		}
	}
	deep := []byte(`"INT"`)
	for range 100 {
		deep = append(append([]byte(`{"type":"ARRAY","element":`), deep...), '}')
	}
	if _, err := ParsePaimon(deep); err == nil {
		t.Error("a type 100 levels deep was taken")
	}
}
