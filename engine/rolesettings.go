package engine

import (
	"context"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// runAlterSettings is ALTER ROLE and ALTER DATABASE ... SET and RESET. What is set
// holds for sessions that begin afterwards.
func (s *Session) runAlterSettings(ctx context.Context, st *ast.AlterSettings) error {
	if st.Kind == "SYSTEM" {
		return unsupported(st)
	}
	of, err := s.settingsTarget(ctx, st)
	if err != nil {
		return err
	}
	list := s.roles(ctx).SettingsOf(of)
	switch x := st.Set.(type) {
	case *ast.Reset:
		if x.All {
			kept := list[:0:0]
			for _, e := range list {
				if s.maySet(e.Name) != nil {
					kept = append(kept, e)
				}
			}
			return s.putSettings(ctx, of, kept)
		}
		name := settingName(x.Name)
		if err := s.maySet(name); err != nil {
			return err
		}
		return s.putSettings(ctx, of, roles.With(list, s.spelled(name), nil))
	case *ast.Set:
		name := settingName(x.Name)
		if x.Default {
			if err := s.maySet(name); err != nil {
				return err
			}
			return s.putSettings(ctx, of, roles.With(list, s.spelled(name), nil))
		}
		var value string
		if x.FromCurrent {
			v, ok := s.set.get(name)
			if !ok {
				return unknownSetting(name)
			}
			value = v
		} else if value, err = s.setValue(name, x); err != nil {
			return err
		}
		if err := s.maySet(name); err != nil {
			return err
		}
		if _, err = s.set.checked(name, value); err != nil {
			return err
		}
		if key := strings.ToLower(name); key == "role" || key == "session_authorization" {
			if s.roles(ctx).Role(value) == nil && value != "none" {
				return pgerr.New(pgerr.InvalidParameterValue, "role %q does not exist", value)
			}
		}
		return s.putSettings(ctx, of, roles.With(list, s.spelled(name), &value))
	}
	return unsupported(st)
}

// settingsTarget is whose settings are changed, by whom it may be.
func (s *Session) settingsTarget(ctx context.Context, st *ast.AlterSettings) (roles.Settings, error) {
	var of roles.Settings
	r := s.rights(ctx)
	if !st.Database.Empty() {
		if err := s.thisDatabase(st.Database.Name); err != nil {
			return of, err
		}
		of.Database = st.Database.Name
	}
	if st.Kind == "DATABASE" {
		return of, s.mustOwnDatabase(ctx)
	}
	if st.Role == nil {
		if r.super || of.Database != "" && r.owns(roles.DatabaseKey) {
			return of, nil
		}
		if of.Database != "" {
			return of, s.mustOwnDatabase(ctx)
		}
		return of, denied("must be superuser to alter settings globally")
	}
	if st.Role.Kind == ast.RoleName && strings.HasPrefix(st.Role.Name.Name, "pg_") {
		return of, pgerr.New(pgerr.ReservedName, "role name %q is reserved", st.Role.Name.Name).WithDetail("Cannot alter reserved roles.")
	}
	to, err := s.roleBySpec(ctx, st.Role)
	if err != nil {
		return of, err
	}
	of.Role = to.OID
	if to.Super && !r.super {
		return of, denied("must be superuser to alter superusers")
	}
	if me := r.m.ByOID(r.role); !r.super && to.OID != r.role && (me == nil || !me.CreateRole) {
		return of, denied("permission denied")
	}
	return of, nil
}

// spelled is a setting's name as it is kept: the registry's, or as it was written.
func (s *Session) spelled(name string) string {
	if d := s.set.reg.find(name); d != nil {
		return d.Name
	}
	return name
}

// maySet checks that a session may set a setting.
func (s *Session) maySet(name string) error {
	if d := s.set.reg.find(name); d != nil {
		return s.set.settable(d)
	}
	return customName(name)
}

func (s *Session) putSettings(ctx context.Context, of roles.Settings, list []roles.Setting) error {
	ed, err := s.objectEditor(ctx, "")
	if err != nil {
		return err
	}
	o, err := of.Object(list)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return ed.DeleteObject(ctx, o.Kind, o.Schema, o.Name)
	}
	_, err = ed.PutObject(ctx, o)
	return err
}

// applyStored sets what is kept for the role and the database, as the values that
// RESET goes back to. The more special goes over the more general; what the connection
// asks for goes over all of it. What is no more valid is left out, with a warning in
// the log.
func (s *Session) applyStored(ctx context.Context) {
	m := s.eng.roles(ctx)
	s.set.starting, s.set.stored = true, true
	defer func() { s.set.starting, s.set.stored = false, false }()
	var role uint32
	if r := m.Role(s.user); r != nil {
		role = r.OID
	}
	order := []roles.Settings{{}, {Database: s.database}}
	if role != 0 {
		order = append(order, roles.Settings{Role: role}, roles.Settings{Role: role, Database: s.database})
	}
	for _, of := range order {
		for _, x := range m.SettingsOf(of) {
			if err := s.startWith(x.Name, x.Value); err != nil {
				s.eng.log.Warn("a stored setting is not applied", "user", s.user, "setting", x.Name, "err", err)
			}
		}
	}
}

// startWith gives a setting the value that the session begins with.
func (s *Session) startWith(name, value string) error {
	key := strings.ToLower(name)
	if key == "role" || key == "session_authorization" {
		if err := s.mayBecome(key, value); err != nil {
			return err
		}
	}
	if err := s.set.set(name, value, false); err != nil {
		return err
	}
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	s.set.start[key], _ = s.set.value(key)
	s.set.now = layers{}
	s.set.changed()
	return nil
}
