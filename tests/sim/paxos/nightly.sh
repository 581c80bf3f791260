#!/usr/bin/env bash
# A million schedules of the agreement, in runs of ten thousand on all cores,
# each of which must reach everything that coverage.h lists. Ends at the first
# that fails; its output names the seed and the command that replays it.
# Usage: nightly.sh [SEEDS [FROM]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
seeds=${1:-1000000}
from=${2:-1}
chunk=10000

cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --target test_paxos_sim >&2
for ((first = from; first < from + seeds; first += chunk)); do
    echo "nightly: seeds $first to $((first + chunk - 1)) of $((from + seeds - 1))"
    QN_SIM_FROM=$first QN_SIM_SEEDS=$chunk build/release/tests/sim/test_paxos_sim \
        --filter 'paxos_sim/invariants*'
done
echo "nightly: $seeds schedules, no defect"
