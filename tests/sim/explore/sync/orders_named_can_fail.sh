#!/usr/bin/env bash
# A source with an order: orders_named.sh must find it, unless a test names it in a list
# of files, where an include is none, nor is a part of its name.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/core/sync/lock" "$tmp/tests/sim/explore/sync"
echo 'qn_store(&x, 1, QN_RELEASE);' >"$tmp/core/sync/lock/x.c"
test=$tmp/tests/sim/explore/sync/test_x_orders.c
for text in '' '#include "core/sync/lock/x.c"' 'f[] = {"sync/lock/y.c"};' 'f[] = {"sync/lock/x"};'; do
    echo "$text" >"$test"
    if bash "$here/orders_named.sh" "$tmp" >/dev/null 2>&1; then
        echo "not found beside: $text" >&2
        exit 1
    fi
done
echo 'f[] = {"sync/lock/x.c"};' >"$test"
bash "$here/orders_named.sh" "$tmp"
