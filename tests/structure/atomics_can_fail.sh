#!/usr/bin/env bash
# Creates one violation of each kind in an empty tree; atomics.sh must find each.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
plant() { # plant FILE LINE
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t"/{core/base,transports,paxos,kvs,loadgen}
    echo "$2" >"$tmp/t/$1"
    if bash "$here/atomics.sh" "$tmp/t" >/dev/null 2>&1; then
        echo "not found: $1: $2" >&2
        exit 1
    fi
}
plant kvs/x.c 'static volatile int x;'
plant paxos/x.c 'atomic_store_explicit(&x, 1, memory_order_relaxed);'
plant transports/x.c '__asm__("nop");'
