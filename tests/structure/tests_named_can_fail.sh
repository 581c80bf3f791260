#!/usr/bin/env bash
# tests_named.sh must reject a page that names a test which does not exist, and
# one that names none.
set -u
here=$(cd "$(dirname "$0")" && pwd)
page=$(mktemp) || exit 2
trap 'rm -f "$page"' EXIT
# shellcheck disable=SC2016 # backticks of the page, not of the shell
for row in '| a bound | 1 | - | - | it ends | `no_such_test_of_any_kind` |' 'no table'; do
    echo "$row" >"$page"
    if bash "$here/tests_named.sh" "$page" >/dev/null 2>&1; then
        echo "not found: $row" >&2
        exit 1
    fi
done
