#!/usr/bin/env bash
# The long form of the stress tests of core/sync: many seeds of every lock,
# backend, object and pair of nested ones, and the defects that they must find,
# or, where threads cannot, tests of the explorer.
# tests/sim/explore/nightly.sh runs it.
# Usage: stress.sh [SEEDS [SEEDS_OF_DEFECTS]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
tests=build/release/tests
defects=$(mktemp)
trap 'rm -f "$defects"' EXIT

cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --target test_sync_stress sync_mutants \
    test_server_explore test_words_sync_explore >&2
QN_STRESS_SEEDS=${1:-100} QN_STRESS_FROM=${QN_STRESS_FROM:-1} \
    $tests/conformance/sync/test_sync_stress

missed=0
$tests/conformance/sync/sync_mutants "${2:-100}" | tee "$defects" || missed=1
# NAME explorer PROGRAM SUITE/TEST: WHY
while read -r name how program test _; do
    [ "$how" = explorer ] || continue
    # A filter that names no test would pass.
    if [[ $("$tests/sim/explore/sync/$program" --filter "${test%:}" 2>&1) == *"Tested: 1 | Passing: 1"* ]]; then
        echo "$name found by ${test%:}"
    else
        echo "$name NOT FOUND by ${test%:}"
        missed=1
    fi
done <"$defects"
if [ $missed -ne 0 ]; then
    echo "stress: a defect was NOT FOUND, or there is one in the library as it is" >&2
    exit 1
fi
echo "stress: every subject, no defect; each defect was found, by threads or by the explorer"
