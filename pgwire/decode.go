package pgwire

import (
	"errors"
	"fmt"

	"github.com/paimon-sql/paimon-sql/internal/charset"
	"github.com/paimon-sql/paimon-sql/internal/pgbin"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// decoder turns parameters of Bind into datums.
type decoder struct {
	style *pgtext.Style
	sess  Session
	set   *charset.Set
}

// param decodes parameter number num of type t, which is not NULL. b is copied
// where it is kept.
func (d *decoder) param(t types.Type, b []byte, format int16, num int) (types.Datum, error) {
	var v types.Datum
	var err error
	switch format {
	case 0:
		v, err = d.text(t, b)
	case 1:
		bin := pgbin.Decoder{Style: d.style, Long: func() error {
			return pgerr.New(pgerr.InvalidBinaryRepresentation, "incorrect binary data format in bind parameter %d", num)
		}}
		if b, err = d.converted(t, b); err == nil {
			v, err = bin.Value(t, b)
		}
	default:
		err = badFormat(format)
	}
	if err == nil {
		return v, nil
	}
	var e *pgerr.Error
	if !errors.As(err, &e) {
		e = pgerr.Wrap(err, pgerr.InvalidTextRepresentation, "%s", err.Error())
	}
	if e.Context != "" {
		e.Context += "\n"
	}
	// The value itself is left out, as with PostgreSQL's default of
	// log_parameter_max_length_on_error.
	e.Context += fmt.Sprintf("unnamed portal parameter $%d", num)
	if format == 0 && e.Code != pgerr.CharacterNotInRepertoire {
		e.Context += " = '...'"
	}
	return nil, e
}

// converted is a binary value with its text in UTF-8.
func (d *decoder) converted(t types.Type, b []byte) ([]byte, error) {
	if d.set == nil {
		return b, nil
	}
	switch textIn(t) {
	case textAll:
		return d.set.ToServer(b)
	case textAfterByte:
		if len(b) > 0 {
			v, err := d.set.ToServer(b[1:])
			return append([]byte{b[0]}, v...), err
		}
	case textInside:
		return nil, errInside(t, d.set.Name)
	}
	return b, nil
}

func (d *decoder) text(t types.Type, b []byte) (types.Datum, error) {
	s, err := textOf(d.set, b)
	if err != nil {
		return nil, err
	}
	switch t.Kind {
	case types.Unknown, types.Text, types.Varchar:
		if t.Mod == 0 {
			return s, nil
		}
	case types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole:
		if r, ok := d.sess.(OIDReader); ok {
			return r.NamedOID(t.Kind, s)
		}
	}
	return pgtext.Parse(t, s, d.style)
}
