package pgbin

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Types of pg_catalog that are kept as text: inet, tid and pg_lsn.

// Families of inet, PostgreSQL's own numbers.
const (
	inet4 = 2
	inet6 = 3
)

// appendSystem appends the binary form of a value that is kept as text. What is not of
// the type's form, which the catalog does not make, is sent as it is.
//
//	inet:   family byte, bits byte, is cidr byte, length byte, address
//	tid:    block uint32, item uint16
//	pg_lsn: uint64
func appendSystem(dst []byte, k types.Kind, s string) []byte {
	be := binary.BigEndian
	switch k {
	case types.Inet:
		host, bits, has := strings.Cut(s, "/")
		a, err := netip.ParseAddr(host)
		if err != nil {
			break
		}
		n := a.BitLen()
		if has {
			if n, err = strconv.Atoi(bits); err != nil || n < 0 || n > a.BitLen() {
				break
			}
		}
		family := byte(inet4)
		if a.Is6() {
			family = inet6
		}
		raw := a.AsSlice()
		return append(append(dst, family, byte(n), 0, byte(len(raw))), raw...)
	case types.TID:
		var block uint32
		var item uint16
		if _, err := fmt.Sscanf(s, "(%d,%d)", &block, &item); err == nil {
			return be.AppendUint16(be.AppendUint32(dst, block), item)
		}
	case types.PgLSN:
		hi, lo, _ := strings.Cut(s, "/")
		x, err := strconv.ParseUint(hi, 16, 32)
		y, err2 := strconv.ParseUint(lo, 16, 32)
		if err == nil && err2 == nil {
			return be.AppendUint64(dst, x<<32|y)
		}
	}
	return append(dst, s...)
}

// system reads what appendSystem writes.
func (d *Decoder) system(k types.Kind, b []byte) (types.Datum, error) {
	be := binary.BigEndian
	switch k {
	case types.TID:
		if err := d.size(b, 6); err != nil {
			return nil, err
		}
		return fmt.Sprintf("(%d,%d)", be.Uint32(b), be.Uint16(b[4:])), nil
	case types.PgLSN:
		if err := d.size(b, 8); err != nil {
			return nil, err
		}
		return fmt.Sprintf("%X/%X", be.Uint32(b), be.Uint32(b[4:])), nil
	}
	bad := func(what string) error {
		return pgerr.New(pgerr.InvalidBinaryRepresentation, "invalid %s in external \"inet\" value", what)
	}
	if len(b) == 0 {
		return nil, d.none()
	}
	want := 4
	switch b[0] {
	case inet4:
	case inet6:
		want = 16
	default:
		return nil, bad("address family")
	}
	if len(b) < 4 {
		return nil, d.none()
	}
	bits := int(b[1])
	switch {
	case bits > want*8:
		return nil, bad("bits")
	case int(b[3]) != want:
		return nil, bad("length")
	case len(b) < 4+want:
		return nil, d.none()
	case len(b) > 4+want:
		return nil, d.long()
	}
	a, _ := netip.AddrFromSlice(b[4:])
	if bits == want*8 {
		return a.String(), nil
	}
	return fmt.Sprintf("%s/%d", a, bits), nil
}
