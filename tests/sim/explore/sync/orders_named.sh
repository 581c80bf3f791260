#!/usr/bin/env bash
# Fails if a source of core/sync orders memory and no test of weaker orders
# (tests/sim/explore/orders.h) names it, to the end: of a part that several files
# begin with, one might be left out. That each such operation in it is judged is
# checked there.
# Usage: orders_named.sh [root]
set -u
cd "${1:-.}" || exit 2
parts=$(grep -rhv '#include' tests/sim/explore/sync --include='test_*.c' |
    grep -oE '"[a-z_]+(/[a-z_.]+)+"' | tr -d '"' | sort -u)
status=0
while read -r file; do
    named=no
    for part in $parts; do
        case $file in *"$part") named=yes ;; esac
    done
    if [ $named = no ]; then
        echo "$file orders memory, and no test in tests/sim/explore/sync makes its orders weaker" >&2
        status=1
    fi
done < <(grep -rlE 'QN_(ACQUIRE|RELEASE|ACQ_REL|SEQ_CST)\b' core/sync | sort)
exit $status
