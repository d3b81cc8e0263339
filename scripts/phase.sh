#!/bin/sh
# Runs one phase of the tests and prints what it took: phase.sh NAME COMMAND [ARGUMENT]...
# Wall seconds, and the CPU seconds of the command and of all its descendants that were waited for.
set -u

name=$1
shift
printf '\n== %s\n' "$name"
began=$(date +%s)
"$@"
code=$?
took=$(mktemp)
times >"$took" # not through a pipe, where some shells would count for the subshell
# Its second line has the user and system time of children, such as 1m2.50s 0m3.25s.
cpu=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += t[1] * 60 + t[2] }; printf "%.0f", sum }' "$took")
rm -f "$took"
[ "$code" = 0 ] && result=ok || result="failed with exit code $code"
echo "== $name: $result after $(($(date +%s) - began)) s, $cpu CPU s"
exit "$code"
