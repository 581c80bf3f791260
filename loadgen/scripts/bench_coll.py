#!/usr/bin/python3
"""Are large collectives of quoin as fast as those of Open MPI, and as memcpy?
Runs both in turn, in one run.

    bench_coll.py [--members 2,4] [--pairs 11] [--most-pairs 33]

For each number of members, all processes, `quoin bench coll` and `large_mpi`
(loadgen/large/mpi, built where MPI is installed) run one after the other, the
order changing with each pair. A run's figure is its median turn, or that of
--figure. A ratio is quoin's time over the rival's; the median of the pairs is
shown with its 95 % interval (order statistics). A size goes on, up to
--most-pairs, while the interval of one of its ratios is wide: while it has 1 in
it and its ends are more than a tenth apart. Beside it stands quoin's speed
over that of as many concurrent copies by memcpy from the root's memory, in the
same turns. Ranks are bound as the members of quoin are, and told to yield.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../.."))

from tests.process.lib import script  # noqa: E402
from bench_rows import interval  # noqa: E402

MPI = os.path.join(script.BUILD, "loadgen/large/mpi/large_mpi")


def output_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr}")
    return json.loads(done.stdout)


def quoin(o, members, sizes):
    """@return {(operation, bytes): ns}, with memcpy as an operation."""
    got = output_of([o.quoin, "bench", "coll", "--members", str(members),
                     "--processes", "--size", ",".join(map(str, sizes)),
                     "--seconds", str(o.seconds),
                     *(["--quick"] if o.quick else []),
                     *(["--isolated"] if o.isolated else [])])
    return {(row["variant"].split("/")[0], row["bytes"]): row["ns"][o.figure]
            for row in got["groups"][0]["rows"]}


def mpi(o, members, sizes):
    got = output_of(
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to",
         "none", "--mca", "mpi_yield_when_idle", "1", "-n", str(members),
         o.mpi, "--seconds", str(o.seconds),
         *(["--quick"] if o.quick else []), *map(str, sizes)])
    return {(row["operation"], row["bytes"]): row["ns"][o.figure]
            for row in got["rows"]}


def numbers(least):
    """A list of numbers from `least` on, for argparse."""
    def parse(text):
        try:
            found = [int(word) for word in text.split(",")]
        except ValueError:
            found = []
        if not found or min(found) < least:
            raise argparse.ArgumentTypeError(
                f"'{text}' is no list of numbers from {least} on")
        return found
    return parse


def is_wide(ratios):
    _, low, high = interval(ratios)
    return low <= 1 <= high and high > 1.1 * low


def ratios_of(times):
    return [a / b for a, b, _ in times]


def pairs_of(o, members, ours=quoin, theirs=mpi):
    """@return {(operation, bytes): [(ns, ns of the rival, ns of memcpy)]}."""
    found, sizes, pair = {}, o.sizes, 0
    while sizes and pair < max(o.pairs, o.most_pairs):
        both = [ours, theirs][::1 if pair % 2 == 0 else -1]
        got = {measure: measure(o, members, sizes) for measure in both}
        for row, ns in got[theirs].items():
            found.setdefault(row, []).append(
                (got[ours][row], ns, got[ours]["memcpy", row[1]]))
        pair += 1
        if pair >= o.pairs:
            sizes = [size for size in sizes if any(
                row[1] == size and is_wide(ratios_of(times))
                for row, times in found.items())]
    return found


def show(members, found):
    for (operation, size), times in found.items():
        middle, low, high = interval(ratios_of(times))
        print("| %d | %s | %d | %.0f | %.0f | %.2f (%.2f to %.2f) | %d | %.2f |" % (
            members, operation, size,
            statistics.median(a for a, _, _ in times) / 1000,
            statistics.median(b for _, b, _ in times) / 1000,
            middle, low, high, len(times),
            statistics.median(c / a for a, _, c in times)), flush=True)


def main():
    p = script.parser(__doc__)
    p.add_argument("--mpi", default=MPI, metavar="PROGRAM", help="large_mpi")
    p.add_argument("--members", type=numbers(2), default="2,4")
    p.add_argument("--sizes", type=numbers(4), default="65536,1048576,16777216",
                   help="bytes, multiples of 4 (%(default)s)")
    p.add_argument("--pairs", type=int, default=11)
    p.add_argument("--most-pairs", type=int, default=33,
                   help="of a size with a wide interval (%(default)s)")
    p.add_argument("--seconds", type=float, default=2,
                   help="per run (%(default)s)")
    p.add_argument("--figure", choices=("median", "p10"), default="median",
                   help="of the turns of a run; p10 where other load takes the "
                   "cores (%(default)s)")
    p.add_argument("--isolated", action="store_true",
                   help="members do not write each other's memory")
    p.add_argument("--quick", action="store_true", help="to see that it works")
    o = script.options(p)
    if not os.path.exists(o.mpi):
        p.error(f"{o.mpi} is not there; install libopenmpi-dev and build "
                "large_mpi")
    print("| members | operation | bytes | us, quoin | us, Open MPI | ratio | "
          "pairs | of memcpy's speed |\n|---|---|---|---|---|---|---|---|", flush=True)
    for members in o.members:
        show(members, pairs_of(o, members))


if __name__ == "__main__":
    main()
