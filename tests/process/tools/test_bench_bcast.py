"""quoin bench broadcast|ack|reduce|allreduce|tree-barrier|2pc: every message arrives once
everywhere (the benchmark checks it), the report is complete, and wrong options
cost one line.

Usage: test_bench_bcast.py PATH_OF_QUOIN FOLDER_OF_MACHINES
"""

import csv
import io
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

QUOIN, MACHINES = sys.argv[1:]
WHERE = ["--machine", MACHINES + "/syn_8x4x1"]
SHORT = WHERE + ["--cores", "0-2", "--seconds", "0.1"]


def bench(what, *args):
    return subprocess.run([QUOIN, "bench", what, *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def good(what, *args):
    done = bench(what, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*args, names, what="broadcast"):
    done = bench(what, *args)
    assert done.returncode == 2 and done.stdout == "", (args, done)
    lines = [x for x in done.stderr.splitlines() if "share" not in x]
    assert len(lines) == 1, done.stderr
    for name in names:
        assert name in lines[0], done.stderr


def complete(what, *args):
    made = json.loads(good(what, *SHORT, "--format", "json", *args))
    assert made["nodes"] == 3 and not made["interrupted"], made
    assert made["bench"] == what, made
    for row in made["topologies"]:
        assert row["wrong"] == 0 and row["sent"] > 20, row
        assert 0 < row["median_ns"] <= row["p99_ns"], row
        assert row["predicted_cycles"] > 0 and row["per_second"] > 0, row
    return made


made = complete("broadcast", "--algo", "sequential", "--root", "2")
assert [r["topology"] for r in made["topologies"]] == ["sequential"], made
assert made["root"] == 2, made
with tempfile.NamedTemporaryFile("w", suffix=".csv") as chain:
    chain.write("parent,child,order\n0,1,0\n1,2,0\n")
    chain.flush()
    made = complete("ack", "--size", "500", "--window", "8", "--algo",
                    "auto," + chain.name + ",binary", "--root", "0")
assert len(made["topologies"]) == 3, made
made = complete("ack", "--algo", "ring:k=2,ring:k=1,full,companion,tree:k=2",
                "--root", "1")
assert [r["topology"] for r in made["topologies"]] == [
    "ring:k=2", "ring:k=1,full,companion", "tree:k=2"], made
assert made["root"] == 1, made
made = json.loads(good("ack", *SHORT, "--format", "json", "--sources", "2",
                       "--size", "100", "--algo", "ring:k=1,binary"))
assert made["sources"] == 2 and len(made["topologies"]) == 2, made
for row in made["topologies"]:
    assert row["wrong"] == 0 and row["sent"] > 20, row
    assert row["median_ns"] > 0 and row["predicted_ns"] is None, row
assert "2 sources" in good("ack", *SHORT, "--sources", "2", "--algo", "binary")
with tempfile.NamedTemporaryFile(suffix=".svg") as picture:
    complete("ack", "--algo", "ring:k=2,binary", "--plot", picture.name)
    root = xml.etree.ElementTree.parse(picture.name).getroot()
    texts = {t.text for t in root.iter() if t.tag.endswith("text")}
    assert {"ring:k=2", "binary", "predicted"} <= texts, texts
    dots = [c for c in root.iter() if c.tag.endswith("circle")]
    assert len(dots) == 2, "this machine file has no clock, so no times"
    good("ack", "--nodes", "2", "--seconds", "0.1", "--algo", "binary",
         "--machine", MACHINES + "/threadripper_1950x_1x16", "--plot",
         picture.name)
    root = xml.etree.ElementTree.parse(picture.name).getroot()
    dots = [c for c in root.iter() if c.tag.endswith("circle")]
    assert len(dots) == 2, "measured and predicted"
    good("tree-barrier", *SHORT, "--algo", "binary", "--plot", picture.name)
    assert "pthread_barrier" in picture.read().decode()
made = complete("reduce", "--size", "48", "--algo", "auto,sequential,binary")
assert made["sources"] is None, made
assert made["size"] == 48 and made["window"] is None, made
assert "pthread_barrier" not in made, made
made = complete("allreduce", "--size", "48", "--algo", "binary")
assert made["size"] == 48 and "pthread_barrier" not in made, made
made = complete("2pc", "--algo", "sequential,binary")
assert made["size"] is None and made["window"] is None, made
made = complete("tree-barrier", "--algo", "sequential")
assert made["size"] is None and made["window"] is None, made
row, pthread = made["topologies"][0], made["pthread_barrier"]
assert pthread["wrong"] == 0 and pthread["sent"] > 20, pthread
assert pthread["predicted_cycles"] is None, pthread
assert pthread["latency_over_pthread"] == 1, pthread
ratio = row["median_ns"] / pthread["median_ns"]
assert abs(row["latency_over_pthread"] / ratio - 1) < 1e-6, made
ratio = row["per_second"] / pthread["per_second"]
assert abs(row["rate_over_pthread"] / ratio - 1) < 1e-6, made
text = good("tree-barrier", *SHORT, "--algo", "binary")
assert "\npthread_barrier " in text and "\nbinary " in text, text
table = list(csv.DictReader(io.StringIO(
    good("tree-barrier", *SHORT, "--format", "csv", "--algo", "binary"))))
assert [r["topology"] for r in table] == ["binary", "pthread_barrier"], table
assert float(table[0]["rate_over_pthread"]) > 0, table
table = list(csv.DictReader(io.StringIO(
    good("broadcast", *SHORT, "--format", "csv", "--algo", "binary"))))
assert len(table) == 1 and table[0]["topology"] == "binary", table

refused(*WHERE, "--nodes", "65", names=["--nodes"])
refused(*WHERE, "--nodes", "1", names=["--nodes"])
refused(*WHERE, "--cores", "0", names=["--cores", "2 to 64"])
refused(*WHERE, "--cores", "0-1", "--nodes", "2", names=["exclude each other"])
refused(*WHERE, "--nodes", "3", "--root", "9", names=["--root"])
refused(*SHORT, "--algo", "auto,ring:k=2,full", names=["rings"])
refused(*SHORT, "--algo", "binray", names=["binary"])
refused(*SHORT, "--size", "4096", "--window", "64", names=["--window"])
refused(*SHORT, "--format", "svg", names=["--format", "json"])
refused("--machine", "/no/such", names=["/no/such"])
refused(*SHORT, "--plot", "/no/such/folder.svg", names=["/no/such"])
refused(*SHORT, "--sources", "4", names=["--sources"], what="ack")
refused(*SHORT, "--sources", "0", names=["--sources"], what="ack")
refused(*SHORT, "--sources", "2", names=["--sources"])
refused(*SHORT, "--size", "56", names=["--size", "48"], what="reduce")
refused(*SHORT, "--size", "12", names=["--size", "8"], what="reduce")
refused(*SHORT, "--window", "4", names=["--window"], what="reduce")
refused(*SHORT, "--size", "12", names=["--size", "8"], what="allreduce")
refused(*SHORT, "--size", "8", names=["--size"], what="2pc")
refused(*SHORT, "--size", "8", names=["--size"], what="tree-barrier")
