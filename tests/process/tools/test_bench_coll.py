"""quoin bench coll: every variant runs with threads and processes and gives
right results (each member checks its own), the report is complete, members that
are isolated do not push, and wrong options cost one line.

Usage: test_bench_coll.py PATH_OF_QUOIN
"""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

from tests.process.lib import little_memory

QUOIN = sys.argv[1]
MACHINE = os.path.join(os.path.dirname(__file__), "../../../machines/uv2000_24x8")
CORES = os.sched_getaffinity(0)
VARIANTS = 35  # 27 of the table, and flat ones of each operation


MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def bench(*args):
    return subprocess.run([QUOIN, "bench", "coll", *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def good(*args):
    done = bench("--quick", *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(*args, names):
    done = bench(*args)
    assert done.returncode == 2 and done.stdout == "", (args, done)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert names in done.stderr, done.stderr


made = good("--variant", "all", "--size", "4,40000", "--members", "2,3")
assert [(g["kind"], g["members"]) for g in made["groups"]] == [
    ("threads", 2), ("threads", 3), ("processes", 2), ("processes", 3)], made
for group in made["groups"]:
    assert group["wrong"] == 0 and group["turns"] == 1, group
    assert len(group["rows"]) == 2 * (VARIANTS + 1), group
    for row in group["rows"]:
        assert 0 < row["ns"]["p10"] <= row["ns"]["median"] <= row["ns"]["p90"]
        assert row["mb_per_s_all"] >= row["mb_per_s_each"] > 0, row
        assert row["variant"] != "memcpy" or row["of_memcpy"] == 1, row

made = good("--isolated", "--processes", "--variant", "all", "--size", "64",
            "--members", "4")
names = [row["variant"] for row in made["groups"][0]["rows"]]
assert len(names) > 15 and not any("/push/" in name for name in names), names

with tempfile.NamedTemporaryFile(suffix=".svg") as picture:
    made = good("--threads", "--size", "1ki,64ki", "--members", "2",
                "--plot", picture.name)
    texts = [t.text for t in xml.etree.ElementTree.parse(picture.name).iter()
             if t.tag.endswith("text")]
for title in "broadcast, 2 threads", "gather, 2 threads", "memcpy", "64 KiB":
    assert title in texts, texts
why = [row.get("why", "") for row in made["groups"][0]["rows"][1:5]]
assert all(line.startswith("without prices, ") for line in why), why
del made["groups"][0]["rows"][5:]
names = [row["variant"] for row in made["groups"][0]["rows"]]
assert [name.split("/")[0] for name in names] == [
    "memcpy", "broadcast", "reduce", "scatter", "gather"], names

# One late member: it sleeps in each row.
for group in good("--late", "0.5", "--size", "64", "--members", "2")["groups"]:
    late = group["late"]
    assert late["member"] == 1 and late["asked"] == 0.5, group
    assert late["sleeps"] >= len(group["rows"]) and 0 < late["part"] < 1, group
    assert group["wrong"] == 0, group
assert not any("late" in group for group in made["groups"]), made
refused("--late", "0.95", names="at most 0.9")
refused("--late", "nan", names="--late")

if len(CORES) > 1 and max(CORES) < 192:
    made = good("--threads", "--size", "64ki", "--members", "2,%d" %
                (len(CORES) + 1), "--machine", MACHINE)
    for group, begin in zip(made["groups"], ("by prices, ", "members share cores: ")):
        why = [row["why"] for row in group["rows"][1:]]
        assert len(why) == 4 and all(w.startswith(begin) for w in why), why
    assert made["assumed"] == [
        "copy_gb_s", "cache_gb_s", "memory_gb_s", "link_gb_s", "cache_mib"], made

with tempfile.TemporaryDirectory() as folder:
    for name, text in (
            ("numa.csv", "core,phys,cache,node,socket\n"
             "9000,0,0,0,0\n9001,1,0,0,0\n"),
            ("pairwise.csv", "from,to,send_cycles,receive_cycles\n"
             "9000,9001,20,80\n9001,9000,20,80\n")):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    if len(CORES) > 1:
        refused("--machine", folder, "--members", "2", names="has no core")

refused("--machine", "/no/such", names="/no/such")
refused("--machine", MACHINE, "--variant", "all", names="--machine")
refused("--plot", "/no/such/folder.svg", names="/no/such")
refused("--variant", "broadcast/pull", names="broadcast/pull")
refused("--variant", "", names="no such variant")
refused("--isolated", "--variant", "gather/push/flat", names="do not push")
refused("--variant", ",".join(["gather/pull/flat"] * 640), names="too many")
refused("--size", "14", names="multiples of 4")
refused("--size", "2", names="from 4")
refused("--members", "1", names="from 2")
# Without touching it: 64 members of 64 MiB take 24 GiB.
if MEMORY < 24 << 30:
    refused("--members", "2,64", "--size", "64mi", names="MiB are available")
refused("--threads", "--processes", names="--processes")

done = little_memory.run(QUOIN, "bench", "coll", "--quick", "--threads", "--size", "64",
                         "--members", "64")
if done is not None:
    assert done.returncode == 1 and "ask for fewer --members" in done.stderr, done

# ---- loadgen/scripts/bench_coll.py: how many pairs ----

sys.path.insert(0, os.path.join(os.path.dirname(__file__),
                                "../../../loadgen/scripts"))
import bench_coll  # noqa: E402


class Options:
    pairs, most_pairs, sizes = 7, 12, [64, 128]


def pairs(ratios_of_128):
    """How many pairs a size has; of 64 bytes each ratio is 0.5."""
    order, ratios = [], iter(ratios_of_128)

    def ours(_, members, sizes):
        order.append("ours")
        got = {("memcpy", size): 10 for size in sizes}
        for size in sizes:
            got["broadcast", size] = 50 if size == 64 else 100 * next(ratios)
        return got

    def theirs(_, members, sizes):
        order.append("theirs")
        return {("broadcast", size): 100 for size in sizes}

    found = bench_coll.pairs_of(Options, 4, ours, theirs)
    assert order[:4] == ["ours", "theirs", "theirs", "ours"], order
    assert found["broadcast", 64] == [(50, 100, 10)] * Options.pairs, found
    return len(found["broadcast", 128])


assert pairs([0.5] * 7) == 7  # clear
assert pairs([1.05, 1.0] * 4) == 7  # equal
assert pairs([0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.74] + [0.6] * 9) == 9
assert pairs([0.5, 1.5] * 6) == 12  # bounded
