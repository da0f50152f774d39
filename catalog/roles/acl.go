package roles

import (
	"errors"
	"slices"
	"strings"
)

// Privileges as PostgreSQL's acl.c has them: a list of items, each of what one role
// (or everybody) was granted by one other, with what of it the role may grant on.
// An object's owner has all grant options without an item that says so.

// Mode is a set of privileges.
type Mode uint16

// The privileges, in the order in which PostgreSQL lists them.
const (
	Insert Mode = 1 << iota
	Select
	Update
	Delete
	Truncate
	References
	Trigger
	Execute
	Usage
	Create
	Temporary
	Connect
	Set
	AlterSystem
)

// letters are the privileges as ACLs print them, by bit.
const letters = "arwdDxtXUCTcsA"

var words = []string{
	"INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "EXECUTE", "USAGE", "CREATE", "TEMPORARY",
	"CONNECT", "SET", "ALTER SYSTEM",
}

// Words names the privileges of a set in PostgreSQL's order.
func (m Mode) Words() []string {
	var out []string
	for i, w := range words {
		if m&(1<<i) != 0 {
			out = append(out, w)
		}
	}
	return out
}

// ParseMode reads the name of one privilege, in any case; TEMP is TEMPORARY. ok is
// false when there is no such privilege.
func ParseMode(word string) (m Mode, ok bool) {
	w := strings.ToUpper(word)
	if w == "TEMP" {
		w = "TEMPORARY"
	}
	i := slices.Index(words, w)
	if i < 0 {
		return 0, false
	}
	return 1 << i, true
}

// Class is a kind of object that has privileges, by the letters of pg_default_acl and
// acldefault.
type Class byte

// The classes. Functions and types have no privileges here; the letters are for
// acldefault and default privileges.
const (
	Relation  Class = 'r' // tables and views
	Sequences Class = 's'
	Schema    Class = 'n'
	Database  Class = 'd'
	Functions Class = 'f'
	Types     Class = 'T'
	ColumnOf  Class = 'c'
)

// All are the privileges that objects of a class can have.
func (c Class) All() Mode {
	switch c {
	case Relation:
		return Insert | Select | Update | Delete | Truncate | References | Trigger
	case Sequences:
		return Usage | Select | Update
	case Schema:
		return Usage | Create
	case Database:
		return Create | Temporary | Connect
	case Functions:
		return Execute
	case Types:
		return Usage
	case ColumnOf:
		return Insert | Select | Update | References
	case 'l', 'F', 'S': // languages, foreign-data wrappers, servers
		return Usage
	case 'L': // large objects
		return Select | Update
	case 't': // tablespaces
		return Create
	case 'p': // parameters
		return Set | AlterSystem
	}
	return 0
}

// Public stands for everybody in an Item's Grantee.
const Public uint32 = 0

// Item is what one role was granted by another.
type Item struct {
	Grantee uint32 `json:"to"`
	Grantor uint32 `json:"by"`
	Privs   Mode   `json:"privs"`
	Options Mode   `json:"options,omitempty"` // of Privs: what may be granted on
}

// ACL is the privileges on an object. nil is those that objects of the class have
// when nobody said otherwise. An ACL is never changed: edits return another.
type ACL []Item

// DefaultACL is what nil means: acldefault.
func DefaultACL(c Class, owner uint32) ACL {
	out := ACL{}
	var world Mode
	switch c {
	case Database:
		world = Temporary | Connect
	case Functions:
		world = Execute
	case Types, 'l':
		world = Usage
	case ColumnOf:
		return out
	}
	if world != 0 {
		out = append(out, Item{Grantee: Public, Grantor: owner, Privs: world})
	}
	return append(out, Item{Grantee: owner, Grantor: owner, Privs: c.All()})
}

// Errors of edits.
var (
	// ErrDependent (2BP01): somebody granted on what is revoked.
	ErrDependent = errors.New("dependent privileges exist")
	// ErrCircular (0LP01): a grant option goes back to whom it came from.
	ErrCircular = errors.New("grant options cannot be granted back to your own grantor")
)

