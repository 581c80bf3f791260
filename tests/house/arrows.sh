#!/usr/bin/env bash
# Fails on an include against the arrows, and on an atomic outside core/base.
#   kvs -> paxos -> core;  kvs -> transports/registry.h only;
#   transports -> core;    loadgen -> all.
# Usage: arrows.sh [root]
set -u
cd "${1:-.}" || exit 2
status=0

# forbid FOLDER PATTERN: no file of FOLDER includes what matches PATTERN.
forbid() {
    if grep -rnE --include='*.[ch]' "#include \"$2" "$1" 2>/dev/null; then
        echo "wrong arrow: $1 must not include $2" >&2
        status=1
    fi
}
forbid core '(transports|paxos|kvs|loadgen|tests)/'
forbid transports '(paxos|kvs|loadgen|tests)/'
forbid paxos '(transports|kvs|loadgen|tests)/'
forbid kvs '(loadgen|tests)/'
forbid kvs 'transports/([^r]|r[^e]|re[^g])'
forbid loadgen 'tests/'

if grep -rnE --include='*.[ch]' \
    '\batomic_(load|store|exchange|fetch|compare|thread_fence|signal_fence)|__atomic_|__sync_|\b_Atomic\b|\bvolatile\b|__asm__|\basm\b' \
    core transports paxos kvs loadgen |
    grep -vE '^core/(base|sim)/'; then
    echo "atomics, volatile and assembly live in core/base (and core/sim) only" >&2
    status=1
fi
exit $status
