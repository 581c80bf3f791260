#!/usr/bin/env bash
# The explorations of two nodes in C11, and those of three nodes with a death in
# TSO, with one deviation more than in CI, in less than an hour of CPU; a
# failure prints the choices that repeat it.
# Usage: nightly.sh [DEVIATIONS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
export QN_EXPLORE_DEVIATIONS=${1:-4}

cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --target test_ring_explore test_ump_explore \
    test_ffq_explore test_ffq_shared_explore test_udn_qp_explore \
    test_alike_explore >&2
build/release/tests/sim/test_ring_explore --filter 'ring_explore/*'
QN_SIM_MEMORY=c11 build/release/tests/sim/test_ump_explore
for transport in ffq ffq_shared; do
    QN_EXPLORE_DEVIATIONS=$((QN_EXPLORE_DEVIATIONS - 1)) QN_SIM_MEMORY=c11 \
        "build/release/tests/sim/test_${transport}_explore"
done
# An operation on words has many accesses.
QN_EXPLORE_DEVIATIONS=$((QN_EXPLORE_DEVIATIONS - 2)) QN_SIM_MEMORY=c11 \
    build/release/tests/sim/test_udn_qp_explore --filter 'lane_explore/*'
# Locks are short (5 deviations: 6 s of CPU; 6: 32 s; no defect).
cmake --build --preset release --target test_lock_explore test_lock_orders >&2
QN_EXPLORE_DEVIATIONS=$((QN_EXPLORE_DEVIATIONS + 1)) \
    build/release/tests/sim/explore/sync/test_lock_explore
env -u QN_EXPLORE_DEVIATIONS QN_ORDERS_ALL=1 \
    build/release/tests/sim/explore/sync/test_lock_orders
# Barriers: 4 deviations for two members, 2 for three.
cmake --build --preset release --target test_barrier_explore >&2
build/release/tests/sim/explore/barrier/test_barrier_explore
# Delegation, with one deviation more than in CI for two and for three clients.
cmake --build --preset release --target test_delegate_explore >&2
QN_EXPLORE_MORE=1 build/release/tests/sim/explore/sync/test_delegate_explore
# Servers, and what uses words: 5 minutes of CPU.
cmake --build --preset release --target test_server_explore test_server_orders \
    test_words_explore test_words_orders test_words_sync_explore \
    test_words_sync_orders >&2
for test in sync/test_server_explore sync/test_words_sync_explore; do
    QN_EXPLORE_MORE=1 "build/release/tests/sim/explore/$test"
done
# Two clients of two calls each, and their server, with 3 deviations: 32 million
# runs, 17 minutes of CPU.
QN_EXPLORE_MORE=2 build/release/tests/sim/explore/sync/test_server_explore \
    --filter 'server_explore/two_clients_call_twice'
for test in sync/test_server_orders sync/test_words_sync_orders \
    words/test_words_explore words/test_words_orders; do
    env -u QN_EXPLORE_DEVIATIONS QN_ORDERS_ALL=1 \
        "build/release/tests/sim/explore/$test"
done
# Queues and stacks: half a minute of CPU.
cmake --build --preset release --target test_object_explore test_object_orders >&2
build/release/tests/sim/explore/sync/object/test_object_explore
env -u QN_EXPLORE_DEVIATIONS QN_ORDERS_ALL=1 \
    build/release/tests/sim/explore/sync/object/test_object_orders
# Three nodes and a kill.
QN_EXPLORE_DEVIATIONS=1 build/release/tests/sim/test_alike_explore
# Orders that no search finds, with the last level too.
cmake --build --preset release --target test_ump_orders test_ffq_orders \
    test_ffq_shared_orders test_arena_explore test_index_explore \
    test_flight_explore test_task_explore >&2
for test in ump_orders ffq_orders ffq_shared_orders ring_explore arena_explore \
    index_explore flight_explore task_explore; do
    env -u QN_EXPLORE_DEVIATIONS QN_ORDERS_ALL=1 \
        "build/release/tests/sim/test_$test" --filter '*orders*/*'
done
# Collections of 2^26 values (4 GiB; a minute of CPU).
cmake --build --preset release --target test_sync_limits >&2
QN_SYNC_LIMITS=1 build/release/tests/unit/core/sync/test_sync_limits
# Threads on the locks, backends and objects that were explored above.
env -u QN_EXPLORE_DEVIATIONS tests/conformance/sync/stress.sh
echo "nightly: $QN_EXPLORE_DEVIATIONS deviations, no defect"
