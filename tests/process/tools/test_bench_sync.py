"""quoin bench lock, delegate, queue and stack: each subject runs in all rounds,
here and on a simulated machine, the report is complete, and wrong options cost
one line.

Usage: test_bench_sync.py PATH_OF_QUOIN [simulated]
Without `simulated` nothing runs on a simulated machine.
"""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from tests.process.lib import little_memory

QUOIN = sys.argv[1]
TILEGX = os.path.join(os.path.dirname(__file__),
                      "../../../machines/tilegx_8036.json")


def bench(*args):
    return subprocess.run([QUOIN, "bench", *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def check_row(row, first):
    assert row["rounds"] == 2 and row["operations"] > 0, row
    assert 0 < row["per_second"]["low"] <= row["per_second"]["high"], row
    ratio, ns = row["ratio"], row["ns"]
    assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"], row
    assert row["max_over_min"]["low"] >= 1, row
    assert not first or row["of_first_threads"]["median"] == 1, row
    assert ns["p50"] <= ns["p999"] <= ns["p9999"], row


def product(interval):
    """Of both rounds."""
    return interval["low"] * interval["high"]


def check_beside(rows):
    """Each subject beside the best other one, round by round."""
    rows = [row for row in rows if "refused" not in row]
    assert rows[0]["of_best_other"] is None, rows[0]
    for row in rows[1:]:
        others = {other["subject"]: other["per_second"] for other in rows[1:]
                  if other is not row}
        share = row["of_best_other"]
        if not others:
            assert share is None, row
            continue
        best = max(others, key=lambda name: others[name]["median"])
        assert share["subject"] == best, (row, others)
        assert share["low"] <= share["median"] <= share["high"], row
        wanted = product(row["per_second"]) / product(others[best])
        assert abs(product(share) / wanted - 1) < 1e-6, (row, others)


def good(command, *args, threads=(2,), beside=("mutex/mutex",)):
    """@return the rows of the first number of threads."""
    done = bench(command, "--quick", "--threads", ",".join(map(str, threads)),
                 *args)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["bench"] == command, made
    assert [run["threads"] for run in made["runs"]] == list(threads), made
    shown = [line.split()[0] for line in done.stderr.splitlines()
             if "/" in line.split()[0]]
    for run in made["runs"]:
        assert run["probe_per_second"] > 0, run
        for row in run["subjects"]:
            assert "refused" in row or not check_row(row, run is made["runs"][0])
        check_beside(run["subjects"])
        names = [row["subject"] for row in run["subjects"]]
        assert tuple(names[:1 + len(beside)]) == ("plain/fetch_add", *beside)
        assert shown[:len(names)] == names, done.stderr
        del shown[:len(names)]
    rows = made["runs"][0]["subjects"][1 + len(beside):]
    return {row["subject"]: row for row in rows}


def simulated(command, *args, threads):
    """The same twice, and in a picture."""
    with tempfile.TemporaryDirectory() as folder:
        plot = os.path.join(folder, "a.svg")
        args = command, "--machine", TILEGX, *args
        rows = good(*args, "--plot", plot, threads=threads, beside=())
        texts = [t.text for t in xml.etree.ElementTree.parse(plot).iter()
                 if t.tag.endswith("text")]
    assert set(texts) >= {name for name, row in rows.items()
                          if "refused" not in row}, texts
    assert rows == good(*args, threads=threads, beside=())
    return rows


def refused(*args, names):
    done = bench(*args)
    assert done.returncode == 2 and done.stdout == "", (args, done)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for name in names:
        assert name in done.stderr, done.stderr


locks = good("lock", threads=(2, 3))
assert list(locks) == ["lock/tas", "lock/ttas", "lock/mcs", "lock/clh",
                       "lock/hyblock"], locks
good("lock", "--increments", "15", "--pause", "0", "--unpinned", threads=(5,))
made = good("delegate", "--domains", "2")
assert {"delegate/cc_synch", "delegate/auto", "delegate/shm_server",
        "delegate/mp_server", "counter/hyb_comb"} <= set(made), made
assert made["delegate/cc_synch"]["operations_per_batch"] >= 1, made
assert made["delegate/cc_synch"]["stalled"] is None, made
assert made["counter/auto"]["operations_per_batch"] >= 1, made
made = good("delegate", "--increments", "15", "--only", "mutex,lock,auto")
assert {name for name, row in made.items() if "refused" in row} == \
    {"counter/lock", "counter/auto"}, made
done = bench("delegate", "--quick", "--untimed", "--only", "counter/auto")
assert [row["ns"] for row in json.loads(done.stdout)["runs"][0]["subjects"]] \
    == [None, None], done.stdout
made = good("queue", "--only", "mutex,lcrq,ms2/h_synch,ms1/mp_server", threads=(3,))
assert set(made) == {"queue/lcrq", "queue/ms2/h_synch",
                     "queue/ms1/mp_server"}, made
assert made["queue/lcrq"]["cas_per_operation"] > 0, made
made = good("stack", "--batch", "1", "--only", "mutex,treiber,list/lock")
assert made["stack/treiber"]["cas_per_operation"] >= 1, made

if sys.argv[2:] == ["simulated"]:
    made = simulated("lock", threads=(1, 6))
    assert 0 < made["lock/hyblock"]["stalled"] < 1, made
    made = simulated("delegate", "--increments", "15", threads=(7, 36))
    assert made["delegate/mp_server"]["per_second"]["median"] > \
        made["delegate/cc_synch"]["per_second"]["median"], made
    made = simulated("queue", threads=(4,))
    assert "refused" in made["queue/ms2/mp_server"], made
    assert "refused" not in made["queue/ms1/mp_server"], made
    simulated("stack", threads=(4,))
    refused("lock", "--machine", TILEGX, "--threads", "37", names=["36 cores"])
    refused("lock", "--machine", TILEGX, "--unpinned", names=["--unpinned"])
    refused("lock", "--machine", "nowhere", names=["--machine", "nowhere"])

refused("lock", "--only", "mutex,padlock", names=["padlock", "--only"])
refused("queue", "--only", "mcs", names=["mcs"])
refused("stack", "--threads", "256", names=["--threads", "255"])
refused("stack", "--threads", "2,,3", names=["--threads"])
refused("stack", "--threads", "2,", names=["--threads"])
refused("lock", "--only", "mutex,", names=["--only"])
refused("delegate", "--rounds", "1001", names=["--rounds", "1000"])
refused("lock", "--plot", "/", names=["--plot"])

# 64 stacks do not fit: the threads that could be made end.
done = little_memory.run(QUOIN, "bench", "lock", "--quick", "--threads", "64")
assert done is None or (done.returncode == 1 and
                        "ask for fewer --threads" in done.stderr), done
