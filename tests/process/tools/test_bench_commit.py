"""quoin bench commit: each form runs with each kind of nodes and each proposer,
all nodes apply the same commands, the report is complete, no file is left, also
without an input; and wrong options cost one line.

Usage: test_bench_commit.py PATH_OF_QUOIN
"""

import glob
import json
import os
import subprocess
import sys

QUOIN = sys.argv[1]
FORMS = ["bare", "member"]  # and "group", with the memory acceptor


def bench(*args):
    return subprocess.run([QUOIN, "bench", "commit", *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def good(*args):
    done = subprocess.Popen([QUOIN, "bench", "commit", "--quick", *args], text=True,
                            preexec_fn=lambda: os.close(0), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, said = done.communicate()
    assert done.returncode == 0, said
    assert not glob.glob(f"/dev/shm/*-{done.pid}-*")
    return json.loads(out), said


def refused(*args, names):
    done = bench(*args)
    assert done.returncode == 2 and done.stdout == "", (args, done)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for name in names:
        assert name in done.stderr, done.stderr


def complete(made, *, members, pairs, operations):
    assert made["bench"] == "commit" and made["members"] == members, made
    assert made["command_bytes"] == 16, made
    for group in made["groups"]:
        turns = pairs - group["left_out"]  # a loaded machine changes leaders
        forms = group["forms"]
        wanted = FORMS + ["group"] * (made["acceptor"] == "memory")
        assert [f["form"] for f in forms] == (wanted if turns else []), group
        for f in forms:
            assert f["turns"] == turns, f
            assert f["operations"] == turns * operations, f
            ns = f["ns"]
            assert 0 < ns["p50"] <= ns["p90"] <= ns["p99"] <= ns["p999"], f
            assert f["per_second"] > 0 and f["cpu_ns_per_command"] > 0, f
            ratio = f["ratio"]
            assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"], f
            assert f["form"] != "bare" or ratio["low"] == ratio["high"] == 1, f


made, said = good()
complete(made, members=3, pairs=2, operations=100)
assert [(g["nodes"], g["proposer"]) for g in made["groups"]] == [
    ("threads", "leader"), ("threads", "follower"),
    ("processes", "leader"), ("processes", "follower")], made
rows = [line.split()[:3] for line in said.splitlines()[1:]]
left_out = sum(g["left_out"] for g in made["groups"])
assert left_out or rows == [
    [g["proposer"], g["nodes"], f["form"]]
    for g in made["groups"] for f in g["forms"]], said

made, _ = good("--members", "2", "--threads", "--acceptor", "process",
               "--proposer", "follower", "--operations", "20")
complete(made, members=2, pairs=2, operations=20)
assert [(g["nodes"], g["proposer"]) for g in made["groups"]] == [
    ("threads", "follower")], made
made, _ = good("--members", "5", "--processes", "--transport", "udn",
               "--proposer", "leader", "--operations", "1")
complete(made, members=5, pairs=2, operations=1)

refused("--members", "1", names=["--members", "2"])
refused("--members", "65", names=["--members", "64"])
refused("--operations", "65537", names=["--operations", "65536"])
refused("--pairs", "1001", names=["--pairs", "1000"])
refused("--threads", "--processes", names=["--threads", "--processes"])
refused("--proposer", "learner", names=["leader", "follower"])
refused("--acceptor", "file", names=["memory", "process"])
refused("--transport", "pigeon", names=["--transport"])
refused("--transport", "ffq_shared", names=["--transport", "ump"])
