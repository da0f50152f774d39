// Command testsum reads the output of `go test -json` and prints what failed
// with its output, what was skipped and why, and one line of totals. It exits 1
// when anything failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
}

func main() {
	const module = "github.com/paimon-sql/paimon-sql/"
	text := map[string][]string{}
	skips := map[string]int{}
	var passed, failed, skipped, broken int
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<26)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Println(in.Text())
			continue
		}
		pkg := strings.TrimPrefix(e.Package, module)
		key := pkg + " " + e.Test
		switch e.Action {
		case "output":
			text[key] = append(text[key], e.Output)
		case "build-output":
			fmt.Print(e.Output)
		case "fail":
			if e.Test == "" {
				broken++
			} else {
				failed++
			}
			fmt.Printf("--- FAIL %s\n%s", key, tail(text[key], 60))
			delete(text, key)
		case "pass":
			if e.Test != "" {
				passed++
			} else if line := last(text[key]); strings.HasPrefix(line, "ok") {
				fmt.Println(strings.Replace(line, module, "", 1))
			}
			// Suites say how they did in a line that begins with "suite ".
			for _, l := range text[key] {
				if i := strings.Index(l, "suite "); i >= 0 {
					fmt.Print("  ", l[i:])
				}
			}
			delete(text, key)
		case "skip":
			if e.Test != "" {
				skipped++
				// Subtests that were skipped for one reason are one line.
				name, _, _ := strings.Cut(e.Test, "/")
				skips["  "+pkg+" "+name+": "+reason(text[key])]++
			}
			delete(text, key)
		}
	}
	if len(skips) > 0 {
		fmt.Printf("skipped (%d):\n", skipped)
		for _, s := range slices.Sorted(maps.Keys(skips)) {
			if n := skips[s]; n > 1 {
				s += fmt.Sprintf(" (%d subtests)", n)
			}
			fmt.Println(s)
		}
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed+boolInt(failed == 0 && broken > 0), skipped)
	if failed+broken > 0 {
		os.Exit(1)
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func tail(lines []string, n int) string {
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "")
}

func last(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if s := strings.TrimSpace(lines[i]); s != "" {
			return s
		}
	}
	return ""
}

// reason is what t.Skip said: the last line that go test did not write itself.
func reason(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		s := strings.TrimSpace(lines[i])
		if s == "" || strings.HasPrefix(s, "---") || strings.HasPrefix(s, "===") {
			continue
		}
		if _, r, ok := strings.Cut(s, ": "); ok && strings.Contains(s, ".go:") {
			return r
		}
		return s
	}
	return ""
}
