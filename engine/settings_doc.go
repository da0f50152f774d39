package engine

import (
	"fmt"
	"io"
	"sort"
	"strings"
)

// WriteSettings writes docs/settings.md: every setting, by category.
func WriteSettings(w io.Writer) {
	fmt.Fprint(w, `# Settings

Generated from engine/settings.go. A session changes the settings whose scope is
user with SET, a superuser's also those whose scope is superuser; every setting can
be given a default with --set name=value or under settings in the configuration file.
Names, units, bounds and errors are PostgreSQL 15's where it has the setting.

`)
	byCat := map[string][]Setting{}
	var ignored []string
	for _, s := range Settings() {
		if s.Ignored {
			ignored = append(ignored, "`"+s.Name+"`")
			continue
		}
		byCat[s.Category] = append(byCat[s.Category], s)
	}
	cats := make([]string, 0, len(byCat))
	for c := range byCat {
		cats = append(cats, c)
	}
	sort.Strings(cats)
	for _, c := range cats {
		fmt.Fprintf(w, "## %s\n\n| setting | type | default | scope | |\n| --- | --- | --- | --- | --- |\n", c)
		for _, s := range byCat[c] {
			kind := s.Kind.String()
			switch {
			case s.Kind == KindEnum:
				kind = strings.Join(s.Enum, ", ")
			case s.Unit != "":
				kind += " (" + s.Unit + ")"
			}
			def := s.Default
			if def != "" {
				def = "`" + def + "`"
			}
			fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s |\n", s.Name, kind, def, s.Scope, s.Doc)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "## Others of PostgreSQL\n\nAccepted, checked and shown as in PostgreSQL 15, without effect: %s.\n", strings.Join(ignored, ", "))
}
