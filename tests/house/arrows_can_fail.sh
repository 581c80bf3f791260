#!/usr/bin/env bash
# Plants one violation of each kind in an empty tree; arrows.sh must see each.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
plant() { # plant FILE LINE
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t"/{core/base,transports,paxos,kvs,loadgen}
    echo "$2" >"$tmp/t/$1"
    if bash "$here/arrows.sh" "$tmp/t" >/dev/null 2>&1; then
        echo "not found: $1: $2" >&2
        exit 1
    fi
}
plant core/base/x.h '#include "paxos/machine/onepaxos.h"'
plant transports/x.c '#include "kvs/store/store.h"'
plant paxos/x.c '#include "transports/ump/ump.h"'
plant kvs/x.c '#include "transports/ump/ump.h"'
plant kvs/x.c 'static volatile int x;'
plant paxos/x.c 'atomic_store_explicit(&x, 1, memory_order_relaxed);'
