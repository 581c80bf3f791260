#!/usr/bin/python3
"""Are programs of OpenMP faster with libquoin-gomp.so? Runs openmp_bench with
GOMP's barrier and with ours in turn.

    bench_openmp.py [--threads 2,4,8] [--pairs 20] [--floor]

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
--floor: each pair also has a run with a preloaded library that replaces
nothing (libm); the last column is its time over GOMP's: what preloading alone
and the machine change.
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
BY_GOMP, BY_OURS, BY_NONE = range(3)
UNCHANGED = 1.1  # more the upper end of an interval must not be
BENCH = os.path.join(script.BUILD, "loadgen/openmp/openmp_bench")
OURS = os.path.join(script.BUILD, "core/barrier/gomp/libquoin-gomp.so")


def run(o, threads, which):
    env = dict(os.environ)
    env.pop("LD_PRELOAD", None)
    if which != BY_GOMP:
        env["LD_PRELOAD"] = o.library if which == BY_OURS else "libm.so.6"
    if o.policy:
        env["OMP_WAIT_POLICY"] = o.policy
    done = subprocess.run(
        [o.bench, str(threads), str(o.samples), str(o.us)], env=env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{o.bench}: exit status {done.returncode} {done.stderr}")
    return json.loads(done.stdout)["us"]


def pairs_of(o, threads):
    """@return [(us with GOMP's, with ours, with nothing replaced if asked)], by
    construct."""
    found = []
    kinds = (BY_GOMP, BY_OURS, BY_NONE) if o.floor else (BY_GOMP, BY_OURS)
    for pair in range(o.pairs):
        got = {}
        for which in kinds[::1 if pair % 2 == 0 else -1]:
            got[which] = run(o, threads, which)
        found.append(tuple(got[which] for which in kinds))
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
        times = [[max(run[name], 0.001) for run in p] for p in pairs]
        middle, low, high = interval([t[BY_OURS] / t[BY_GOMP] for t in times])
        verdict = judge(name, low, high)
        met = met and verdict in ("faster", "unchanged")
        floor = "" if len(times[0]) <= BY_NONE else " %.2f (%.2f to %.2f) |" % (
            interval([t[BY_NONE] / t[BY_GOMP] for t in times]))
        print("| %d | %s | %.2f | %.2f | %.2f (%.2f to %.2f) | %s |%s" % (
            threads, name, statistics.median(t[BY_GOMP] for t in times),
            statistics.median(t[BY_OURS] for t in times), middle, low, high,
            verdict, floor), flush=True)
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
    p.add_argument("--floor", action="store_true",
                   help="also with a library that replaces nothing")
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
    more = (" floor |", "---|") if o.floor else ("", "")
    print(f"| threads | construct | us, GOMP | us, quoin | ratio | |{more[0]}\n"
          f"|---|---|---|---|---|---|{more[1]}")
    for threads in o.threads:
        every[threads] = pairs_of(o, threads)
        met = show(threads, every[threads]) and met
    if o.json:
        with open(o.json, "w", encoding="utf-8") as to:
            json.dump(every, to, indent=1)
    return 1 if o.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
