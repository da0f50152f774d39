package parser

import (
	"bufio"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// The corpora are PostgreSQL's own verdicts on statements and on small edits of
// them, and the statements of Paimon's documentation. They live outside the
// repository.

func sharedDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("PAIMON_SQL_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "slt", "parser")); err != nil {
		t.Skip("needs ../shared/slt/parser")
	}
	return dir
}

type corpusEntry struct {
	SQL         string `json:"sql"`
	Accepts     bool   `json:"accepts"`
	Kind        string `json:"kind"`
	Tier        string `json:"tier"`
	Message     string `json:"message"`
	Dialect     string `json:"dialect"`
	Feature     string `json:"feature"`
	ShouldParse bool   `json:"should_parse"`
}

func readCorpus(t *testing.T, path string) []corpusEntry {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []corpusEntry
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var e corpusEntry
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// rate counts hits and reports the first misses.
type rate struct {
	t          *testing.T
	name       string
	hits, all  int
	shown, max int
}

func newRate(t *testing.T, name string) *rate { return &rate{t: t, name: name, max: 40} }

func (r *rate) add(hit bool, format string, args ...any) {
	r.all++
	if hit {
		r.hits++
		return
	}
	if r.shown < r.max && testing.Verbose() {
		r.shown++
		r.t.Logf("%s: "+format, append([]any{r.name}, args...)...)
	}
}

func (r *rate) percent() float64 {
	if r.all == 0 {
		return 100
	}
	return 100 * float64(r.hits) / float64(r.all)
}

func (r *rate) atLeast(want float64) {
	r.t.Helper()
	r.t.Logf("%s: %d of %d, %.2f %%", r.name, r.hits, r.all, r.percent())
	if r.percent() < want {
		r.t.Errorf("%s: %.2f %%, want %.1f %%", r.name, r.percent(), want)
	}
}

// roundTrip parses, formats and parses again, and returns what went wrong.
func roundTrip(sql string) string {
	stmts, err := Parse(sql)
	if err != nil {
		return ""
	}
	for _, s := range stmts {
		text := ast.Format(s)
		again, err := Parse(text)
		switch {
		case err != nil:
			return "formatted " + text + "\n\terror " + err.Error()
		case len(again) != 1:
			return "formatted " + text + "\n\tis " + strconv.Itoa(len(again)) + " statements"
		case !ast.Equal(s, again[0]):
			return "formatted " + text + "\n\tformats again " + ast.Format(again[0])
		}
	}
	return ""
}

// errorOf returns the position and text of a parse error.
func errorOf(err error) (int, string) {
	var pe *pgerr.Error
	if !errors.As(err, &pe) {
		return 0, "accepted"
	}
	return pe.Position, pe.Message
}

func TestCorpusPostgres(t *testing.T) {
	dir := sharedDir(t)
	core, exotic := newRate(t, "core accepted"), newRate(t, "exotic accepted")
	refused, trip := newRate(t, "refused"), newRate(t, "round trip")
	for _, e := range readCorpus(t, filepath.Join(dir, "slt", "parser", "pg_select_dml.jsonl")) {
		_, err := Parse(e.SQL)
		switch {
		case !e.Accepts:
			refused.add(err != nil, "%s: %s", e.Kind, e.SQL)
			continue
		case e.Tier == "core":
			core.add(err == nil, "%s: %v: %s", e.Kind, err, e.SQL)
		default:
			exotic.add(err == nil, "%s: %v: %s", e.Kind, err, e.SQL)
		}
		if err == nil {
			bad := roundTrip(e.SQL)
			trip.add(bad == "", "%s\n\t%s", e.SQL, bad)
		}
	}
	core.atLeast(99.5)
	exotic.atLeast(99)
	refused.atLeast(90)
	trip.atLeast(100)
}

func TestCorpusMutations(t *testing.T) {
	dir := sharedDir(t)
	wrong, valid := newRate(t, "wrong refused"), newRate(t, "valid accepted")
	message, trip := newRate(t, "message equal"), newRate(t, "round trip")
	for _, e := range readCorpus(t, filepath.Join(dir, "slt", "parser", "pg_mutations.jsonl")) {
		_, err := Parse(e.SQL)
		if e.Accepts {
			valid.add(err == nil, "%s: %v: %s", e.Kind, err, e.SQL)
			bad := roundTrip(e.SQL)
			trip.add(bad == "", "%s\n\t%s", e.SQL, bad)
			continue
		}
		wrong.add(err != nil, "%s: %s: %s", e.Kind, e.Message, e.SQL)
		if err != nil && e.Message != "" {
			message.add(err.Error() == e.Message, "want %s, got %v: %s", e.Message, err, e.SQL)
		}
	}
	wrong.atLeast(99)
	valid.atLeast(99)
	message.atLeast(97)
	trip.atLeast(100)
}

// TestCorpusEdits makes random edits of the corpora's statements: whatever is
// accepted must survive printing and parsing, and nothing may hang or panic.
func TestCorpusEdits(t *testing.T) {
	dir := filepath.Join(sharedDir(t), "slt", "parser")
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, seed))
	entries := append(readCorpus(t, filepath.Join(dir, "pg_select_dml.jsonl")), readCorpus(t, filepath.Join(dir, "lake_sql.jsonl"))...)
	accepted, trip := 0, newRate(t, "round trip")
	for range 20000 {
		words := strings.Fields(entries[rnd.IntN(len(entries))].SQL)
		other := strings.Fields(entries[rnd.IntN(len(entries))].SQL)
		i, j := rnd.IntN(len(words)), rnd.IntN(len(other))
		switch rnd.IntN(4) {
		case 0:
			words = slices.Delete(words, i, i+1)
		case 1:
			words = slices.Insert(words, i, other[j])
		case 2:
			words[i] = other[j]
		case 3:
			words = append(words[:i:i], other[j:]...)
		}
		sql := strings.Join(words, " ")
		if _, err := Parse(sql); err == nil {
			accepted++
			bad := roundTrip(sql)
			trip.add(bad == "", "seed %d: %s\n\t%s", seed, sql, bad)
		}
	}
	t.Logf("%d accepted", accepted)
	trip.atLeast(100)
}

