"""quoin bench barrier: a row for each subject, the ratio to the first, a picture;
wrong options cost one line.

Usage: test_bench_barrier.py PATH_OF_QUOIN MACHINE
"""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from tests.process.lib import little_memory

QUOIN, MACHINE = sys.argv[1:]


def bench(*args):
    return subprocess.run([QUOIN, "bench", "barrier", *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def measured(group):
    """@return the rows that have figures, by name."""
    return {s["subject"]: s for s in group["subjects"] if "ns" in s}


with tempfile.NamedTemporaryFile(suffix=".svg") as picture:
    # Nothing takes too long here, however busy the machine is.
    done = bench("--quick", "--members", "2", "--limit-ms", "60000",
                 "--machine", MACHINE, "--plot", picture.name)
    assert done.returncode == 0, done.stderr
    drawn = picture.read().decode()
xml.etree.ElementTree.fromstring(drawn)
made = json.loads(done.stdout)
assert [(g["kind"], g["members"]) for g in made["groups"]] == [
    ("threads", 2), ("processes", 2)], made
for group in made["groups"]:
    rows = measured(group)
    assert group["selection"].startswith("dissemination: cycles"), group
    assert "selection: " + group["selection"] in done.stderr, done.stderr
    for name in ("quoin", "quoin/central", "quoin/measured", "pthread",
                 "simple/dissemination", "simple/central-yield", "simple/mcs",
                 "coll"):
        row = rows[name]
        assert 0 < row["ns"]["low"] <= row["ns"]["median"], row
        assert row["ratio"]["median"] > 0 and row["rounds"] == 2, row
        assert name in drawn and "\n" + name in done.stderr, name
    assert rows["quoin"]["ratio"]["median"] == 1, rows["quoin"]
    rivals = {"gomp", "gomp/quoin"} if group["kind"] == "threads" else {"mpi"}
    assert rivals <= {s["subject"] for s in group["subjects"]}, group

# A subject that takes too long has the time of its first barrier.
done = bench("--quick", "--members", "2", "--threads", "--limit-ms", "0")
assert done.returncode == 0, done.stderr
group, = json.loads(done.stdout)["groups"]
assert list(measured(group)) == ["quoin"], group
# Without prices there is none, but for members that share cores.
assert ("selection" in group) == (len(os.sched_getaffinity(0)) < 2), group
assert all(s["ns_once"] > 0 for s in group["subjects"]
           if s["subject"] != "quoin" and "refused" not in s), group

# A late member sleeps in each round of each subject.
done = bench("--quick", "--members", "2", "--threads", "--limit-ms", "60000",
             "--late", "0.5")
assert done.returncode == 0, done.stderr
late, = json.loads(done.stdout)["groups"]
assert late["late"]["member"] == 1 and late["late"]["asked"] == 0.5, late
assert late["late"]["sleeps"] >= 2 * len(measured(late)), late
assert "late" not in group, group

done = little_memory.run(QUOIN, "bench", "barrier", "--quick", "--members", "64",
                         "--threads")
if done is not None:
    assert done.returncode == 1, done
    assert "64 members: a thread or process cannot be started: ask for fewer " \
        "--members" in done.stderr.splitlines()[-1], done

for args, name in ((["--members", "1"], "--members"),
                   (["--members", "65"], "--members"),
                   (["--members", ""], "--members"),
                   (["--members", "2,"], "--members"),
                   (["--threads", "--processes"], "--processes"),
                   (["--rounds", "0"], "--rounds"),
                   (["--late", "0.95"], "at most 0.9"),
                   (["--machine", "/dev/null"], "/dev/null"),
                   (["--plot", "/"], "--plot")):
    done = bench(*args)
    assert done.returncode == 2 and done.stdout == "", (args, done)
    assert len(done.stderr.splitlines()) == 1 and name in done.stderr, done
