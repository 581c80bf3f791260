#!/usr/bin/python3
"""Are the collective operations of quoin as fast as those of Open MPI? Runs
both in turn, in one run.

    bench_collectives.py [--nodes 2,4] [--pairs 20]
    bench_collectives.py --rival quoin        the noise: quoin beside itself

For each number of nodes, with threads and with processes, `quoin bench
collectives` and `collectives_mpi` (loadgen/collective/mpi, built where MPI is
installed) run one after the other, the order changing with each pair. Both run
the same operations in the same turns; a run's figure is its median turn, or
that of --figure. A
ratio is quoin's time over the rival's; the median of the pairs is shown with
its 95 % interval (order statistics). The goals, allreduce of 8 bytes and
acknowledged broadcasts, follow as one line each: better, or not. Ranks of MPI are processes, bound as the
nodes of quoin are, and told to yield when they wait. MPI has no acknowledged
broadcast: of the three that are made of other operations the fastest in the
median is the rival. Better means that the upper end of the interval is below 1;
--check: all goals must be. The whole takes about 1 s per run beside
--seconds, with the defaults 4 minutes on an idle machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../.."))

from tests.process.lib import script  # noqa: E402
from bench_rows import interval  # noqa: E402

OPERATIONS = ("barrier", "allreduce", "reduce", "gather", "broadcast", "ack",
              "commit")
GOALS = ("allreduce", "ack")
BYTES = {"allreduce": 8}  # others: --size
RIVALS = {"mpi": "Open MPI", "quoin": "quoin"}
PAIRS_LEAST = 20  # for a verdict
KINDS = ("threads", "processes")
MPI = os.path.join(script.BUILD, "loadgen/collective/mpi/collectives_mpi")


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr}")
    return json.loads(done.stdout)


def figures(o, group):
    return {x["operation"]: x["ns"][o.figure] for x in group["operations"]}


def common(o):
    return ["--seconds", str(o.seconds), "--size", str(o.size),
            *(["--quick"] if o.quick else [])]


def quoin(o, nodes, kind):
    got = output_of([o.quoin, "bench", "collectives", "--nodes", str(nodes),
                     "--" + kind, "--operation", ",".join(OPERATIONS),
                     *common(o)])
    return figures(o, got["groups"][0])


def mpi(o, nodes, kind):
    return figures(o, output_of(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to",
         "none", "--mca", "mpi_yield_when_idle", "1", "-n", str(nodes), o.mpi,
         *common(o)]))


def run(o):
    """@return one object per pair."""
    rival = {"mpi": mpi, "quoin": quoin}[o.rival]
    found = []
    for pair in range(o.pairs):
        for nodes in o.nodes:
            for kind in KINDS:
                got = {}
                for name, measure in [("quoin", quoin), ("rival", rival)][
                        ::1 if pair % 2 == 0 else -1]:
                    got[name] = measure(o, nodes, kind)
                found.append({"nodes": nodes, "kind": kind, **got})
    return found


def rival_of(operation, pairs):
    """The name that the operation has there."""
    names = [n for n in pairs[0]["rival"]
             if n == operation or n.startswith(operation + "_")]
    return min(names, key=lambda n: statistics.median(
        p["rival"][n] for p in pairs))


def rows(found):
    """@return (nodes, kind, operation, name there, pairs of times)."""
    for nodes in sorted({p["nodes"] for p in found}):
        for kind in KINDS:
            pairs = [p for p in found
                     if (p["nodes"], p["kind"]) == (nodes, kind)]
            for operation in OPERATIONS:
                there = rival_of(operation, pairs)
                yield (nodes, kind, operation, there,
                       [(p["quoin"][operation], p["rival"][there])
                        for p in pairs])


def show(row):
    nodes, kind, operation, there, times = row
    middle, low, high = interval([a / b for a, b in times])
    print("| %d %s | %s | %s | %.0f | %.0f | %.2f (%.2f to %.2f) |" % (
        nodes, kind, operation, there, statistics.median(a for a, _ in times),
        statistics.median(b for _, b in times), middle, low, high), flush=True)


def judge(row, o):
    """One line. @return whether it is better than the rival's."""
    nodes, kind, operation, there, times = row
    middle, low, high = interval([a / b for a, b in times])
    verdict = ("too few pairs" if len(times) < PAIRS_LEAST
               else "better" if high < 1 else "not better")
    print("%s, %d bytes, %d %s: %s, %.2f of the time of %s's %s "
          "(95 %%: %.2f to %.2f), %d pairs" % (
              operation, BYTES.get(operation, o.size), nodes, kind, verdict,
              middle, RIVALS[o.rival], there, low, high, len(times)),
          flush=True)
    return verdict == "better"


def duration(seconds):
    return "%d min %02d s" % divmod(round(seconds), 60)


def numbers_of_nodes(text):
    numbers = text.split(",")
    if not all(n.isdecimal() and 2 <= int(n) <= 64 for n in numbers):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no list of numbers from 2 to 64, as 2,4 is")
    return [int(n) for n in numbers]


def parse():
    p = script.parser(__doc__)
    p.add_argument("--rival", choices=("mpi", "quoin"), default="mpi")
    p.add_argument("--mpi", default=MPI, metavar="PROGRAM",
                   help="collectives_mpi")
    p.add_argument("--nodes", default="2,4", type=numbers_of_nodes)
    p.add_argument("--pairs", type=int, default=20)
    p.add_argument("--seconds", type=float, default=0.3,
                   help="per run (%(default)s)")
    p.add_argument("--figure", choices=("median", "p10"), default="median",
                   help="of the turns of a run; p10 where other load takes the "
                   "cores (%(default)s)")
    p.add_argument("--size", type=int, default=64,
                   help="bytes of a broadcast (%(default)s)")
    p.add_argument("--quick", action="store_true",
                   help="to see that it works")
    p.add_argument("--json", metavar="FILE", help="all pairs")
    p.add_argument("--check", action="store_true",
                   help="exit status 1 if a goal is missed")
    o = script.options(p)
    if o.rival == "mpi" and not os.path.exists(o.mpi):
        p.error(f"{o.mpi} is not there; install libopenmpi-dev and build "
                "collectives_mpi, or compare with --rival quoin")
    if o.pairs < 1 or o.seconds <= 0:
        p.error("--pairs and --seconds must be more than 0")
    if o.check and o.pairs < PAIRS_LEAST:
        p.error(f"--check needs --pairs {PAIRS_LEAST} at least")
    return o


def main():
    o = parse()
    began = time.monotonic()
    runs = 2 * o.pairs * len(o.nodes) * len(KINDS)
    print("%d pairs of %d runs: about %s" % (
        o.pairs, runs // o.pairs, duration(runs * (o.seconds + 1))),
        file=sys.stderr, flush=True)
    found = script.end(lambda: run(o), o)
    print("| nodes | operation | of the rival | ns, quoin | ns, rival | ratio "
          "|\n|---|---|---|---|---|---|")
    every = list(rows(found))
    for row in every:
        show(row)
    met = [judge(row, o) for row in every if row[2] in GOALS]
    print("took " + duration(time.monotonic() - began))
    return 1 if o.check and not all(met) else 0


if __name__ == "__main__":
    sys.exit(main())
