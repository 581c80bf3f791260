#!/usr/bin/env bash
# The planted defect NAME must fail its test with a report that says WHAT.
# Usage: planted.sh PROGRAM NAME WHAT
set -u
output=$("$1" "planted/$2" 2>&1)
status=$?
if [ $status != 1 ] || ! grep -q "FAILED planted/$2" <<<"$output" ||
    ! grep -q "$3" <<<"$output"; then
    echo "$2 was not reported as '$3' (exit status $status):" >&2
    echo "$output" >&2
    exit 1
fi
