#!/usr/bin/env bash
# The long form of the stress tests of core/sync: many seeds of every lock,
# backend, object and pair of nested ones, and the defects that they must find.
# tests/sim/explore/nightly.sh runs it.
# Usage: stress.sh [SEEDS [SEEDS_OF_DEFECTS]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --target test_sync_stress sync_mutants >&2
QN_STRESS_SEEDS=${1:-100} QN_STRESS_FROM=${QN_STRESS_FROM:-1} \
    build/release/tests/conformance/sync/test_sync_stress
if ! build/release/tests/conformance/sync/sync_mutants "${2:-100}"; then
    echo "stress: a defect was NOT FOUND" >&2
    exit 1
fi
echo "stress: every subject, no defect; each defect that is not rare was found"