// Mask returns the privileges of mask that a role has, with options those that it may
// grant on. owns says that the role has the owner's privileges, has whether it has
// those of another.
func (a ACL) Mask(role uint32, owns bool, has func(uint32) bool, mask Mode, options bool) Mode {
	if options && owns {
		return mask
	}
	var got Mode
	for i := range a {
		x := &a[i]
		m := x.Privs
		if options {
			m = x.Options
		}
		if m&mask&^got == 0 || x.Grantee != Public && x.Grantee != role && !has(x.Grantee) {
			continue
		}
		got |= m & mask
	}
	return got
}

// grantable are the privileges that a role by itself, without those it is a member
// of, may grant on.
func (a ACL) grantable(role, owner uint32, m *Model, mask Mode) Mode {
	has := func(r uint32) bool { return m.Has(role, r) }
	return a.Mask(role, m.Has(role, owner), has, mask, true)
}

// Grant adds privileges, with options the right to grant them on.
func (a ACL) Grant(m *Model, owner, grantee, grantor uint32, privs Mode, options bool) (ACL, error) {
	x := Item{Grantee: grantee, Grantor: grantor, Privs: privs}
	if options {
		x.Options = privs
		if err := a.circular(m, owner, x); err != nil {
			return nil, err
		}
	}
	out := slices.Clone(a)
	if i := out.find(grantee, grantor); i >= 0 {
		out[i].Privs |= x.Privs
		out[i].Options |= x.Options
		return out, nil
	}
	return append(out, x), nil
}

func (a ACL) find(grantee, grantor uint32) int {
	return slices.IndexFunc(a, func(x Item) bool { return x.Grantee == grantee && x.Grantor == grantor })
}

// circular is check_circularity: without what the grantee was given and gave on, the
// grantor must still have the options.
func (a ACL) circular(m *Model, owner uint32, x Item) error {
	if x.Grantor == owner {
		return nil
	}
	rest := slices.Clone(a)
	for i := 0; i < len(rest); i++ {
		if y := rest[i]; y.Grantee == x.Grantee && y.Options != 0 {
			next, err := rest.Revoke(m, owner, y.Grantee, y.Grantor, y.Privs, true, true)
			if err != nil {
				return err
			}
			rest, i = next, -1
		}
	}
	if x.Options&^rest.grantable(x.Grantor, owner, m, x.Options) != 0 {
		return ErrCircular
	}
	return nil
}

// Revoke takes privileges away, or with optionsOnly the right to grant them on; what
// the grantee granted on goes too with cascade and is ErrDependent without.
func (a ACL) Revoke(m *Model, owner, grantee, grantor uint32, privs Mode, optionsOnly, cascade bool) (ACL, error) {
	i := a.find(grantee, grantor)
	if i < 0 {
		return a, nil
	}
	out := slices.Clone(a)
	x := &out[i]
	lost := x.Options & privs
	x.Options &^= privs
	if !optionsOnly {
		x.Privs &^= privs
	}
	if x.Privs == 0 && x.Options == 0 {
		out = slices.Delete(out, i, i+1)
	}
	if lost == 0 || grantee == Public {
		return out, nil
	}
	return out.recursive(m, owner, grantee, lost, cascade)
}

// recursive revokes what a role granted by options that it has lost.
func (a ACL) recursive(m *Model, owner, grantee uint32, lost Mode, cascade bool) (ACL, error) {
	if grantee == owner {
		return a, nil
	}
	lost &^= a.grantable(grantee, owner, m, lost)
	if lost == 0 {
		return a, nil
	}
	for i := 0; i < len(a); i++ {
		x := a[i]
		if x.Grantor != grantee || x.Privs&lost == 0 {
			continue
		}
		if !cascade {
			return nil, ErrDependent
		}
		next, err := a.Revoke(m, owner, x.Grantee, grantee, lost, false, true)
		if err != nil {
			return nil, err
		}
		a, i = next, -1
	}
	return a, nil
}

