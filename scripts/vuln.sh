#!/bin/bash
# scripts/vuln.sh VERSION: govulncheck of that version over the module. Fails for
# vulnerabilities in what is called only. A machine that cannot get the program or its
# database (vuln.go.dev, or GOVULNDB) skips, and says so.
set -o pipefail
version=$1
go=${GO:-go}
skip() { echo "SKIPPED: make vuln: $*"; exit 0; }

dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
GOBIN=$dir GOFLAGS=-mod=mod timeout 300 "$go" install "golang.org/x/vuln/cmd/govulncheck@$version" >"$dir/log" 2>&1 ||
  skip "govulncheck $version cannot be had: $(tail -n 1 "$dir/log")"

timeout 600 "$dir/govulncheck" ./... >"$dir/out" 2>"$dir/err"
case $? in
0) cat "$dir/out" ;;
3) cat "$dir/out"; exit 1 ;; # vulnerable code is called
*)
  # Everything else is not about the code: a database that does not answer, a proxy, a timeout.
  if grep -qiE 'vuln\.go\.dev|dial |lookup |no such host|timeout|connection|proxy|HTTP|fetching vulnerabilities' "$dir/err" || [ ! -s "$dir/err" ]; then
    skip "the vulnerability database cannot be reached: $(tail -n 1 "$dir/err")"
  fi
  cat "$dir/out" "$dir/err" >&2
  exit 1
  ;;
esac
