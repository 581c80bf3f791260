#!/usr/bin/env bash
# The explorations of two nodes in C11, and those of three nodes with a death in
# TSO, with one deviation more than in CI, in about a quarter of an hour of CPU; a
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
# Three nodes and a kill.
QN_EXPLORE_DEVIATIONS=1 build/release/tests/sim/test_alike_explore
echo "nightly: $QN_EXPLORE_DEVIATIONS deviations, no defect"
