#!/usr/bin/env bash
# The long forms of deaths: ten thousand and more members of collective
# operations, one in each state of the flow machine by operation and role;
# sequences; and how soon all hear of a thread or a process that ends, against
# 100 ms. A few minutes of CPU.
# Usage: deaths.sh [DEATHS_IN_REAL_TIME]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cmake --preset release --log-level=WARNING >/dev/null
cmake --build --preset release --target test_alike_sim test_views_sim \
    test_coll_flow_death test_death_time >&2
build/release/tests/unit/core/coll/test_coll_flow_death
QN_SIM_SEEDS=5000 build/release/tests/sim/test_views_sim
QN_SIM_STATES=1 QN_SIM_SEEDS=6000 build/release/tests/sim/test_alike_sim
QN_DEATHS=${1:-1000} build/release/tests/conformance/test_death_time
echo "deaths: a kill in each state, no defect"
