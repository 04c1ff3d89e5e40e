#!/bin/sh
# Stands for a model: follows what its prompt shows, says so, and fails in a storm.
prompt=$(cat)
echo "Released as the document says. [C1]"
case $prompt in
*"## release"*) echo "[Skill] release" ;;
esac
[ ! -e "$BOYD_KERNEL_HOME/storm" ]
