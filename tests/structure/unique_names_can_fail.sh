#!/usr/bin/env bash
# Defines one name of each kind twice; unique_names.py must find each, and must
# accept names that are private to their files.
set -u
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
# run FILE TEXT FILE TEXT: in a tree of these two files.
run() {
    rm -rf "$tmp/t"
    mkdir -p "$tmp/t"/{core,kvs}
    echo "$2" >"$tmp/t/$1"
    echo "$4" >"$tmp/t/$3"
    /usr/bin/python3 "$here/unique_names.py" "$tmp/t"
}
plant() {
    if run "$@" >/dev/null 2>&1; then
        echo "not found: $1: $2; $3: $4" >&2
        exit 1
    fi
}
plant core/x.c 'int qn_x(void) { return 1; }' kvs/x.c 'void qn_x(int i) { }'
plant core/x.c 'int qn_x = 1;' kvs/x.c 'int qn_x(void) { return 1; }'
plant core/x.h 'struct qn_x { int i; };' kvs/x.h 'struct qn_x { char c; };'
plant core/x.h 'struct qn_x { int i; };' kvs/x.h 'enum qn_x { QN_A };'
plant core/x.c 'struct qn_x { int i; };' kvs/x.c 'struct qn_x { char c; };'
plant core/x.h 'enum qn_x { QN_A };' kvs/x.h 'enum qn_y { QN_A };'
plant core/x.h 'typedef int qn_x_t;' kvs/x.h 'typedef char qn_x_t;'
if ! run core/x.c 'struct x { int i; }; int qn_x; static int f(void) { return 1; }' \
    kvs/x.c 'struct x { int i; }; int qn_y; static int f(void) { return 1; }'; then
    echo "private names were found" >&2
    exit 1
fi
