#!/bin/bash
# Runs every test that needs nothing but Go, prints what was skipped and why,
# and gives each fuzz target its seed corpus only.
set -o pipefail
cd "$(dirname "$0")/.." || exit 2
out=$(mktemp); trap 'rm -f "$out"' EXIT
go vet ./... || exit 1
go test -json -timeout 280s "$@" ./... > "$out"
rc=$?
python3 - "$out" <<'PY' 2>/dev/null || grep -c . "$out"
import json, sys, collections
passed = failed = skipped = 0
skips, fails, text = [], [], collections.defaultdict(list)
for line in open(sys.argv[1], errors="replace"):
    try:
        e = json.loads(line)
    except ValueError:
        print(line, end="")
        continue
    key = (e.get("Package", ""), e.get("Test", ""))
    a = e.get("Action")
    if a == "output":
        text[key].append(e["Output"])
    elif a == "build-output":
        print(e.get("Output", ""), end="")
    elif not e.get("Test"):
        if a == "fail":
            fails.append(key)
            print("".join(text[key]), end="")
    elif a == "pass":
        passed += 1
    elif a == "fail":
        failed += 1
        fails.append(key)
        print(f"--- FAIL {key[0]} {key[1]}")
        print("".join(text[key])[-4000:], end="")
    elif a == "skip":
        skipped += 1
        why = [l.strip() for l in text[key] if l.strip() and not l.startswith(("===", "---"))]
        skips.append((key[0].split("paimon-sql/", 2)[-1], key[1], why[-1] if why else ""))
if skips:
    print(f"skipped ({len(skips)}):")
    for p, t, w in sorted(skips):
        print(f"  {p} {t}: {w}")
print(f"{passed} passed, {failed} failed, {skipped} skipped")
PY
exit $rc