func TestCorpusLake(t *testing.T) {
	dir := sharedDir(t)
	byDialect := map[string]*rate{}
	all, trip := newRate(t, "lake statements"), newRate(t, "round trip")
	for _, e := range readCorpus(t, filepath.Join(dir, "slt", "parser", "lake_sql.jsonl")) {
		if !e.ShouldParse {
			continue
		}
		_, err := Parse(e.SQL)
		r := byDialect[e.Dialect]
		if r == nil {
			r = &rate{t: t, name: e.Dialect}
			byDialect[e.Dialect] = r
		}
		r.add(err == nil, "")
		all.add(err == nil, "%s %s: %v: %s", e.Dialect, e.Feature, err, e.SQL)
		if err == nil {
			bad := roundTrip(e.SQL)
			trip.add(bad == "", "%s\n\t%s", e.SQL, bad)
		}
	}
	for _, r := range byDialect {
		r.atLeast(0)
	}
	all.atLeast(95)
	trip.atLeast(100)
}

// TestCorpusErrors compares the position, message and code of syntax errors
// with PostgreSQL's. Entries are a comment header and a statement, separated by
// blank lines.
func TestCorpusErrors(t *testing.T) {
	dir := sharedDir(t)
	text, err := os.ReadFile(filepath.Join(dir, "clients", "corpus", "errors.sql"))
	if err != nil {
		t.Skip("needs ../shared/clients/corpus/errors.sql")
	}
	position, message := newRate(t, "position equal"), newRate(t, "message equal")
	accepted := newRate(t, "others parsed")
	for _, block := range strings.Split(string(text), "\n\n") {
		var sql []string
		var code, want string
		pos := 0
		for _, line := range strings.Split(block, "\n") {
			switch {
			case strings.HasPrefix(line, "-- error: "):
				code, want, _ = strings.Cut(strings.TrimPrefix(line, "-- error: "), " ")
			case strings.HasPrefix(line, "-- position: "):
				pos, _ = strconv.Atoi(strings.TrimPrefix(line, "-- position: "))
			case strings.HasPrefix(line, "-- "):
			default:
				sql = append(sql, line)
			}
		}
		stmt := strings.TrimRight(strings.Join(sql, "\n"), "\n")
		_, err := Parse(stmt)
		// Other 42601s come from the binder.
		if code != "42601" || !strings.Contains(want, " at or near ") && !strings.HasSuffix(want, " at end of input") {
			got, _ := pgerr.CodeOf(err)
			accepted.add(err == nil || got.String() == code, "%v: %s", err, stmt)
			continue
		}
		gotPos, got := errorOf(err)
		position.add(gotPos == pos, "want %d, got %d (%s): %s", pos, gotPos, got, stmt)
		message.add(got == want, "want %s, got %s: %s", want, got, stmt)
	}
	position.atLeast(100)
	message.atLeast(100)
	accepted.atLeast(100)
}
