#!/bin/sh
# Checks the repository of the working directory: sound objects, size, large and untracked files,
# notes left in the code. Prints one line; the figures go to notes/health.md.
set -eu
: "${BOYD_KERNEL_HOME:?is set by the node}"

# The repository may belong to another user, and reading it must not take its locks.
GIT_OPTIONAL_LOCKS=0
export GIT_OPTIONAL_LOCKS
repo_git() { git -c safe.directory='*' "$@"; }

notes=$BOYD_KERNEL_HOME/notes
large_bytes=1000000
mkdir -p "$notes"

if ! top=$(repo_git rev-parse --show-toplevel); then
  echo "health: $(pwd) is not a git work tree" >&2
  exit 1
fi
cd "$top"

broken=$(repo_git fsck --no-progress --no-dangling --connectivity-only 2>&1 |
  grep -cE '^(error|fatal|missing|broken)' || true)
size_kib=$(repo_git count-objects -v | awk '/^size(-pack)?:/ {sum += $2} END {print sum + 0}')
files=$(repo_git ls-files | wc -l | tr -d ' ')
untracked=$(repo_git ls-files --others --exclude-standard | wc -l | tr -d ' ')
large=$(repo_git ls-tree -r -l HEAD |
  awk -v limit="$large_bytes" '$4 != "-" && $4 > limit {n++} END {print n + 0}')
# The words are put together here so that this script does not count itself.
marks=$(repo_git grep -IwEc "TO""DO|FIX""ME" HEAD -- 2>/dev/null |
  awk -F: '{n += $NF} END {print n + 0}')

verdict=healthy
[ "$broken" -eq 0 ] || verdict="DAMAGED ($broken findings of git fsck)"
line="$verdict: $files files, $((size_kib / 1024)) MiB of objects, $large large, $untracked untracked, $marks notes to do"

cat >"$notes/health.md.new" <<REPORT
# Health

| check | found |
|---|---|
| git fsck | $broken findings |
| tracked files | $files |
| size of the objects | $size_kib KiB |
| files over $large_bytes bytes | $large |
| untracked files | $untracked |
| notes to do in the code | $marks |
REPORT
mv "$notes/health.md.new" "$notes/health.md"

echo "$line"
[ "$broken" -eq 0 ]
