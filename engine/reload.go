package engine

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Reload takes the settings of a configuration file that was read again. What
// sessions have not SET themselves changes with their next statement. Settings that
// only a start can change stay: their names are returned, and pg_settings shows them
// as pending_restart. With an error nothing has changed.
func (e *Engine) Reload(file map[string]string) (waiting []string, err error) {
	e.reloading.Lock()
	defer e.reloading.Unlock()
	next, err := e.reg.normal(file)
	if err != nil {
		return nil, err
	}
	now := e.reg.laid.Load()
	line := map[string]string{}
	old := map[string]string{}
	for k, v := range now.values {
		if now.source[k] == "configuration file" {
			old[k] = v
		} else {
			line[k] = v
		}
	}
	pending := map[string]bool{}
	for _, d := range e.reg.list {
		k := strings.ToLower(d.Name)
		if d.Scope != ScopeStart && d.Scope != ScopeInternal {
			continue
		}
		if _, fixed := line[k]; fixed {
			delete(next, k)
			continue
		}
		v, given := next[k]
		if !given {
			v = d.Default
		}
		if v != e.reg.def(&d) {
			pending[d.Name] = true
		}
		delete(next, k)
		if v, ok := old[k]; ok {
			next[k] = v
		}
	}
	e.reg.lay(next, line)
	e.pending.Store(&pending)
	return slices.Sorted(maps.Keys(pending)), nil
}

// awaitsRestart reports whether the configuration file has another value of a
// setting, which a restart will bring.
func (e *Engine) awaitsRestart(name string) bool {
	p := e.pending.Load()
	return p != nil && (*p)[name]
}

// CheckSettings says what is wrong with values of settings; nil = nothing.
func CheckSettings(values ...map[string]string) error {
	r := newRegistry()
	for _, m := range values {
		if _, err := r.normal(m); err != nil {
			return err
		}
	}
	return nil
}

// AuthenticationTimeout is the setting authentication_timeout.
func (e *Engine) AuthenticationTimeout() time.Duration {
	return time.Duration(e.reg.number("authentication_timeout")) * time.Second
}
