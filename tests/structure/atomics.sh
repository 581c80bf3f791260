#!/usr/bin/env bash
# Fails on an atomic, volatile or assembly outside core/base and core/sim.
# Usage: atomics.sh [root]
set -u
cd "${1:-.}" || exit 2
if grep -rnE --include='*.[ch]' \
    '\batomic_(load|store|exchange|fetch|compare|thread_fence|signal_fence)|__atomic_|__sync_|\b_Atomic\b|\bvolatile\b|__asm__|\basm\b' \
    core transports paxos kvs loadgen |
    grep -vE '^core/(base|sim)/'; then
    echo "atomics, volatile and assembly live in core/base (and core/sim) only" >&2
    exit 1
fi
