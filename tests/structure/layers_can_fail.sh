#!/usr/bin/env bash
# Creates one violation of each kind in a small tree; layers.py must find each,
# and must accept the tree without it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT

tree() {
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t"/{core/base,paxos,kvs/store,tests/structure}
    touch "$tmp/t/core/base/x.h" "$tmp/t/core/base/x_internal.h"
    echo '#include "core/base/x.h"' >"$tmp/t/paxos/x.h"
    echo '#include "paxos/x.h"' >"$tmp/t/kvs/store/x.c"
    # shellcheck disable=SC2016 # a variable of CMake
    echo 'add_library(x ${PROJECT_SOURCE_DIR}/x.c)' >"$tmp/t/CMakeLists.txt"
    printf '# comment\ncore/base:\npaxos: core/base\nkvs/store: paxos\n' \
        >"$tmp/t/tests/structure/layers.txt"
}
check() {
    /usr/bin/python3 "$here/layers.py" "$tmp/t"
}
plant() { # plant WHAT FILE LINE: in FILE
    tree
    mkdir -p "$(dirname "$tmp/t/$2")"
    echo "$3" >>"$tmp/t/$2"
    if check >/dev/null 2>&1; then
        echo "not found: $1" >&2
        exit 1
    fi
}

tree
check || exit 1
plant "an arrow that is not listed" core/base/x.h '#include "paxos/x.h"'
plant "a listed arrow that is not used" tests/structure/layers.txt \
    'core/base: kvs/store'
plant "a folder that is not listed" kvs/new/x.c 'int x;'
plant "a listed folder without sources" tests/structure/layers.txt 'kvs/gone:'
# shellcheck disable=SC2016 # likewise
plant "a name of the outer project's folder" paxos/CMakeLists.txt \
    'add_library(x ${CMAKE_SOURCE_DIR}/x.c)'
plant "a private header of another folder" paxos/x.h \
    '#include "core/base/x_internal.h"'
printf -v circle '%s\n' 'core/base: paxos'
echo '#include "paxos/x.h"' >"$tmp/circle"
tree
cp "$tmp/circle" "$tmp/t/core/base/x.h"
echo "$circle" >>"$tmp/t/tests/structure/layers.txt"
if check >/dev/null 2>&1; then
    echo "not found: a circle" >&2
    exit 1
fi
tree
for i in $(seq 30); do
    touch "$tmp/t/kvs/store/x$i.c"
done
if check >/dev/null 2>&1; then
    echo "not found: a folder of too many sources" >&2
    exit 1
fi
