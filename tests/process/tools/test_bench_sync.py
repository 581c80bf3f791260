"""quoin bench lock, delegate, queue and stack: each subject runs in all rounds,
the report is complete, and wrong options cost one line.

Usage: test_bench_sync.py PATH_OF_QUOIN
"""

import json
import subprocess
import sys

QUOIN = sys.argv[1]


def bench(*args):
    return subprocess.run([QUOIN, "bench", *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def good(command, *args, threads=2):
    done = bench(command, "--quick", *args)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["bench"] == command and made["threads"] == threads, made
    assert made["probe_per_second"] > 0, made
    for row in made["subjects"]:
        assert row["rounds"] == 2 and row["operations"] > 0, row
        assert 0 < row["per_second"]["low"] <= row["per_second"]["high"], row
        ratio, ns = row["ratio"], row["ns"]
        assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"], row
        assert row["max_over_min"]["low"] >= 1, row
        assert ns["p50"] <= ns["p999"] <= ns["p9999"], row
    names = [row["subject"] for row in made["subjects"]]
    assert names[:2] == ["plain/fetch_add", "mutex/mutex"], names
    table = [line.split()[0] for line in done.stderr.splitlines()[2:]]
    assert table == names, done.stderr
    return names[2:]


def refused(*args, names):
    done = bench(*args)
    assert done.returncode == 2 and done.stdout == "", (args, done)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for name in names:
        assert name in done.stderr, done.stderr


locks = good("lock")
assert locks[:4] == ["lock/tas", "lock/ttas", "lock/mcs", "lock/clh"], locks
good("lock", "--threads", "5", "--increments", "15", "--pause", "0",
     "--unpinned", threads=5)
made = good("delegate", "--domains", "2")
assert {"delegate/cc_synch", "delegate/auto", "delegate/shm_server",
        "counter/cc_synch"} <= set(made), made
made = good("queue", "--threads", "3", threads=3)
assert {"queue/lcrq", "queue/ms2/h_synch"} <= set(made), made
made = good("stack", "--batch", "1")
assert {"stack/treiber", "stack/list/lock"} <= set(made), made

refused("lock", "--only", "mutex,padlock", names=["padlock", "--only"])
refused("queue", "--only", "mcs", names=["mcs"])
refused("stack", "--threads", "256", names=["--threads", "255"])
refused("delegate", "--rounds", "1001", names=["--rounds", "1000"])
