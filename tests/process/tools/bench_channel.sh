#!/usr/bin/env bash
# quoin bench channel --quick: all nodes end, and stdout is one JSON object in
# which every pair of every run has made progress. Usage: bench_channel.sh QUOIN
set -u
quoin=$1
out=$("$quoin" bench channel --quick 2>/dev/null) || {
    echo "quoin bench channel --quick failed" >&2
    exit 1
}
python3 - "$out" <<'PY' || exit 1
import json
import sys

result = json.loads(sys.argv[1])
runs = result["blocking"]
want = [(kind, n) for kind in ("threads", "processes") for n in (2, 4, 8, 16)]
assert [(r["kind"], r["endpoints"]) for r in runs] == want, runs
assert all(r["slowest_pair"] > 0 for r in runs), runs
if result["cores"] > 1:
    assert len(result["two_nodes"]) == 10, result
PY
"$quoin" bench channel --transport all --quick --turns 1 --endpoints 2 2>/dev/null |
    python3 -c '
import json
import sys

runs = json.load(sys.stdin)["transports"]
names = [r["transport"] for r in runs]
assert "ump" in names and "ffq" in names and len(set(names)) == len(names), names
for r in runs:
    kinds = [p["kind"] for p in r["blocking"] if p["endpoints"] == 2]
    assert kinds in (["threads"], ["threads", "processes"]), r
    assert all(p["cpu_ns_per_message"] > 0 for p in r["blocking"]), r
    assert r["bytes_of_two_nodes"] > 0, r
' || {
    echo "quoin bench channel --transport all failed" >&2
    exit 1
}
"$quoin" bench channel --writable --threads --quick --turns 1 --endpoints 2 >/dev/null 2>&1 || {
    echo "quoin bench channel --writable failed" >&2
    exit 1
}
for bad in '--cells 100' '--cells 8' '--transport pigeon' '--turns 0' '--no-such'; do
    # shellcheck disable=SC2086 # two words each
    "$quoin" bench channel $bad >/dev/null 2>&1
    status=$?
    if [ "$status" != 2 ]; then
        echo "$bad: exit status $status, not 2" >&2
        exit 1
    fi
done
