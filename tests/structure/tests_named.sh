#!/usr/bin/env bash
# Fails unless each test that docs/limits.md names (the last column of its
# tables, in backticks) exists. Usage: tests_named.sh [PAGE]
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
page=${1:-docs/limits.md}
status=0 count=0
# shellcheck disable=SC2016 # backticks of the page, not of the shell
while read -r name; do
    count=$((count + 1))
    if ! grep -rqE "(\(|, ?|CASE\(|def )$name\b" tests --include='*.c' --include='*.py'; then
        echo "$page: the test $name does not exist" >&2
        status=1
    fi
done < <(awk -F'|' '/^\|/ && NF > 3 { print $(NF - 1) }' "$page" |
    grep -oE '`[a-z_0-9]+`' | tr -d '`' | sort -u)
if [ "$count" = 0 ]; then
    echo "$page: names no test" >&2
    status=1
fi
exit $status
