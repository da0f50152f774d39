package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A few seconds of `make pgbench`: pgbench's own idea of TPC-B, whose sums must agree.
func TestPgbench(t *testing.T) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench") // the pattern is right
	if p, err := exec.LookPath("pgbench"); err == nil {
		found = append(found, p)
	}
	if len(found) == 0 {
		t.Skip("needs pgbench")
	}
	cmd := exec.Command("bash", "../../scripts/pgbench.sh", "1", "8")
	cmd.Env = append(os.Environ(), "BIN="+bin(t), "PGBENCH="+found[0], "SCALE=4", "ROWS=1000", "PORT=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "branches,tellers,accounts,history,transactions: ") {
		t.Errorf("%v\n%s", err, out)
	}
}
