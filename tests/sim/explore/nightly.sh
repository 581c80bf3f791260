#!/usr/bin/env bash
# The explorations with a deviation more than in CI, the weaker orders with their
# last level, the largest collections, and threads on what core/sync has: pieces
# of at most 20 minutes of CPU each, an hour and a half in all. A failure prints
# the choices that repeat it; the others are run all the same.
# Usage: nightly.sh [PIECE...]    all, if none is named; their names: below
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 2
tests=build/release/tests
sim=$tests/sim
sync=$sim/explore/sync

# Two nodes in C11. Of long messages a deviation less is explored.
ump() { QN_EXPLORE_DEVIATIONS=4 QN_SIM_MEMORY=c11 $sim/test_ump_explore; }
ffq() { QN_EXPLORE_DEVIATIONS=3 QN_SIM_MEMORY=c11 $sim/test_ffq_explore; }
ffq_shared() { QN_EXPLORE_DEVIATIONS=3 QN_SIM_MEMORY=c11 $sim/test_ffq_shared_explore; }
# An operation on words has many accesses.
udn() { QN_EXPLORE_DEVIATIONS=2 QN_SIM_MEMORY=c11 $sim/test_udn_qp_explore --filter 'lane_explore/*'; }
ring() { QN_EXPLORE_DEVIATIONS=4 $sim/test_ring_explore --filter 'ring_explore/*'; }
# Three nodes and a kill.
alike() { QN_EXPLORE_DEVIATIONS=1 $sim/test_alike_explore; }
# Locks are short; of barriers three members have two deviations less.
locks() { QN_EXPLORE_DEVIATIONS=5 $sync/test_lock_explore; }
barriers() {
    QN_EXPLORE_DEVIATIONS=4 $sim/explore/barrier/test_barrier_explore &&
        QN_EXPLORE_DEVIATIONS=2 $sim/explore/barrier/test_barrier_measured_explore
}
# Three members have two deviations less.
large() { QN_EXPLORE_DEVIATIONS=4 $sim/explore/large/test_large_explore; }
delegates() { QN_EXPLORE_MORE=1 $sync/test_delegate_explore; }
servers() { QN_EXPLORE_MORE=1 $sync/test_server_explore; }
# Two clients of two calls each, and their server, with 3 deviations.
server_calls() { QN_EXPLORE_MORE=2 $sync/test_server_explore --filter 'server_explore/two_clients_call_twice'; }
words() { QN_EXPLORE_MORE=1 $sync/test_words_sync_explore && QN_ORDERS_ALL=1 $sim/explore/words/test_words_explore; }
objects() { QN_EXPLORE_DEVIATIONS=4 $sync/object/test_object_explore; }
# Orders that no search finds, with the last level, too.
orders() {
    local test failed=0
    for test in explore/sync/test_{lock,delegate,server,words_sync}_orders \
        explore/{barrier/test_barrier,words/test_words,large/test_large}_orders \
        explore/sync/object/test_object_orders; do
        QN_ORDERS_ALL=1 "$sim/$test" || failed=1
    done
    for test in test_{ump,ffq,ffq_shared}_orders test_{ring,arena,index,flight,task}_explore \
        explore/sync/test_{baton,clients}_explore; do
        QN_ORDERS_ALL=1 "$sim/$test" --filter '*orders*/*' || failed=1
    done
    return $failed
}
# Collections of 2^26 values (4 GiB).
limits() { QN_SYNC_LIMITS=1 $tests/unit/core/sync/test_sync_limits; }
# Threads on the locks, backends and objects that are explored above.
stress() { tests/conformance/sync/stress.sh; }

all=(ump ffq ffq_shared udn ring alike locks barriers large delegates servers server_calls words
    objects orders limits stress)
pieces=("${@:-${all[@]}}")
for piece in "${pieces[@]}"; do
    if [[ " ${all[*]} " != *" $piece "* ]]; then
        echo "nightly: no piece '$piece'; pieces: ${all[*]}" >&2
        exit 2
    fi
done

cmake --preset release --log-level=WARNING >/dev/null &&
    cmake --build --preset release --target test_{ump,ffq,ffq_shared,udn_qp,ring,alike}_explore \
        test_{lock,barrier,large,delegate,server,words_sync,words,object}_explore \
        test_{arena,index,flight,task,baton,clients}_explore \
        test_{lock,delegate,server,words_sync,barrier,words,large,object}_orders \
        test_{ump,ffq,ffq_shared}_orders \
        test_sync_limits >&2 || exit 2

failed=()
TIMEFORMAT='%U s of CPU, %R s'
for piece in "${pieces[@]}"; do
    echo "=== $piece"
    time "$piece" || failed+=("$piece")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "nightly: failed: ${failed[*]}" >&2
    exit 1
fi
echo "nightly: ${pieces[*]}: no defect"
