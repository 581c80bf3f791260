"""quoin bench collectives: every operation runs with threads and processes and
gives right results (each node checks its own), the report is complete, the
picture is one, and wrong options cost one line.

Usage: test_bench_collectives.py PATH_OF_QUOIN
"""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import xml.etree.ElementTree

QUOIN = sys.argv[1]
TASKS = ["dr", "sdr", "bt"]  # of threads only
OPERATIONS = ["barrier", "allreduce", "reduce", "gather", "broadcast", "ack",
              "commit", "sequence", "ring"]


def bench(*args):
    return subprocess.run([QUOIN, "bench", "collectives", *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def good(*args):
    done = bench("--quick", "--seconds", "60", *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(*args, names):
    done = bench(*args)
    assert done.returncode == 2 and done.stdout == "", (args, done)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for name in names:
        assert name in done.stderr, done.stderr


with tempfile.NamedTemporaryFile(suffix=".svg") as picture:
    made = good("--nodes", "2,5", "--plot", picture.name)
    root = xml.etree.ElementTree.parse(picture.name).getroot()
    texts = {t.text for t in root.iter() if t.tag.endswith("text")}
    assert {"threads", "processes", *OPERATIONS, *TASKS} <= texts, texts
groups = made["groups"]
assert [(g["kind"], g["nodes"]) for g in groups] == [
    ("threads", 2), ("threads", 5), ("processes", 2), ("processes", 5)], made
for group in groups:
    assert group["wrong"] == 0 and group["turns"] == 2, group
    run = OPERATIONS + (TASKS if group["kind"] == "threads" else [])
    assert [o["operation"] for o in group["operations"]] == run, group
    for o in group["operations"]:
        assert 0 < o["ns"]["p10"] <= o["ns"]["median"] <= o["ns"]["p90"], o
        large = o["operation"] in ("broadcast", "ack", "sequence", "ring")
        assert (o["bytes"] == 64) == large, o

made = good("--nodes", "16", "--threads", "--tree", "binary", "--operation",
            "ack,ring", "--size", "4096", "--window", "64", "--arity", "3")
assert [g["kind"] for g in made["groups"]] == ["threads"], made
names = [o["operation"] for o in made["groups"][0]["operations"]]
assert names == ["ack", "ring"], names
made = good("--nodes", "3", "--threads", "--transport", "ffq_shared",
            "--size", "8", "--window", "1")
assert made["transport"] == "ffq_shared", made

made = good("--nodes", "16", "--operation", "sdr,dr", "--arity", "3",
            "--window", "1")
assert [g["kind"] for g in made["groups"]] == ["threads"], made
assert made["groups"][0]["wrong"] == 0, made
done = subprocess.run([QUOIN, "bench", "ring", "--quick", "--nodes", "3"],
                      text=True, stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE)
assert done.returncode == 0, done.stderr
made = json.loads(done.stdout)
assert made["bench"] == "ring", made
assert [[o["operation"] for o in g["operations"]] for g in made["groups"]] == [
    ["sequence", "ring", *TASKS], ["sequence", "ring"]], made

refused("--operation", "sdr", "--processes", names=["threads only"])
refused("--threads", "--processes", names=["--threads", "--processes"])
refused("--operation", "allreduce,sum", names=["sum", "allreduce", "ring"])
refused("--operation", ",", names=["choose among"])
refused("--operation", "allreduce,", names=["choose among"])
refused("--nodes", "1", names=["--nodes"])
refused("--nodes", "2,65", names=["--nodes"])
refused("--nodes", "", names=["--nodes"])
refused("--nodes", "2,3,4,5,6,7,8,9,10", names=["--nodes", "8"])
refused("--window", "3", names=["--window"])
refused("--window", "128", names=["--window"])
refused("--size", "4097", names=["--size"])
refused("--size", "7", names=["--size"])
refused("--transport", "pigeon", names=["--transport"])
refused("--tree", "oak", "--nodes", "2", names=["oak"])
refused("--plot", "/no/such/folder.svg", names=["/no/such"])

# ---- loadgen/scripts/bench_collectives.py: verdicts ----

ROOT = pathlib.Path(__file__).parents[3]
SCRIPT = ROOT / "loadgen/scripts/bench_collectives.py"
sys.path[:0] = [str(SCRIPT.parent), str(ROOT)]
import bench_collectives  # noqa: E402


def verdict(ratios):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        better = bench_collectives.judge(
            (2, "threads", "allreduce", "allreduce", [(r, 1) for r in ratios]),
            types.SimpleNamespace(size=64, rival="mpi"))
    return better, said.getvalue()


steps = [0.01 * (i % 7 - 3) for i in range(20)]
better, line = verdict([0.9 + x for x in steps])
assert better and line.startswith("allreduce, 8 bytes, 2 threads: better, 0.90")
better, line = verdict([1 + x for x in steps])
assert not better and ": not better, " in line, line
better, line = verdict([0.5] * 19)
assert not better and ": too few pairs, " in line, line
for wrong, names in ((["--nodes", "2,x"], "--nodes"), (["--pairs", "0"],
                     "--pairs"), (["--check", "--pairs", "19"], "--check")):
    done = subprocess.run([sys.executable, SCRIPT, "--rival", "quoin",
                           "--quoin", QUOIN, "--quoind", QUOIN, *wrong],
                          text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 2 and names in done.stderr.splitlines()[-1], done
