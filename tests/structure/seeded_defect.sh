#!/usr/bin/env bash
# The seeded defect NAME must fail its test with a report that contains WHAT.
# Usage: seeded_defect.sh PROGRAM NAME WHAT
set -u
output=$("$1" --filter "seeded_defect/$2" 2>&1)
status=$?
if [ $status != 1 ] || ! grep -q "FAILED seeded_defect/$2" <<<"$output" ||
    ! grep -q "$3" <<<"$output"; then
    echo "$2 was not reported as '$3' (exit status $status):" >&2
    echo "$output" >&2
    exit 1
fi
