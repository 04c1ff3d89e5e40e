#!/bin/sh
# Reads its prompt, keeps it in the kernel's home, and answers with the report of what it was given.
set -eu
digest=$BOYD_KERNEL_HOME/DIGEST.md
cat >"$digest"
# The report says how many items it was given, of how many tokens; the citation earns its item credit.
sed -n '/^# Context Report$/,/^What came of the last runs:$/p' "$digest" | sed '1,2d;$d'
printf '[Reference] file: CHANGELOG.md (CHANGELOG.md)\n'
printf 'the digest is DIGEST.md\n'
