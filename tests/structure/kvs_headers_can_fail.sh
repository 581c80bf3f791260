#!/usr/bin/env bash
# Creates one violation of each kind in a small tree; kvs_headers.py must find
# each, and must accept the tree without it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT

tree() {
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t"/{kvs/server,tests/structure}
    cat >"$tmp/t/kvs/server/x.c" <<'END'
#include "core/base/err.h"
#include "core/place/place.h"
#include "paxos/member/member.h"
#include "paxos/wire/msg.h"
END
    echo 'core/place/place.h: cores' >"$tmp/t/tests/structure/kvs_headers.txt"
}
check() {
    /usr/bin/python3 "$here/kvs_headers.py" "$tmp/t"
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
echo '#include "core/place/outbox.h"' >>"$tmp/t/kvs/server/x.c"
must_fail "a header that is not listed"
echo '#include "paxos/machine/onepaxos.h"' >>"$tmp/t/kvs/server/x.c"
must_fail "a header of paxos that is not listed"
echo 'core/place/hold.h: processes' >>"$tmp/t/tests/structure/kvs_headers.txt"
must_fail "a listed header that is not included"
echo 'core/place/place.h:' >"$tmp/t/tests/structure/kvs_headers.txt"
must_fail "a header without a reason"
for i in $(seq 10); do
    echo "core/place/x$i.h: x" >>"$tmp/t/tests/structure/kvs_headers.txt"
    echo "#include \"core/place/x$i.h\"" >>"$tmp/t/kvs/server/x.c"
done
must_fail "more than ten headers"
