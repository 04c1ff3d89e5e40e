#!/usr/bin/env bash
# tests/support/share.sh PROGRAM [ARGUMENT...]: runs a test program, or a share of its cases.
#
#   BOYD_CASE_SHARE=2/3    of three cases the second, by their order in the program's list
#
# Who takes 1/3, 2/3 and 3/3 has run each case once.
set -euo pipefail

[[ -n ${BOYD_CASE_SHARE:-} ]] || exec "$@"
refuse() {
  echo "share.sh: $1" >&2
  exit 2
}

[[ $BOYD_CASE_SHARE =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] || refuse "BOYD_CASE_SHARE is '$BOYD_CASE_SHARE', not like 2/3"
which=${BASH_REMATCH[1]} of=${BASH_REMATCH[2]}
((which <= of)) || refuse "BOYD_CASE_SHARE is '$BOYD_CASE_SHARE': there are $of shares"
program=$1
names=$(mktemp)
trap 'rm -f "$names"' EXIT
# The flags of Catch2 2, which ends with the number of cases, and of Catch2 3.
all=$("$@" --list-test-names-only 2>/dev/null || true)
[[ -n $all ]] || all=$("$@" --list-tests --verbosity quiet)
# A comma would end a name.
awk -v which="$which" -v of="$of" '
  NF && ++n % of == which % of {gsub(/,/, "\\\\,"); print "\"" $0 "\""}' <<<"$all" >"$names"
[[ -s $names ]] || refuse "$program has no cases to choose from"
echo "share $BOYD_CASE_SHARE: $(wc -l <"$names") cases"
"$program" --durations no --input-file "$names"
