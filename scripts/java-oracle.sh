#!/bin/bash
# Prints the path of the built java-oracle.jar, the program by which tests ask
# Java Paimon: scripts/java-oracle.sh SOURCES. Builds it when the sources are new;
# the user's cache keeps one build. Exit status 1, and why on stderr, without.
set -o pipefail
src=$1
no() { echo "no Java oracle: $*" >&2; exit 1; }
[ -f "$src/pom.xml" ] || no "no sources in $src"
command -v java >/dev/null || no "no java"
command -v mvn >/dev/null || no "no mvn"
sum=$(cd "$src" && find pom.xml src -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16) || no "the sources cannot be read"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/paimon-sql/java-oracle
jar=$cache/$sum/java-oracle.jar
if [ ! -f "$jar" ]; then
  mkdir -p "$cache" || no "no cache folder"
  new=$(mktemp -d "$cache/build.XXXXXX") || no "no cache folder"
  trap 'rm -rf "$new"' EXIT
  # The sources may be read-only: they are built from a copy.
  cp -r "$src/." "$new/src" && chmod -R u+w "$new/src" || no "the sources cannot be copied"
  ORACLE_BUILD_DIR=$new/out timeout "${ORACLE_BUILD_SECONDS:-300}" bash "$new/src/build.sh" >"$new/log" 2>&1 </dev/null ||
    no "mvn failed: $(tail -n 3 "$new/log" | tr '\n' ' ')"
  [ -f "$new/out/java-oracle.jar" ] || no "the build made no jar"
  find "$cache" -mindepth 1 -maxdepth 1 -type d ! -name 'build.*' -exec rm -rf {} + # older sources
  mkdir -p "$cache/$sum" && mv "$new/out/java-oracle.jar" "$jar" || no "the jar cannot be kept"
fi
echo "$jar"
