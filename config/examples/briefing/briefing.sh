#!/bin/sh
# Makes notes/briefing.md from the prompt on stdin and the notes the other agents left. Prints one
# line.
set -eu
: "${BOYD_KERNEL_HOME:?is set by the node}"

notes=$BOYD_KERNEL_HOME/notes
mkdir -p "$notes"

# The state brings its own headings and markers; here they are parts of a larger text.
prompt=$(awk '
  /^<!-- KERNEL_RUNTIME:/ {next}
  /^## State of the kernel/ {print; state = 1; next}
  state && /^#/ {print "##" $0; next}
  {print}')

{
  printf '%s\n' "$prompt"
  for note in changes health; do
    [ -f "$notes/$note.md" ] || continue
    echo
    sed 's/^# /## /' "$notes/$note.md"
  done
  printf '\n---\nWritten in cycle %s by %s.\n' "${BOYD_CYCLE_ID:-unknown}" "${BOYD_AGENT_ID:-briefing}"
} >"$notes/briefing.md.new"
mv "$notes/briefing.md.new" "$notes/briefing.md"

echo "briefing written: $(wc -l <"$notes/briefing.md" | tr -d ' ') lines in notes/briefing.md"