// Owned returns the ACL as it is when another role owns the object: aclnewowner.
func (a ACL) Owned(from, to uint32) ACL {
	if a == nil {
		return nil
	}
	out := ACL{}
	for _, x := range a {
		if x.Grantee == from {
			x.Grantee = to
		}
		if x.Grantor == from {
			x.Grantor = to
		}
		if i := out.find(x.Grantee, x.Grantor); i >= 0 {
			out[i].Privs |= x.Privs
			out[i].Options |= x.Options
			continue
		}
		out = append(out, x)
	}
	return out
}

// Without returns the ACL without what a role was granted, and without what that
// role granted: for DROP OWNED.
func (a ACL) Without(m *Model, owner, role uint32) ACL {
	out := a
	for i := 0; i < len(out); i++ {
		if x := out[i]; x.Grantee == role {
			next, err := out.Revoke(m, owner, role, x.Grantor, x.Privs|x.Options, false, true)
			if err != nil {
				return out
			}
			out, i = next, -1
		}
	}
	return out
}

// Names reports whether a role stands in the ACL other than as the object's owner.
func (a ACL) Names(role, owner uint32) bool {
	return role != owner && slices.ContainsFunc(a, func(x Item) bool { return x.Grantee == role || x.Grantor == role })
}

// merged adds the items of another ACL.
func (a ACL) merged(b ACL) ACL {
	out := slices.Clone(a)
	for _, x := range b {
		if i := out.find(x.Grantee, x.Grantor); i >= 0 {
			out[i].Privs |= x.Privs
			out[i].Options |= x.Options
			continue
		}
		out = append(out, x)
	}
	return out
}

// same compares ACLs as sets of items.
func (a ACL) same(b ACL) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}

// Text is the items as aclitem prints them: grantee=privileges/grantor, each
// privilege that may be granted on with a star. name names roles.
func (a ACL) Text(name func(uint32) string) []string {
	out := make([]string, len(a))
	for i, x := range a {
		var b strings.Builder
		if x.Grantee != Public {
			b.WriteString(QuoteItem(name(x.Grantee)))
		}
		b.WriteByte('=')
		for k := range letters {
			if x.Privs&(1<<k) != 0 {
				b.WriteByte(letters[k])
				if x.Options&(1<<k) != 0 {
					b.WriteByte('*')
				}
			}
		}
		b.WriteByte('/')
		b.WriteString(QuoteItem(name(x.Grantor)))
		out[i] = b.String()
	}
	return out
}

// QuoteItem writes a role's name as aclitem does.
func QuoteItem(s string) string {
	plain := s != ""
	for _, c := range []byte(s) {
		plain = plain && (c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80)
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// ErrItem: a text is no aclitem.
var ErrItem = errors.New("not an aclitem")

// ParseItem reads an aclitem; oid finds roles by name.
func ParseItem(s string, oid func(string) (uint32, bool)) (Item, error) {
	var x Item
	name, rest, err := itemName(s)
	if err != nil {
		return x, err
	}
	if name != "" {
		to, ok := oid(name)
		if !ok {
			return x, ErrItem
		}
		x.Grantee = to
	}
	if !strings.HasPrefix(rest, "=") {
		return x, ErrItem
	}
	var last Mode
	i := 1
	for ; i < len(rest) && rest[i] != '/'; i++ {
		if rest[i] == '*' {
			x.Options |= last
			continue
		}
		k := strings.IndexByte(letters, rest[i])
		if k < 0 {
			return x, ErrItem
		}
		last = 1 << k
		x.Privs |= last
	}
	if i >= len(rest) {
		x.Grantor = Superuser
		return x, nil
	}
	by, _, err := itemName(rest[i+1:])
	if err != nil {
		return x, err
	}
	grantor, ok := oid(by)
	if !ok {
		return x, ErrItem
	}
	x.Grantor = grantor
	return x, nil
}

func itemName(s string) (name, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexAny(s, "=/")
		if i < 0 {
			return s, "", nil
		}
		return s[:i], s[i:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		return b.String(), s[i+1:], nil
	}
	return "", "", ErrItem
}
