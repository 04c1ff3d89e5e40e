#!/bin/sh
# Says what changed in the repository of the working directory since the last run. The commit seen
# last is kept in the kernel's home. Prints one line; the list goes to notes/changes.md.
set -eu
: "${BOYD_KERNEL_HOME:?is set by the node}"

# The repository may belong to another user, and reading it must not take its locks.
GIT_OPTIONAL_LOCKS=0
export GIT_OPTIONAL_LOCKS
repo_git() { git -c safe.directory='*' "$@"; }

notes=$BOYD_KERNEL_HOME/notes
seen_file=$notes/changes.last-commit
most=20 # commits listed at most
mkdir -p "$notes"

if ! head=$(repo_git rev-parse --verify --quiet 'HEAD^{commit}'); then
  echo "changes: $(pwd) is not a git repository with a commit" >&2
  exit 1
fi
seen=$(cat "$seen_file" 2>/dev/null || true)

# A shallow clone or a rewritten history may not have the old commit any more.
if [ -z "$seen" ]; then
  count=$(repo_git rev-list --count --max-count=100000 HEAD)
  range="-n $most HEAD"
  line="first look: $count commits up to $(repo_git log -1 --format='%h (%s)')"
elif [ "$seen" = "$head" ]; then
  range=
  line="nothing new since $(repo_git log -1 --format=%h)"
elif repo_git merge-base --is-ancestor "$seen" "$head" 2>/dev/null; then
  count=$(repo_git rev-list --count "$seen..$head")
  range="-n $most $seen..$head"
  line="$count new commits: $(repo_git diff --shortstat "$seen" "$head" | sed 's/^ *//')"
else
  range="-n $most HEAD"
  line="history was rewritten; now at $(repo_git log -1 --format='%h (%s)')"
fi
modified=$(repo_git status --porcelain --untracked-files=no | wc -l | tr -d ' ')
[ "$modified" -eq 0 ] || line="$line; $modified files modified but not committed"

{
  echo "# Changes"
  echo
  echo "$line"
  if [ -n "$range" ]; then
    echo
    # shellcheck disable=SC2086 # the range is two or three words of our own
    repo_git log --format='- %h %ad %s' --date=short $range
  fi
} >"$notes/changes.md.new"
mv "$notes/changes.md.new" "$notes/changes.md"
echo "$head" >"$seen_file.new"
mv "$seen_file.new" "$seen_file"

echo "$line"
