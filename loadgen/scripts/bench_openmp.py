#!/usr/bin/python3
"""Are programs of OpenMP faster with libquoin-gomp.so? Runs openmp_bench with
GOMP's barrier and with ours in turn.

    bench_openmp.py [--threads 2,4,8] [--pairs 20]

For each number of threads the program (loadgen/openmp) runs once with each
barrier, the order changing with each pair. A figure of a run is the median of
its samples: the time of a construct beside the work that is in it, us, and the
whole time of a step of the kernel. A ratio is ours over GOMP's; the median of
the pairs is shown with its 95 % interval (order statistics). GOMP waits as it
does by default; --policy sets OMP_WAIT_POLICY for both.
--check: `for`, `barrier`, `single` and the kernel must be faster (the upper end
of the interval is below 1), the others unchanged (1 is in it, and its upper end
is at most 1.1) or faster. An interval that is too wide for either says "not
decided", and does not pass: take more pairs, or a quieter machine.
The whole takes about 1 s per run, with the defaults 2 minutes on an idle
machine.
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

FASTER = ("for", "barrier", "single", "kernel")
UNCHANGED = 1.1  # more the upper end of an interval must not be
BENCH = os.path.join(script.BUILD, "loadgen/openmp/openmp_bench")
OURS = os.path.join(script.BUILD, "core/barrier/gomp/libquoin-gomp.so")


def run(o, threads, preload):
    env = dict(os.environ)
    env.pop("LD_PRELOAD", None)
    if preload:
        env["LD_PRELOAD"] = o.library
    if o.policy:
        env["OMP_WAIT_POLICY"] = o.policy
    done = subprocess.run(
        [o.bench, str(threads), str(o.samples), str(o.us)], env=env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{o.bench}: exit status {done.returncode} {done.stderr}")
    return json.loads(done.stdout)["us"]


def pairs_of(o, threads):
    """@return [(us with GOMP's, us with ours)], by construct."""
    found = []
    for pair in range(o.pairs):
        got = {}
        for ours in (False, True)[::1 if pair % 2 == 0 else -1]:
            got[ours] = run(o, threads, ours)
        found.append((got[False], got[True]))
    return found


def judge(name, low, high):
    if high < 1:
        return "faster"
    if name in FASTER:
        return "not decided" if low < 1 else "not faster"
    if low > 1:
        return "slower"
    return "unchanged" if high <= UNCHANGED else "not decided"


def show(threads, pairs):
    """@return whether all is as it should be."""
    met = True
    for name in pairs[0][0]:
        if name == "reference":
            continue
        # What is measured less than nothing is nothing.
        times = [(max(p[0][name], 0.001), max(p[1][name], 0.001))
                 for p in pairs]
        middle, low, high = interval([b / a for a, b in times])
        verdict = judge(name, low, high)
        met = met and verdict in ("faster", "unchanged")
        print("| %d | %s | %.2f | %.2f | %.2f (%.2f to %.2f) | %s |" % (
            threads, name, statistics.median(a for a, _ in times),
            statistics.median(b for _, b in times), middle, low, high,
            verdict), flush=True)
    return met


def numbers(text):
    found = text.split(",")
    if not all(n.isdecimal() and 1 <= int(n) <= 64 for n in found):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no list of numbers from 1 to 64, as 2,4 is")
    return [int(n) for n in found]


def parse():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", default="2,4,8", type=numbers)
    p.add_argument("--pairs", type=int, default=20)
    p.add_argument("--samples", type=int, default=20, help="of a run")
    p.add_argument("--us", type=float, default=2000, help="of a sample")
    p.add_argument("--policy", choices=("active", "passive"))
    p.add_argument("--bench", default=BENCH, help="openmp_bench")
    p.add_argument("--library", default=OURS, help="libquoin-gomp.so")
    p.add_argument("--json", metavar="FILE", help="all pairs")
    p.add_argument("--check", action="store_true",
                   help="exit status 1 if a figure is not as it should be")
    o = p.parse_args()
    for path in (o.bench, o.library):
        if not os.path.exists(path):
            p.error(f"{path} is not there; build openmp_bench and quoin-gomp")
    if o.pairs < 1:
        p.error("--pairs must be more than 0")
    return o


def main():
    o = parse()
    every, met = {}, True
    print("| threads | construct | us, GOMP | us, quoin | ratio | |\n"
          "|---|---|---|---|---|---|")
    for threads in o.threads:
        every[threads] = pairs_of(o, threads)
        met = show(threads, every[threads]) and met
    if o.json:
        with open(o.json, "w", encoding="utf-8") as to:
            json.dump(every, to, indent=1)
    return 1 if o.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
