#!/bin/sh
# Fails on purpose, with a message that says why.
echo "flaky-link: no answer from the weather mast (this agent fails on purpose)" >&2
exit 1
