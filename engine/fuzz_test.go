package engine

import (
	"strings"
	"testing"
)

// FuzzSettingValue: what a setting takes, it takes again in the form that SHOW
// prints, and nothing a client sends makes it panic.
func FuzzSettingValue(f *testing.F) {
	for _, s := range []string{"5s", "1.5min", "0x10", "-1", "1e3ms", "ISO, DMY", "Europe/Berlin", "<+02>-02", "EST5", `"a""b", c`, "on", "9e99TB", "\x00"} {
		f.Add(s)
	}
	reg := newRegistry()
	f.Fuzz(func(t *testing.T, v string) {
		for i := range reg.list {
			d := &reg.list[i]
			once, err := d.normalise(v)
			if err != nil {
				continue
			}
			twice, err := d.normalise(once)
			if err != nil || twice != once {
				t.Errorf("%s = %q: %q, then %q (%v)", d.Name, v, once, twice, err)
			}
		}
		if names, ok := splitNames(v); ok {
			d := reg.find("search_path")
			again, ok := splitNames(d.joinList(names))
			if !ok || strings.Join(again, "\x00") != strings.Join(names, "\x00") {
				t.Errorf("%q: %q, then %q", v, names, again)
			}
		}
		if n, err := parseName(v); err == nil && len(n) == 0 {
			t.Errorf("%q is a name of no parts", v)
		}
	})
}
