#!/usr/bin/env bash
# Creates one violation of each kind in a small tree; private_memory.py must
# find each, and must accept the tree without it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT

tree() {
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t"/{core/base,core/place,core/plan,paxos/log,transports/ump,tests/structure}
    echo 'return malloc(n);' >"$tmp/t/core/base/alloc.c"
    echo 'return calloc(n, 1);' >"$tmp/t/core/plan/plan.c"
    echo '/* as malloc() does */ qn_alloc_zeroed(a, n); fopen_count(1);' \
        >"$tmp/t/paxos/log/log.c"
    echo 'core/base/alloc.c: it is malloc' \
        >"$tmp/t/tests/structure/private_memory.txt"
}
check() {
    /usr/bin/python3 "$here/private_memory.py" "$tmp/t"
}
must_fail() { # must_fail WHAT
    if check >/dev/null 2>&1; then
        echo "not found: $1" >&2
        exit 1
    fi
    tree
}

tree
check || exit 1
echo 'x = calloc(1, 2);' >>"$tmp/t/paxos/log/log.c"
must_fail "a call in paxos"
echo 'x = strdup(y);' >"$tmp/t/transports/ump/ump.c"
must_fail "a call in a transport"
echo 'f = fopen(name, "r");' >"$tmp/t/core/qp.c"
must_fail "a file that is opened with a buffer"
echo 'paxos/log/log.c: batches' >>"$tmp/t/tests/structure/private_memory.txt"
must_fail "a listed file without a call"
echo 'core/base/alloc.c:' >"$tmp/t/tests/structure/private_memory.txt"
must_fail "a file without a reason"
