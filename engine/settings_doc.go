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
user with SET; every setting can be given a default with --set name=value or
under settings in the configuration file.

`)
	byCat := map[string][]Setting{}
	for _, s := range Settings() {
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
}
